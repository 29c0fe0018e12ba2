// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What Wireshark's tools say about the same files.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use lateralis_model::Source;
use lateralis_pcapng::{Options, read, write};
use support::{Seen, captures, packets};

/// Time, interface, captured bytes, original bytes, direction, comment.
type Row = (Option<i64>, String, usize, u64, u64, String);

/// The packets as tshark lists them, each with the number of its section; `None`
/// where there is no tshark.
fn tshark(path: &Path) -> Option<Vec<(u32, Row)>> {
    let fields = ["section_number", "interface_name", "time_epoch", "cap_len", "len"];
    let more = ["packet_flags_direction", "comment"];
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-r"]).arg(path);
    for field in fields.iter().chain(&more) {
        command.args(["-e", &format!("frame.{field}")]);
    }
    let Ok(output) = command.output() else {
        println!("SKIPPED: tshark is absent");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap_or("").to_owned();
        let (section, interface, time) = (cell(), cell(), cell());
        // Custom blocks are frames without an interface.
        let section = section.parse().ok().filter(|_| !interface.is_empty())?;
        let time = time.split_once('.').map(|(seconds, nanos)| {
            seconds.parse::<i64>().unwrap() * 1_000_000_000 + nanos.parse::<i64>().unwrap()
        });
        let (captured, original) = (cell().parse().unwrap(), cell().parse().unwrap());
        let direction = cell();
        let direction = direction
            .strip_prefix("0x")
            .map_or(0, |hexadecimal| u64::from_str_radix(hexadecimal, 16).unwrap());
        Some((section, (time, interface, captured, original, direction, cell())))
    };
    Some(text.lines().filter_map(row).collect())
}

fn row(seen: &Seen) -> Row {
    let comment = seen.comment.clone().unwrap_or_default().replace('\n', ",");
    // tshark escapes what is no printable character.
    let interface = seen.interface.replace('\r', "\\r").replace('\n', "\\n");
    (seen.time, interface, seen.data.len(), seen.original, seen.direction, comment)
}

fn sorted(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    let mut rows: Vec<Row> = rows.collect();
    rows.sort();
    rows
}

fn temporary(name: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("lateralis-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Without the files that tshark refuses.
fn good() -> Vec<PathBuf> {
    let refused = ["rshk-test007.ntar", "rshk-test010.ntar"];
    let mut all = captures();
    all.retain(|path| !refused.iter().any(|name| path.ends_with(name)));
    all
}

#[test]
fn packets_of_files_with_one_section_are_those_of_tshark() {
    let names = ["test001", "test018", "test102", "test100"];
    for path in good() {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !names.contains(&stem.as_str()) {
            continue;
        }
        let Some(expected) = tshark(&path) else { return };
        let trace = read(&stem, &std::fs::read(&path).unwrap(), u64::MAX).unwrap();
        assert!(trace.damage().is_empty(), "{stem}: {:?}", trace.damage());
        let expected = sorted(expected.into_iter().map(|(_, row)| row));
        assert!(!expected.is_empty(), "{stem}");
        assert_eq!(sorted(packets(&trace).iter().map(row)), expected, "{stem}");
    }
}

/// All good files as one: sections may follow each other.
fn joined() -> Vec<u8> {
    good().iter().flat_map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn all_files_as_one_have_the_packets_of_tshark_whose_names_are_right_in_the_first_section() {
    let bytes = joined();
    if bytes.is_empty() {
        return;
    }
    let path = temporary("joined.pcapng", &bytes);
    let expected = tshark(&path);
    std::fs::remove_file(&path).unwrap();
    let Some(expected) = expected else { return };
    let trace = read("joined", &bytes, u64::MAX).unwrap();
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    let seen = packets(&trace);
    assert!(expected.len() > 70, "{} packets", expected.len());
    // tshark 4.0 gives names of other sections; so here without them.
    let nameless = |(time, _, captured, original, direction, comment)| {
        (time, String::new(), captured, original, direction, comment)
    };
    let expected = sorted(expected.into_iter().map(|(_, row)| nameless(row)));
    assert_eq!(sorted(seen.iter().map(row).map(nameless)), expected);
}

#[test]
fn what_we_write_is_read_by_tshark_and_capinfos_as_we_mean_it() {
    let bytes = joined();
    if bytes.is_empty() {
        return;
    }
    let trace = read("joined", &bytes, u64::MAX).unwrap();
    let mut written = Vec::new();
    let dropped = write(&trace, &mut written, &Options::default()).unwrap();
    println!("{dropped:?}");
    let path = temporary("written.pcapng", &written);
    let listed = tshark(&path);
    let facts = Command::new("capinfos").args(["-T", "-r", "-M", "-c"]).arg(&path).output();
    std::fs::remove_file(&path).unwrap();
    let Some(listed) = listed else { return };
    let expected = sorted(packets(&trace).iter().map(row));
    // A simple packet is of the first interface: the others got a time.
    let timeless = |rows: &[Row]| rows.iter().filter(|row| row.0.is_none()).count();
    let count = dropped.iter().find(|(what, _)| what.contains("absence")).map_or(0, |(_, n)| n);
    let listed = sorted(listed.into_iter().map(|(_, row)| row));
    assert_eq!(timeless(&expected) as u64, timeless(&listed) as u64 + count);
    let with_times = |rows: Vec<Row>| {
        let time = |(time, a, b, c, d, e): Row| (time.or(Some(0)), a, b, c, d, e);
        sorted(rows.into_iter().map(time))
    };
    assert_eq!(with_times(listed), with_times(expected.clone()));
    let facts = String::from_utf8(facts.unwrap().stdout).unwrap();
    let count = facts.trim().rsplit('\t').next().unwrap();
    assert_eq!(count.parse::<usize>().ok(), Some(expected.len()), "{facts}");
}

#[test]
fn sections_of_the_genode_recorder_name_their_interfaces_rightly() {
    let path = captures().into_iter().find(|path| path.ends_with("genode2sec.pcapng"));
    let Some(path) = path else { return };
    let trace = read("genode2sec", &std::fs::read(path).unwrap(), u64::MAX).unwrap();
    let names: Vec<_> = packets(&trace).into_iter().map(|packet| packet.interface).collect();
    assert_eq!(names, ["third", "nic0", "uplink", "nic0", "uplink", "nic0"]);
}

#[test]
fn what_tshark_refuses_gives_what_is_intact() {
    for path in captures() {
        if !good().contains(&path) {
            let trace = read("refused", &std::fs::read(&path).unwrap(), u64::MAX).unwrap();
            println!("{}: {} packets {:?}", path.display(), trace.len(), trace.damage());
            assert!(!trace.damage().is_empty());
        }
    }
}
