// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts panics of the engine to errors of statements.
//!
//! The engine is large third-party code. If it panics, its state is dropped with the query, and the next
//! statement plans anew; so a panic ends only its statement. It is reported once, as an error, and not by
//! the default hook as well.

use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Name of the threads whose panics are reported as errors.
pub const THREADS: &str = "lat-sql";

/// The last panic of these threads.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Stores the messages of panics of these threads; others are reported as usual.
pub fn install() {
    let other = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().name() == Some(THREADS) {
            let words = Some(words(info));
            *LAST.lock().unwrap_or_else(PoisonError::into_inner) = words;
        } else {
            other(info);
        }
    }));
}

/// Takes the message and position of the last panic, with advice.
pub fn take() -> String {
    let words = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
    failed(words.as_deref().unwrap_or("it did not say why"))
}

/// The message for a statement that failed because of an internal error.
pub fn failed(why: &str) -> String {
    format!(
        "the engine failed: {why}: this is a fault of lat-sql and not of the statement: ask in \
         another way, and please report it"
    )
}

fn words(info: &PanicHookInfo<'_>) -> String {
    let said = info.payload_as_str().unwrap_or("without words");
    // A message of several lines would look like several errors.
    let said = said.lines().next().unwrap_or_default();
    match info.location() {
        Some(place) => format!("{said} ({}:{})", short(place.file()), place.line()),
        None => said.to_owned(),
    }
}

/// A path without the folders above its package, which would reveal the build machine.
fn short(path: &str) -> &str {
    let Some(source) = path.rfind("/src/") else {
        return path;
    };
    path[..source].rfind('/').map_or(path, |package| &path[package + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_begin_with_their_package() {
        let long = "/a/registry/src/index-1/engine-55.2.0/src/repartition/mod.rs";
        assert_eq!(short(long), "engine-55.2.0/src/repartition/mod.rs");
        assert_eq!(short("src/session.rs"), "src/session.rs");
        assert_eq!(short("/src/x.rs"), "/src/x.rs");
    }
}
