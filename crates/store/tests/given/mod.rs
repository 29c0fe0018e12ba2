// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Available traces, and meanings for those that have none.

use std::path::{Path, PathBuf};

use lateralis_model::role::{ATTRIBUTE, Keyed, Role};
use lateralis_model::{Attribute, FieldKind, Trace};

/// Traces with a larger file would take too long here.
const LARGEST_BYTES: u64 = 64 << 20;

/// CTF traces in a folder whose files are not too large.
pub fn traces(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    let size = |path: &PathBuf| path.metadata().map_or(0, |data| data.len());
    if entries.iter().any(|path| path.ends_with("metadata"))
        && entries.iter().all(|path| size(path) < LARGEST_BYTES)
    {
        found.push(folder.to_owned());
    }
    entries.iter().filter(|path| path.is_dir()).for_each(|path| traces(path, found));
}

/// Gives classes every kind of role in turn, depending on their fields.
pub fn give_meanings(trace: &mut Trace) {
    for stream in &mut trace.stream_classes {
        for (turn, class) in stream.event_classes.iter_mut().enumerate() {
            let members = class.payload.as_ref().map_or(&[][..], |payload| payload.members());
            let is_number = |kind: &FieldKind| {
                matches!(kind, FieldKind::Unsigned(_) | FieldKind::Signed(_) | FieldKind::Bool)
            };
            let number = members.iter().find(|member| is_number(&member.class.kind));
            let other = members.iter().find(|member| !is_number(&member.class.kind));
            let keyed =
                |keys: Vec<String>| Keyed { name: format!("s{}", turn % 3), keys, fans_out: false };
            let key = |member: Option<&lateralis_model::Member>| {
                member.map(|member| member.name.clone()).into_iter().collect::<Vec<_>>()
            };
            let mut roles = vec![match turn % 7 {
                0 => Role::Begin(keyed(Vec::new())),
                1 => Role::End(keyed(Vec::new())),
                2 => Role::Begin(keyed(key(number))),
                3 => Role::End(keyed(key(number))),
                4 => Role::Send(keyed(key(number.or(other)))),
                5 => Role::Receive(keyed(key(other.or(number)))),
                _ => Role::Begin(keyed(key(other))),
            }];
            if let Some(member) = number.filter(|_| turn % 2 == 0) {
                roles.push(Role::Counter { field: member.name.clone(), name: None, keys: vec![] });
                let duration = member.name.clone();
                roles.push(Role::Span { name: "whole".into(), duration });
            }
            if let Some(member) = other.or(number).filter(|_| turn % 5 == 0) {
                let (name, field) = (member.name.clone(), member.name.clone());
                roles.push(Role::State { name, field, keys: vec![] });
            }
            for role in roles {
                let (name, value) = (ATTRIBUTE.to_owned(), role.to_string());
                class.attributes.push(Attribute { name, value });
            }
        }
    }
}

/// Makes most classes begin and end spans of their threads.
pub fn give_edges(trace: &mut Trace) {
    for stream in &mut trace.stream_classes {
        for (turn, class) in stream.event_classes.iter_mut().enumerate() {
            let members = class.payload.as_ref().map_or(&[][..], |payload| payload.members());
            let first = members.first().map(|member| member.name.clone());
            let keyed = |keys: Vec<String>| Keyed {
                name: format!("s{}", turn / 2 % 3),
                keys,
                fans_out: false,
            };
            let role = match (turn % 6, first) {
                (4, Some(field)) => Role::Begin(keyed(vec![field])),
                (5, Some(field)) => Role::Counter { field, name: None, keys: vec![] },
                (0 | 2 | 4, _) => Role::Begin(keyed(Vec::new())),
                _ => Role::End(keyed(Vec::new())),
            };
            let (name, value) = (ATTRIBUTE.to_owned(), role.to_string());
            class.attributes.push(Attribute { name, value });
        }
    }
}

/// Makes some classes begin and end spans of their threads, without other roles.
pub fn give_only_edges(trace: &mut Trace) {
    for stream in &mut trace.stream_classes {
        for (turn, class) in stream.event_classes.iter_mut().enumerate() {
            let keyed = Keyed { name: format!("s{}", turn / 3 % 3), ..Keyed::default() };
            let role = match turn % 3 {
                0 => Role::Begin(keyed),
                1 => Role::End(keyed),
                _ => continue,
            };
            let (name, value) = (ATTRIBUTE.to_owned(), role.to_string());
            class.attributes.retain(|attribute| attribute.name != ATTRIBUTE);
            class.attributes.push(Attribute { name, value });
        }
    }
}
