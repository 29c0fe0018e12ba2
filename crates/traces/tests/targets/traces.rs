// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CTF, as read by babeltrace2 and our own reader; and formats that cannot represent most of a trace.

use std::process::Command;

use lateralis_model::Source;
use lateralis_model::role::Role;
use lateralis_traces::{OpenOptions, Target, open};
use serde_json::json;

use crate::tools::{has, output};
use crate::{lines, rich, written};

#[test]
fn ctf_is_read_by_babeltrace2() {
    let (path, dropped) = written(Target::Ctf, "rich-ctf");
    let said = [
        ("bit arrays and names of bits: integers in CTF 1.8", 1),
        ("bytes and their media types: arrays of integers in CTF 1.8", 1),
        ("encodings of texts: UTF-8 in CTF 1.8", 1),
        ("losses of which nobody knows how many", 1),
        ("text behind a NUL character", 1),
        ("yes/no fields: integers in CTF 1.8", 1),
    ];
    assert_eq!(dropped, said.map(|(what, count)| (what.to_owned(), count)));
    if !has("babeltrace2") {
        return;
    }
    let mut command = Command::new("babeltrace2");
    command.args(["--clock-seconds", "--no-delta", "--names=payload"]).arg(&path);
    let text = output(&mut command, "");
    let events: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(events.len(), 18, "{text}");
    let kinds = events.iter().find(|line| line.contains("KINDS")).unwrap();
    assert!(kinds.starts_with("[1700000000.000001000]"), "{kinds}");
    for part in [
        "small = 200",
        "huge = 0xFFFFFFFFFFFFFFFF",
        "least = -9223372036854775808",
        "half = 0.5",
        "nan = ",
        "down = -inf",
        r#"quoted = "say \"hi\",\n\tback\\slash;""#,
        r#"zero = "a""#,
        r#"wide = "ü€""#,
        "[0] = 0x0, [1] = 0xAB, [2] = 0xFF",
        r#"inner = { a = 1, b = "x" }"#,
        "[0] = 1, [1] = 2, [2] = 3",
        r#"{ k = 2, v = "two" }"#,
        "choice = { -5 }",
        r#"( "FAST" : container = 2 )"#,
        "flags = 0x5",
    ] {
        assert!(kinds.contains(part), "{part} is not in {kinds}");
    }
    let tick = events.iter().find(|line| line.contains("TICK")).unwrap();
    assert!(tick.starts_with("[1700000000.000504000]"), "{tick}");
}

#[test]
fn both_versions_of_ctf_bring_everything_back() {
    for (target, name) in [(Target::Ctf, "back-ctf"), (Target::Ctf2, "back-ctf2")] {
        let (path, dropped) = written(target, name);
        if target == Target::Ctf2 {
            let said =
                [("losses of which nobody knows how many", 1), ("text behind a NUL character", 1)];
            assert_eq!(dropped, said.map(|(what, count)| (what.to_owned(), count)));
        }
        let back = open(std::slice::from_ref(&path), &OpenOptions::default()).unwrap();
        assert_eq!(back.damage(), []);
        let env = |key: &str| back.trace().env(key).and_then(|value| value.as_text());
        assert_eq!(env("hostname"), Some("the \"box\""), "{name}");
        let again = lines(&path);
        let mut events = again.iter().filter(|line| line.get("name").is_some());
        let kinds = events.next().unwrap();
        let mut expected = rich::kinds();
        let members = expected.as_object_mut().unwrap();
        members.insert("mode".to_owned(), json!(2));
        members.insert("mode.label".to_owned(), json!("FAST"));
        members.insert("zero".to_owned(), json!("a"));
        members.insert("choice".to_owned(), json!(-5));
        members.insert("choice.choice".to_owned(), json!("right"));
        members.remove("gone");
        if target == Target::Ctf {
            members.insert("yes".to_owned(), json!(1));
        } else {
            members.insert("blob".to_owned(), json!("00abff"));
        }
        assert_eq!(kinds["fields"], expected, "{name}");
        assert_eq!(kinds["time_ns"], json!(rich::BASE + 1000));
        assert_eq!((&kinds["pid"], &kinds["tid"]), (&json!(100), &json!(101)), "{name}");
        assert_eq!(kinds["process"], "ui \"one\"", "{name}");
        assert_eq!(kinds["thread"], "main\nline", "{name}");
        let context = json!({ "prio": rich::PRIORITY, "vpid": 100, "vtid": 101 });
        assert_eq!(kinds["context"], context, "{name}");
        assert_eq!(events.count(), 17);
        let losses: Vec<_> = again.iter().filter(|line| line.get("loss").is_some()).collect();
        assert_eq!(losses.len(), 1, "{name}");
        assert_eq!(losses[0]["count"], json!(3), "{name}");
        let mut classes = back.trace().stream_classes.iter().flat_map(|class| &class.event_classes);
        let lock = classes.find(|class| class.name == "app:LOCK").unwrap();
        let roles: Vec<String> = Role::of(lock).map(|role| role.to_string()).collect();
        assert_eq!(roles, ["begin held key mutex"], "{name}");
    }
}

/// Captures and Barrelfish dumps have different contents: nothing is left out silently.
#[test]
fn what_fits_nowhere_is_counted() {
    for (target, name) in [(Target::Pcapng, "rich.pcapng"), (Target::Barrelfish, "rich.trc")] {
        let (_, dropped) = written(target, name);
        let of = |prefix: &str| -> u64 {
            dropped.iter().filter(|(what, _)| what.starts_with(prefix)).map(|(_, n)| n).sum()
        };
        assert_eq!(of("events "), 18, "{dropped:?}");
        assert_eq!(of("entries of the environment"), 2, "{dropped:?}");
        assert!(of("losses") > 0, "{dropped:?}");
    }
}
