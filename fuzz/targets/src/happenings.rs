// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces of everything that analyses understand, out of any bytes: once with all events, and
//! once as a recorder without room has them.
//!
//! Four bytes are an event: what happens, who does it and where, a value, and how much later.
//! From a byte above 0xe0 in the first place to the next such of the same processor its events
//! are lost. The bytes before the first event choose a window of time.
//!
//! Where events are lost no thread is on two processors at once: of a lost switch nothing could say that it
//! contradicts the others. Where none are, switches contradict each other as they like.

use lateralis_model::role::ATTRIBUTE;
use lateralis_model::{
    Attribute, Builder, Clock, EventClass, FieldClass, Interval, Loss, LossCause, MemoryTrace,
    StreamClass, StreamIndex, Writer,
};
use lateralis_units::{CpuId, Nanos};

/// Processors, each with a stream.
const CPUS: usize = 3;
/// Bytes before the first event.
const HEAD: usize = 4;

/// Name, roles and fields of each class.
const CLASSES: [(&str, &[&str], &[&str]); 18] = [
    ("t:A", &["begin a"], &[]),
    ("t:A_END", &["end a"], &[]),
    ("t:B", &["begin b"], &[]),
    ("t:B_END", &["end b"], &[]),
    ("t:K", &["begin k key key"], &["key"]),
    ("t:K_END", &["end k key key"], &["key"]),
    ("t:SEND", &["send m key key"], &["key"]),
    ("t:RECV", &["recv m key key"], &["key"]),
    ("t:PUT", &["send o"], &[]),
    ("t:GET", &["recv o"], &[]),
    ("t:WHOLE", &["span w for ns"], &["ns"]),
    ("sched_switch", &[], &["prev_tid", "next_tid", "prev_state"]),
    ("sched_wakeup", &[], &["tid"]),
    ("t:WAIT", &["begin lock_wait key lock"], &["lock"]),
    ("t:GOT", &["end lock_wait key lock", "begin lock_held key lock"], &["lock"]),
    ("t:FREE", &["end lock_held key lock"], &["lock"]),
    ("irq_handler_entry", &[], &["irq"]),
    ("irq_handler_exit", &[], &["irq"]),
];
const SWITCH: u32 = 11;

/// A trace, and what a recorder would have of it.
pub struct Happenings {
    /// With every event.
    pub all: MemoryTrace,
    /// Without the lost events, and with these losses reported.
    pub seen: MemoryTrace,
    /// A part of the time, or all of it.
    pub window: Interval,
}

struct Step {
    class: u32,
    cpu: usize,
    writer: Option<Writer>,
    value: u8,
    time: i64,
}

/// The traces of an input.
#[must_use]
pub fn read(input: &[u8]) -> Happenings {
    let (head, rest) = input.split_at(input.len().min(HEAD));
    let (mut all, mut seen) = (builder(), builder());
    let mut running = [[0_u64; CPUS]; 2];
    // Of each processor: since when events are lost, and how many were.
    let mut lost: [Option<(Option<i64>, u64)>; CPUS] = [None; CPUS];
    let mut last: [Option<i64>; CPUS] = [None; CPUS];
    let mut time = 0;
    let is_lossy = rest.chunks_exact(4).any(|bytes| bytes[0] > 0xe0);
    for bytes in rest.chunks_exact(4) {
        // No two at once: their order would be ambiguous.
        time += 1 + i64::from(bytes[3]);
        let cpu = usize::from(bytes[1] >> 3) % CPUS;
        if bytes[0] > 0xe0 {
            lost[cpu] = match lost[cpu] {
                None => Some((last[cpu], 0)),
                Some(open) => {
                    tell(&mut seen, cpu, open, Some(time), bytes[2]);
                    // It has been noticed now.
                    last[cpu] = Some(time);
                    None
                }
            };
            continue;
        }
        let tid = u32::from(bytes[1] & 7);
        let writer = (bytes[1] & 0x80 == 0).then_some(Writer { pid: tid / 3, tid });
        let class = u32::from(bytes[0]) % CLASSES.len() as u32;
        let is_elsewhere = |to: u64| {
            let others = running[0].iter().enumerate().filter(|(other, _)| *other != cpu);
            to != 0 && others.map(|(_, thread)| *thread).any(|thread| thread == to)
        };
        let value = match class == SWITCH && is_lossy && is_elsewhere(number(bytes[2])) {
            true => 0,
            false => bytes[2],
        };
        let step = Step { class, cpu, writer, value, time };
        add(&mut all, &step, &mut running[0]);
        match &mut lost[cpu] {
            Some((_, count)) => *count += 1,
            None => {
                last[cpu] = Some(time);
                add(&mut seen, &step, &mut running[1]);
            }
        }
        // The kernel knows who leaves, also where a switch was not recorded.
        running[1] = running[0];
    }
    for (cpu, open) in lost.into_iter().enumerate() {
        if let Some(open) = open {
            tell(&mut seen, cpu, open, None, 0);
        }
    }
    let bound = |at: usize| {
        let of = head.get(at..at + 2).map(|two| i64::from(u16::from_le_bytes([two[0], two[1]])));
        of.filter(|of| *of != 0).map(Nanos)
    };
    let window = Interval { begin: bound(0), end: bound(2) };
    Happenings { all: all.finish(), seen: seen.finish(), window }
}

