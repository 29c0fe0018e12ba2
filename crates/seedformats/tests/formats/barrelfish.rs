// SPDX-License-Identifier: Apache-2.0 OR MIT

use lateralis_model::{Dropped, LossCause, MemoryTrace, Source};
use lateralis_seedformats::barrelfish::{
    Definitions, Options, read, read_buffers, read_with, sniff, sniff_buffers, write,
};

use crate::{listing, roles, shared};

fn text(source: &dyn Source, definitions: &Definitions) -> (String, Dropped) {
    let mut out = Vec::new();
    let dropped = write(source, &mut out, definitions).unwrap();
    (String::from_utf8(out).unwrap(), dropped)
}

fn current() -> Options {
    let mut definitions = Definitions::default();
    definitions.subsystem(0, "kernel");
    definitions.event(0, 0, "CSWITCH", "Context Switch");
    definitions.subsystem(2, "threads");
    definitions.event(2, 2, "MUTEX_LOCK_ENTER", "");
    definitions.event(2, 3, "MUTEX_LOCK_LEAVE", "");
    Options { definitions, frequency_hz: Some(2_000_000_000) }
}

/// Core 1 is 505 cycles ahead, printed as Barrelfish prints it.
const DUMP: &str = "\
# Start 1000 Duration 0 Stop 18446744073709551615
# Min_timestamp 1000
# Core 0 LOG DUMP ==================================================
# DCB 0 ffffff8002656c00 app
0 1000 2656c00
0 1100 2000200000040
0 1300 2000300000040
# Core 1 LOG DUMP ==================================================
# Offset 1 9223372036854775303
# DCB 1 ffffff8002656c00 other
1 1555 2656c00
1 1705 ea00000000abc001
# Core 2 LOG DUMP ==================================================
2 1400 eb00000000abc002
";

#[test]
fn offsets_are_put_right_and_switches_tell_the_application() {
    assert!(sniff(DUMP.as_bytes()));
    let trace = read_with("d", DUMP.as_bytes(), u64::MAX, &current()).unwrap();
    assert!(trace.damage().is_empty() && trace.remarks().is_empty());
    let expected = [
        "500 core 0 kernel:CSWITCH cpu_id=0 arg=40201216 application='app'",
        "525 core 1 kernel:CSWITCH cpu_id=1 arg=40201216 application='other'",
        "550 core 0 threads:MUTEX_LOCK_ENTER cpu_id=0 arg=64",
        "600 core 1 ump:send cpu_id=1 channel=11255808 low_bits=1",
        "650 core 0 threads:MUTEX_LOCK_LEAVE cpu_id=0 arg=64",
        "700 core 2 ump:receive cpu_id=2 channel=11255808 low_bits=2",
    ];
    assert_eq!(listing(&trace), expected);
    let names = &trace.names().processes;
    let mut writers = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        writers.push(event.writer.map_or("", |writer| names[&writer.pid].as_str()));
    }
    assert_eq!(writers, ["app", "other", "app", "other", "app", ""]);
    assert_eq!(roles(&trace, "ump:send"), ["send ump key channel"]);
    assert_eq!(roles(&trace, "threads:MUTEX_LOCK_ENTER"), ["begin threads:MUTEX_LOCK key arg"]);
}

#[test]
fn a_dump_is_written_as_it_was_read() {
    let trace = read_with("d", DUMP.as_bytes(), u64::MAX, &current()).unwrap();
    let (written, dropped) = text(&trace, &Definitions::default());
    assert!(dropped.is_empty(), "{dropped:?}");
    let again = read_with("d", written.as_bytes(), u64::MAX, &current()).unwrap();
    assert_eq!(listing(&again), listing(&trace));
    assert_eq!(again.names(), trace.names());
    assert_eq!(again.trace().environment, trace.trace().environment);
    // Line by line it is the dump, in the order of time and with the right sign.
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&written), sorted(&DUMP.replace("9223372036854775303", "-505")));
}

#[test]
fn times_before_the_zero_of_core_0_are_kept() {
    let dump = "# Min_timestamp 5\n# Offset 1 -100\n0 5 7337000100000000\n1 10 7337000200000000\n";
    let trace = read("d", dump.as_bytes(), u64::MAX).unwrap();
    let expected = ["-90 core 1 xmpl:STOP cpu_id=1 arg=0", "5 core 0 xmpl:START cpu_id=0 arg=0"];
    assert_eq!(listing(&trace), expected);
    let (written, _) = text(&trace, &Definitions::default());
    assert!(written.contains("\n1 10 7337000200000000\n"), "{written}");
}

