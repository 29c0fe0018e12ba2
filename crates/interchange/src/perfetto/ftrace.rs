// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of the kernel, as Perfetto carries them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use super::wire::{Message, Wire, packed, zigzag};
use crate::dynamic::{Dyn, Named, make_unique};

/// A kind of kernel event: its name and its fields by number.
pub struct Kind {
    pub name: &'static str,
    fields: Vec<(u32, u8, bool, &'static str)>,
}

/// All kinds, by field number in `FtraceEvent`.
pub fn kinds() -> &'static HashMap<u32, Kind> {
    static KINDS: OnceLock<HashMap<u32, Kind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let lines = include_str!("ftrace_events.txt").lines();
        lines.filter(|line| !line.starts_with('#')).filter_map(kind).collect()
    })
}

fn kind(line: &'static str) -> Option<(u32, Kind)> {
    let mut words = line.split(' ');
    let number = words.next()?.parse().ok()?;
    let name = words.next()?;
    let field = |word: &'static str| {
        let (kind, name) = word.split_once(':')?;
        let (kind, repeated) = match kind.strip_suffix('*') {
            Some(kind) => (kind, true),
            None => (kind, false),
        };
        let (number, letter) = kind.split_at(kind.len() - 1);
        Some((number.parse().ok()?, letter.as_bytes()[0], repeated, name))
    };
    Some((number, Kind { name, fields: words.filter_map(field).collect() }))
}

fn scalar<'a>(letter: u8, value: Wire<'a>) -> Dyn<'a> {
    match letter {
        b'i' => Dyn::Signed(value.number() as i64),
        b'z' => Dyn::Signed(zigzag(value.number())),
        b'w' => Dyn::Signed(i64::from(value.number() as i32)),
        b'W' => Dyn::Signed(value.number() as i64),
        b'b' => Dyn::Bool(value.number() != 0),
        b's' => Dyn::Text(value.text()),
        b'y' | b'm' => Dyn::Bytes(value.bytes().into()),
        b'd' | b'f' => Dyn::Real(value.real()),
        _ => Dyn::Unsigned(value.number()),
    }
}

/// The fields of a kernel event, by its kind where that is known.
pub fn fields<'a>(kind: Option<&Kind>, message: Message<'a>) -> Named<'a> {
    let mut named: Named<'a> = Vec::new();
    for (number, value) in message {
        let known = kind.and_then(|kind| kind.fields.iter().find(|field| field.0 == number));
        let Some(&(_, letter, repeated, name)) = known else {
            named.push((format!("field_{number}").into(), unknown(value)));
            continue;
        };
        if !repeated {
            named.push((name.into(), scalar(letter, value)));
            continue;
        }
        let packs = matches!(value, Wire::Bytes(_)) && !matches!(letter, b's' | b'y' | b'm');
        let elements: Vec<Dyn<'a>> = if packs {
            packed(value.bytes()).map(|number| scalar(letter, Wire::Varint(number))).collect()
        } else {
            vec![scalar(letter, value)]
        };
        match named.iter_mut().find(|(other, _)| other == name) {
            Some((_, Dyn::List(list))) => list.extend(elements),
            _ => named.push((name.into(), Dyn::List(elements))),
        }
    }
    make_unique(&mut named);
    named
}

/// A field of which only the wire type is known.
pub fn unknown(value: Wire<'_>) -> Dyn<'_> {
    match value {
        Wire::Varint(number) => Dyn::Unsigned(number),
        Wire::Fixed64(number) => Dyn::Hex(number),
        Wire::Fixed32(number) => Dyn::Hex(u64::from(number)),
        Wire::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains(|c: char| c.is_control()) => Dyn::Text(Cow::Borrowed(text)),
            _ => Dyn::Bytes(bytes.into()),
        },
    }
}

/// A `GenericFtraceEvent`: its name and fields.
pub fn generic(message: Message<'_>) -> (Cow<'_, str>, Named<'_>) {
    let mut name = Cow::Borrowed("generic");
    let mut named: Named<'_> = Vec::new();
    for (number, value) in message {
        match number {
            1 => name = value.text(),
            2 => {
                let mut field = (Cow::Borrowed(""), Dyn::Null);
                for (number, value) in value.message() {
                    match number {
                        1 => field.0 = value.text(),
                        3 => field.1 = Dyn::Text(value.text()),
                        4 => field.1 = Dyn::Signed(value.number() as i64),
                        5 => field.1 = Dyn::Unsigned(value.number()),
                        _ => (),
                    }
                }
                named.push(field);
            }
            _ => (),
        }
    }
    make_unique(&mut named);
    (name, named)
}

/// An event from `CompactSched`, whose fields are in columns.
pub struct Compact<'a> {
    pub name: &'static str,
    pub time: u64,
    pub fields: Named<'a>,
    /// The task that it is about: the next one to run, or the one that wakes.
    pub task: i64,
    pub comm: Cow<'a, str>,
    /// What the processor did, of an event that says so.
    pub flags: Option<u64>,
}

/// All events of a message `CompactSched`, switches before wakings. Columns that
/// are shorter than that of times read as zero.
pub fn compact(message: Message<'_>) -> Vec<Compact<'_>> {
    let mut table: Vec<Cow<'_, str>> = Vec::new();
    let mut columns: [Vec<u64>; 13] = std::array::from_fn(|_| Vec::new());
    for (number, value) in message {
        match (number, value) {
            (5, _) => table.push(value.text()),
            (1..=12, Wire::Bytes(bytes)) => columns[number as usize].extend(packed(bytes)),
            (1..=12, _) => columns[number as usize].push(value.number()),
            _ => (),
        }
    }
    let at = |column: usize, row: usize| columns[column].get(row).copied().unwrap_or(0);
    let comm = |index: u64| table.get(index as usize).cloned().unwrap_or_default();
    let mut events = Vec::new();
    let mut time = 0u64;
    for row in 0..columns[1].len() {
        time = time.saturating_add(at(1, row));
        let task = i64::from(at(3, row) as i32);
        let name = comm(at(6, row));
        let fields = vec![
            ("prev_state".into(), Dyn::Signed(at(2, row) as i64)),
            ("next_comm".into(), Dyn::Text(name.clone())),
            ("next_pid".into(), Dyn::Signed(task)),
            ("next_prio".into(), Dyn::Signed(i64::from(at(4, row) as i32))),
        ];
        events.push(Compact { name: "sched_switch", time, fields, task, comm: name, flags: None });
    }
    time = 0;
    for row in 0..columns[7].len() {
        time = time.saturating_add(at(7, row));
        let task = i64::from(at(8, row) as i32);
        let name = comm(at(11, row));
        let fields = vec![
            ("comm".into(), Dyn::Text(name.clone())),
            ("pid".into(), Dyn::Signed(task)),
            ("prio".into(), Dyn::Signed(i64::from(at(10, row) as i32))),
            ("target_cpu".into(), Dyn::Signed(i64::from(at(9, row) as i32))),
        ];
        // Newer traces only.
        let flags = columns[12].get(row).copied();
        events.push(Compact { name: "sched_waking", time, fields, task, comm: name, flags });
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_kinds_is_read_completely() {
        let kinds = kinds();
        let lines = include_str!("ftrace_events.txt").lines();
        assert_eq!(kinds.len(), lines.filter(|line| !line.starts_with('#')).count());
        assert!(kinds.len() > 500);
        let switch = &kinds[&4];
        assert_eq!((switch.name, switch.fields.len()), ("sched_switch", 7));
        assert_eq!(switch.fields[3], (4, b'i', false, "prev_state"));
    }
}
