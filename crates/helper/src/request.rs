// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parser for requests of recorders. Pure: the line is untrusted.

use std::fmt;

use crate::{BUFFER_KB_MAX, EVENTS_MAX};

/// One line of a recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request<'a> {
    /// To enable these events: subsystem and name.
    Events(Vec<(&'a str, &'a str)>),
    /// Size of the buffers in KiB per CPU.
    BufferKb(u64),
}

/// Why a line is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrongRequest<'a> {
    /// Neither of the two.
    Unknown(&'a str),
    /// Not `SUBSYSTEM:EVENT` of letters, digits, `_` and `-`.
    Name(&'a str),
    /// More events than a line may have.
    TooMany,
    /// No number from 1 to [`BUFFER_KB_MAX`].
    Size(&'a str),
}

impl fmt::Display for WrongRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => write!(f, "unknown request: {word:.40}"),
            Self::Name(name) => write!(f, "not SUBSYSTEM:EVENT: {name:.80}"),
            Self::TooMany => write!(f, "more than {EVENTS_MAX} events in a line"),
            Self::Size(size) => write!(f, "not 1 to {BUFFER_KB_MAX} KiB: {size:.40}"),
        }
    }
}

impl std::error::Error for WrongRequest<'_> {}

impl<'a> Request<'a> {
    /// Reads a line.
    pub fn parse(line: &'a str) -> Result<Self, WrongRequest<'a>> {
        let (word, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
        match word {
            "events" => {
                let names = rest.split_ascii_whitespace();
                let events: Vec<_> =
                    names.take(EVENTS_MAX + 1).map(event).collect::<Result<_, _>>()?;
                match events.len() > EVENTS_MAX {
                    true => Err(WrongRequest::TooMany),
                    false => Ok(Self::Events(events)),
                }
            }
            "buffer_kb" => {
                let size = rest.parse().ok().filter(|kb| (1..=BUFFER_KB_MAX).contains(kb));
                size.map(Self::BufferKb).ok_or(WrongRequest::Size(rest))
            }
            _ => Err(WrongRequest::Unknown(word)),
        }
    }
}

fn event(text: &str) -> Result<(&str, &str), WrongRequest<'_>> {
    // Nothing that leads out of a directory can be said with these.
    let is_name = |name: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        !name.is_empty() && name.len() <= 128 && name.bytes().all(is_letter)
    };
    let found = text.split_once(':').filter(|(system, name)| is_name(system) && is_name(name));
    found.ok_or(WrongRequest::Name(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_understood() {
        let events = Request::parse("events sched:sched_switch raw_syscalls:sys_enter\n");
        let expected = vec![("sched", "sched_switch"), ("raw_syscalls", "sys_enter")];
        assert_eq!(events, Ok(Request::Events(expected)));
        assert_eq!(Request::parse("buffer_kb 4096"), Ok(Request::BufferKb(4096)));
        assert_eq!(Request::parse("events"), Ok(Request::Events(Vec::new())));
    }

    #[test]
    fn nothing_leads_out_of_the_instance() {
        for name in ["../..:x", "a:..", "a/b:c", "sched", ":", "a:b:c", "a:\0", "ä:b", "."] {
            let line = format!("events {name}");
            assert_eq!(Request::parse(&line), Err(WrongRequest::Name(name)), "{name}");
        }
        let many = format!("events{}", " a:b".repeat(EVENTS_MAX + 1));
        assert_eq!(Request::parse(&many), Err(WrongRequest::TooMany));
        let long = format!("a:{}", "x".repeat(129));
        assert!(Request::parse(&format!("events {long}")).is_err());
        for size in ["", "0", "-1", "65537", "18446744073709551616", "1 2"] {
            let line = format!("buffer_kb {size}");
            assert_eq!(Request::parse(&line), Err(WrongRequest::Size(size)), "{size}");
        }
        assert_eq!(Request::parse("rm -rf"), Err(WrongRequest::Unknown("rm")));
    }
}
