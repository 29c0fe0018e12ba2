// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Colours of text for people: what a part of a page means, and whether a stream shows it.
//!
//! A [`Page`](lateralis_reports::page::Page) records meanings beside its text. Codes are added after the text
//! has passed the filter for terminals, and only where [`is_shown_on`] says so: what a pipe or a file gets
//! does not depend on them.

use clap::ValueEnum;
pub use lateralis_reports::page::Role;
use std::env;
use std::ffi::OsString;
use std::sync::OnceLock;

/// When text has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless the environment disables it
    #[default]
    Auto,
    /// Also in pipes and files
    Always,
    /// Never
    Never,
}

static CHOSEN: OnceLock<When> = OnceLock::new();

/// Fixes for this process when text has colours. The first call holds.
pub fn choose(when: When) {
    let _ = CHOSEN.set(when);
}

/// Whether a stream shows colours.
pub fn is_shown_on(is_terminal: bool) -> bool {
    let when = CHOSEN.get().copied().unwrap_or_default();
    decide(when, is_terminal, |name| env::var_os(name))
}

/// The same choice for the library that prints help and errors of usage.
pub fn of_help(when: When) -> clap::ColorChoice {
    match when {
        When::Auto => clap::ColorChoice::Auto,
        When::Always => clap::ColorChoice::Always,
        When::Never => clap::ColorChoice::Never,
    }
}

/// `Auto` follows <https://no-color.org> first and <https://bixense.com/clicolors> second.
fn decide(when: When, is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let is_zero = |name: &str| variable(name).is_some_and(|value| value == "0");
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto if is_set("NO_COLOR") => false,
        When::Auto if is_set("CLICOLOR_FORCE") && !is_zero("CLICOLOR_FORCE") => true,
        When::Auto => {
            let can_show = variable("TERM").is_some_and(|term| term != "dumb");
            is_terminal && can_show && !is_zero("CLICOLOR")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_follows_the_environment_and_an_option_does_not() {
        use When::{Always, Auto, Never};
        const XTERM: (&str, &str) = ("TERM", "xterm");
        /// The choice, whether the stream is a terminal, the environment, and whether it has colours.
        type Case = (When, bool, &'static [(&'static str, &'static str)], bool);
        let cases: [Case; 15] = [
            (Auto, true, &[XTERM], true),
            (Auto, false, &[XTERM], false),
            (Auto, true, &[], false),
            (Auto, true, &[("TERM", "dumb")], false),
            (Auto, true, &[XTERM, ("NO_COLOR", "1")], false),
            (Auto, true, &[XTERM, ("NO_COLOR", "0")], false),
            (Auto, true, &[XTERM, ("NO_COLOR", "")], true),
            (Auto, true, &[XTERM, ("CLICOLOR", "0")], false),
            (Auto, true, &[XTERM, ("CLICOLOR", "1")], true),
            (Auto, false, &[("TERM", "dumb"), ("CLICOLOR_FORCE", "1")], true),
            (Auto, false, &[XTERM, ("CLICOLOR_FORCE", "0")], false),
            (Auto, false, &[XTERM, ("CLICOLOR_FORCE", "")], false),
            (Auto, true, &[XTERM, ("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
            (Always, false, &[("NO_COLOR", "1"), ("TERM", "dumb")], true),
            (Never, true, &[XTERM, ("CLICOLOR_FORCE", "1")], false),
        ];
        for (when, is_terminal, variables, expected) in cases {
            let variable = |name: &str| {
                let found = variables.iter().find(|(of, _)| *of == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(decide(when, is_terminal, variable), expected, "{when:?} {variables:?}");
        }
    }
}