#[test]
fn a_second_start_of_an_old_dump_shifts_what_follows() {
    let dump = "# Start 1000 Duration 0 Stop 0\n0 7 7337000100000000\n\
                # Start 5000 Duration 0 Stop 0\n0 7 7337000200000000\n";
    let trace = read("d", dump.as_bytes(), u64::MAX).unwrap();
    let expected = ["7 core 0 xmpl:START cpu_id=0 arg=0", "4007 core 0 xmpl:STOP cpu_id=0 arg=0"];
    assert_eq!(listing(&trace), expected);
}

#[test]
fn old_messages_have_numbers_and_lines_without_a_header_are_a_dump() {
    let dump =
        "0 1 eeee010000000001\n0 2 ea12345678000009\n0 3 1234000700000000\n0 4 5555000700000001\n";
    assert!(sniff(dump.as_bytes()));
    let trace = read("d", dump.as_bytes(), u64::MAX).unwrap();
    let expected = [
        "1 core 0 threads:BARRIER_ENTER cpu_id=0 arg=1",
        "2 core 0 ump:send cpu_id=0 channel=305419896 sequence=9",
        "3 core 0 bench:0x0007 cpu_id=0 arg=0",
        "4 core 0 0x5555:0x0007 cpu_id=0 arg=1",
    ];
    assert_eq!(listing(&trace), expected);
    assert!(text(&trace, &Definitions::default()).0.contains("0 2 ea12345678000009\n"));
}

#[test]
fn bad_lines_are_damage_and_a_cut_one_is_no_event() {
    let dump = "00000092# Start 1 Duration 0 Stop 0\n\x000 5 7337000100000000\nnoise\n\
                more noise\n0 6 7337000200000000\n0 7 73370003";
    let trace = read("d", dump.as_bytes(), u64::MAX).unwrap();
    assert_eq!(listing(&trace).len(), 2);
    let damage: Vec<_> = trace.damage().iter().map(|d| (d.begin_bytes, d.end_bytes)).collect();
    let (noise, cut) = (dump.find("noise").unwrap() as u64, dump.find("0 7").unwrap() as u64);
    assert_eq!(damage, [(noise, noise + 17), (cut, dump.len() as u64)]);
    let whole = "0 7 7337000300000000";
    assert_eq!(read("d", whole.as_bytes(), u64::MAX).unwrap().len(), 1);
    assert!(read("d", b"nothing of it\n", u64::MAX).is_err());
}

#[test]
fn the_recorded_dump_is_read_completely() {
    let Some(bytes) = shared("barrelfish/atrace.trc") else { return };
    let trace = read("atrace.trc", &bytes, u64::MAX).unwrap();
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    let file = String::from_utf8(bytes.clone()).unwrap();
    assert_eq!(file.lines().count(), 365);
    let events: Vec<&str> =
        file.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert_eq!(trace.len(), events.len());
    let count = |part: &str| events.iter().filter(|line| line.contains(part)).count();
    let named = |name: &str| listing(&trace).iter().filter(|line| line.contains(name)).count();
    assert_eq!(named(" threads:MUTEX_UNLOCK "), count(" eeee0205"));
    assert_eq!(named(" kernel:CSWITCH "), count(" ffffcccc"));
    assert_eq!(named(" xmpl:EV2 "), count(" 733700040000"));
    assert_eq!(named("0x"), 0, "every event has a name");
    let names: Vec<&String> = trace.names().processes.values().collect();
    for name in ["idle", "xmpl-tra", "spawnd", "monitor"] {
        assert!(names.iter().any(|known| *known == name), "{name}: {names:?}");
    }
    let (written, dropped) = text(&trace, &Definitions::default());
    assert!(dropped.is_empty(), "{dropped:?}");
    for line in events {
        assert!(written.lines().any(|of| of == line), "{line}");
    }
    let again = read("again", written.as_bytes(), u64::MAX).unwrap();
    assert_eq!(listing(&again), listing(&trace));
    assert_eq!(text(&again, &Definitions::default()).0, written);
}

