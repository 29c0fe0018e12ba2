// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Meanings that follow from the names of events.

use lateralis_model::role::{Keyed, Role};

use super::definitions::Subsystem;

/// Endings of names that begin and end something together.
const PAIRS: [(&str, &str); 6] = [
    ("_ENTER", "_LEAVE"),
    ("_ENTER", "_DONE"),
    ("_START", "_END"),
    ("_START", "_STOP"),
    ("_START", "_DONE"),
    ("", "_END"),
];

/// Whole names that do.
const WORDS: [(&str, &str); 2] = [("START", "STOP"), ("START", "END")];

/// Clauses for an event of a subsystem.
///
/// The argument of events of `threads` is the address of the object, which identifies the lock;
/// elsewhere spans belong to their thread.
pub(super) fn of(subsystem: &Subsystem, event: &str) -> Vec<Role> {
    let keyed = |name: &str| {
        let keys = if subsystem.name == "threads" { vec!["arg".to_owned()] } else { Vec::new() };
        Keyed { name: format!("{}:{name}", subsystem.name), keys, fans_out: false }
    };
    let mut roles = Vec::new();
    if subsystem.name == "kernel" && event == "CSWITCH" {
        let word = || "application".to_owned();
        roles.push(Role::State { name: word(), field: word(), keys: Vec::new() });
    }
    if subsystem.name == "threads" {
        match event {
            "MUTEX_LOCK_LEAVE" | "MUTEX_LOCK_NESTED_LEAVE" => {
                roles.push(Role::Begin(keyed("MUTEX_HELD")));
            }
            "MUTEX_UNLOCK" => roles.push(Role::End(keyed("MUTEX_HELD"))),
            _ => {}
        }
    }
    let defined = |name: &str| subsystem.numbers.contains_key(name);
    for (begin, end) in WORDS {
        if event == begin && defined(end) {
            roles.push(Role::Begin(keyed("RUN")));
            return roles;
        }
        if event == end && defined(begin) {
            roles.push(Role::End(keyed("RUN")));
            return roles;
        }
    }
    for (begin, end) in PAIRS {
        let of_end = event.strip_suffix(end).filter(|stem| !stem.is_empty());
        if let Some(stem) = of_end.filter(|stem| defined(&format!("{stem}{begin}"))) {
            roles.push(Role::End(keyed(stem)));
            return roles;
        }
        let of_begin = event.strip_suffix(begin).filter(|stem| !stem.is_empty());
        if let Some(stem) = of_begin.filter(|stem| defined(&format!("{stem}{end}"))) {
            roles.push(Role::Begin(keyed(stem)));
            return roles;
        }
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::barrelfish::Definitions;

    #[test]
    fn names_that_pair_begin_and_end_spans() {
        let all = Definitions::legacy();
        let roles = |subsystem: u16, event: &str| {
            let roles = of(all.of(subsystem).unwrap(), event);
            roles.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(roles(0xeeee, "MUTEX_LOCK_ENTER"), ["begin threads:MUTEX_LOCK key arg"]);
        let leave = ["begin threads:MUTEX_HELD key arg", "end threads:MUTEX_LOCK key arg"];
        assert_eq!(roles(0xeeee, "MUTEX_LOCK_LEAVE"), leave);
        assert_eq!(roles(0xeeee, "MUTEX_UNLOCK"), ["end threads:MUTEX_HELD key arg"]);
        assert_eq!(roles(0x2000, "STEAL"), ["begin tweed:STEAL"]);
        assert_eq!(roles(0x2000, "STEAL_END"), ["end tweed:STEAL"]);
        assert_eq!(roles(0x7337, "STOP"), ["end xmpl:RUN"]);
        assert_eq!(roles(0xffff, "CSWITCH"), ["state application application"]);
        assert!(roles(0x7337, "EV1").is_empty());
    }
}