fn builder() -> Builder {
    let mut builder = MemoryTrace::builder("fuzz", u64::MAX);
    let clock = builder.clock(Clock::new("nanoseconds", 1_000_000_000, 0, 0));
    let stream = builder.stream_class(StreamClass { clock: Some(clock), ..StreamClass::default() });
    for (name, roles, fields) in CLASSES {
        let role = |role: &&str| Attribute { name: ATTRIBUTE.into(), value: (*role).into() };
        let fields = fields.iter().map(|field| (*field, FieldClass::u64()));
        builder.event_class(
            stream,
            EventClass {
                name: name.into(),
                attributes: roles.iter().map(role).collect(),
                payload: Some(FieldClass::structure(fields)),
                ..EventClass::default()
            },
        );
    }
    for cpu in 0..CPUS {
        builder.stream(stream, &format!("cpu{cpu}"), Some(CpuId(cpu as u32)));
    }
    builder
}

/// Most values are few, so that they meet each other.
fn number(value: u8) -> u64 {
    match value {
        0xff => u64::MAX,
        0xfe => u64::from(u32::MAX),
        value => u64::from(value) % 7,
    }
}

fn add(builder: &mut Builder, step: &Step, running: &mut [u64; CPUS]) {
    let stream = StreamIndex(step.cpu as u32);
    let event = builder.event(stream, step.class, step.time as u64, step.writer);
    let value = number(step.value);
    let event = match CLASSES[step.class as usize].2.len() {
        0 => event,
        1 if CLASSES[step.class as usize].2 == ["ns"] => event.u64(value.saturating_mul(40)),
        1 => event.u64(value),
        _ => event.u64(running[step.cpu]).u64(value).u64(u64::from(step.value >> 6)),
    };
    event.end().expect("no limit");
    if step.class == SWITCH {
        running[step.cpu] = value;
    }
}

/// A producer knows how many, or only that there were some.
fn tell(
    builder: &mut Builder,
    cpu: usize,
    (since, count): (Option<i64>, u64),
    until: Option<i64>,
    value: u8,
) {
    let count = (value < 0x80).then_some(count);
    let interval = Interval { begin: since.map(Nanos), end: until.map(Nanos) };
    let stream = StreamIndex(cpu as u32);
    builder.loss(Loss { stream, cause: LossCause::Full, count, interval });
}

/// Everything there is in turn, without and with losses and a window.
#[must_use]
pub fn good() -> Vec<Vec<u8>> {
    let events = |rounds: usize, is_lossy: bool| -> Vec<u8> {
        let mut bytes = vec![0; HEAD];
        for at in 0..rounds * CLASSES.len() {
            let (round, class) = (at / CLASSES.len(), at % CLASSES.len());
            // The end of a span by the thread that began it; messages by another.
            let who = (round % 3) as u8 + if class % 7 == 0 { 1 } else { 0 };
            let place = (round % CPUS) as u8;
            let asks = if round % 4 == 3 { 0x80 } else { 0 };
            bytes.extend([class as u8, who | place << 3 | asks, (round % 5) as u8, class as u8]);
            if is_lossy && (at % 41 == 17 || at % 41 == 25) {
                bytes.extend([0xf0, ((at / 41 % CPUS) as u8) << 3, 1, 0]);
            }
        }
        bytes
    };
    let mut window = events(5, true);
    window[..HEAD].copy_from_slice(&[200, 0, 0x40, 6]);
    vec![events(3, false), events(6, true), window, events(12, true)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::Source;

    #[test]
    fn what_is_seen_is_all_without_what_is_lost() {
        let happenings = read(&good()[1]);
        assert!(happenings.seen.len() < happenings.all.len());
        assert!(happenings.seen.len() > happenings.all.len() / 2);
        let told = happenings.seen.losses().iter().map(|loss| loss.count.unwrap_or(0));
        assert_eq!(told.sum::<u64>() as usize, happenings.all.len() - happenings.seen.len());
        assert!(happenings.all.losses().is_empty());
        let plain = read(&good()[0]);
        assert_eq!(plain.all.len(), plain.seen.len());
        assert!(read(&[]).all.is_empty());
    }
}