fn buffers() -> Vec<u8> {
    let mut bytes = vec![0; 2 * 642_144];
    let mut put = |at: usize, value: u64| {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    // Core 0: slots 19999 and 0 hold events, the ring has wrapped.
    put(0, 1);
    put(8, 19_998);
    put(64, 500);
    put(88 + 19_999 * 16, 600);
    put(88 + 19_999 * 16 + 8, 0x2656c00);
    put(88, 700);
    put(88 + 8, 0x0002_0002_0000_0040);
    put(320_088, 1);
    put(320_096, u64::from_le_bytes(*b"spawnd\0\0"));
    put(320_104, 0xffff_ff80_0265_6c00);
    // Core 1: full, and 505 cycles ahead.
    let at = 642_144;
    put(at, 9);
    put(at + 8, 10);
    put(at + 56, (1 << 63) - 505);
    for slot in (0..20_000).filter(|slot| !(9..=10).contains(slot)) {
        put(at + 88 + slot * 16, 10_000 + slot as u64);
        put(at + 88 + slot * 16 + 8, 0x0002_0003_0000_0000);
    }
    bytes
}

#[test]
fn raw_buffers_are_read_in_the_order_of_their_rings() {
    let bytes = buffers();
    assert!(sniff_buffers(&bytes[..4096], bytes.len() as u64));
    assert!(!sniff_buffers(&bytes[..4096], bytes.len() as u64 - 1));
    let trace = read_buffers("b", &bytes, u64::MAX, &current()).unwrap();
    let lines = listing(&trace);
    assert_eq!(lines[0], "300 core 0 kernel:CSWITCH cpu_id=0 arg=40201216 application='spawnd'");
    assert_eq!(lines[1], "350 core 0 threads:MUTEX_LOCK_ENTER cpu_id=0 arg=64");
    assert_eq!(lines[2], "4747 core 1 threads:MUTEX_LOCK_LEAVE cpu_id=1 arg=0");
    assert_eq!(lines.len(), 2 + 19_998);
    assert_eq!(trace.losses().len(), 1);
    assert_eq!(trace.losses()[0].cause, LossCause::Full);
    // Half of the second buffer: its events up to there.
    let trace = read_buffers("b", &bytes[..642_144 + 88 + 16_000], u64::MAX, &current()).unwrap();
    assert_eq!(trace.len(), 2 + 998);
    assert_eq!(trace.damage().len(), 1);
}

#[test]
fn events_of_other_sources_need_a_number_and_lose_what_has_no_place() {
    use lateralis_model::{EventClass, FieldClass, StreamClass};
    let mut builder = MemoryTrace::builder("test", u64::MAX);
    let clock = builder.clock(lateralis_model::Clock::default());
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
    let fields = [("mutex", FieldClass::u64()), ("depth", FieldClass::u64())];
    let event = |name: &str| EventClass {
        name: name.to_owned(),
        payload: Some(FieldClass::structure(fields.clone())),
        ..Default::default()
    };
    let lock = builder.event_class(class, event("threads:MUTEX_LOCK_ENTER"));
    let other = builder.event_class(class, event("app:OTHER"));
    let stream = builder.stream(class, "s", Some(lateralis_units::CpuId(3)));
    builder.event(stream, lock, 17, None).u64(0x1_0000_0040).u64(1).end().unwrap();
    builder.event(stream, other, 18, None).u64(1).u64(1).end().unwrap();
    let (written, dropped) = text(&builder.finish(), &current().definitions);
    assert!(written.ends_with("\n3 17 2000200000040\n"), "{written}");
    let dropped: Vec<_> = dropped.iter().collect();
    let expected = [
        ("events app:OTHER: no number is defined", 1),
        ("fields threads:MUTEX_LOCK_ENTER.depth", 1),
        ("upper halves of arguments", 1),
    ];
    assert_eq!(dropped, expected);
}

/// The console mixes in lines of others, or the first line is cut.
#[test]
fn a_dump_with_lines_of_others_is_known_and_read() {
    let events = "0 1 eeee010000000001\n0 2 ea12345678000009\n0 3 1234000700000000\n";
    for (dump, others) in [
        (format!("# Start 1 Duration 0 Stop 0\nkernel: hello\n{events}"), 1),
        (format!("0060c950\n{events}"), 1),
        (format!("{events}0 99999999999999999999999 eeee010000000001\n0 4 zz\n"), 2),
    ] {
        assert!(sniff(dump.as_bytes()), "{dump}");
        let trace = read("d", dump.as_bytes(), u64::MAX).unwrap();
        assert_eq!(listing(&trace).len(), 3, "{dump}");
        let bad: u64 = trace.damage().iter().map(|of| of.end_bytes - of.begin_bytes).sum();
        let lines = dump.lines().filter(|line| !line.starts_with('#') && !events.contains(line));
        let (count, bytes) = lines.fold((0, 0), |(n, sum), line| (n + 1, sum + line.len() + 1));
        assert_eq!((count, bytes as u64), (others, bad), "{dump}");
    }
    // Tables of numbers, and notes that mention a start.
    assert!(!sniff(b"x y z\n1 2 3\n4 5 6\n7 8 9\n"));
    assert!(!sniff(b"# Start 5 minutes early\nbring a coat\n"));
}
