// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CTF 1.8 made from Chrome JSON, as read by babeltrace2: version 2.0.4 of Debian 12 aborts on lengths
//! and tags in the context of an event, and rejects clocks with a negative offset.

use std::path::PathBuf;
use std::process::Command;

use lateralis_model::Source;
use lateralis_traces::{OpenOptions, Options, Target, convert, open};
use serde_json::{Value, json};

use crate::{lines, tools};

/// Members that only some events have, of several types, besides the arguments.
fn optional_members() -> Value {
    json!([
        {"ph": "X", "name": "k", "ts": 1, "dur": 2, "pid": 1, "tid": 1, "cat": "c"},
        {"ph": "X", "name": "k", "ts": 5, "dur": 2, "pid": 1, "tid": 1, "cat": "c", "bind_id": "0x1"},
        {"ph": "X", "name": "k", "ts": 8, "dur": 2, "pid": 1, "tid": 1, "cat": "c", "bind_id": 7,
         "id2": {"local": "0x5"}, "tts": 3, "list": [1, 2, 3], "args": {"a": 1}},
        {"ph": "b", "name": "async", "ts": 8, "pid": 1, "tid": 1, "id": "0x9", "more": ["x", {"y": 1}]},
        {"ph": "e", "name": "async", "ts": 9, "pid": 1, "tid": 1, "id": 9},
        {"ph": "i", "name": "mark", "ts": 9, "pid": 1, "tid": 1, "s": "t"},
        {"ph": "i", "name": "mark", "ts": 10, "pid": 1, "tid": 1},
    ])
}

/// Ids that are texts, or wider than 32 bits.
fn odd_threads() -> Value {
    json!([
        {"ph": "M", "name": "process_name", "pid": "CUDA 0", "tid": 0, "args": {"name": "gpu"}},
        {"ph": "X", "name": "k", "ts": 1, "dur": 2, "pid": "CUDA 0", "tid": "stream 7"},
        {"ph": "X", "name": "k", "ts": 1, "dur": 2, "pid": "CUDA 0", "tid": "stream 8"},
        {"ph": "X", "name": "m", "ts": 1, "dur": 2, "pid": 0, "tid": 139_872_345_672_448_u64},
        {"ph": "X", "name": "m", "ts": 2, "dur": 2, "pid": 0, "tid": 139_872_345_672_449_u64},
        {"ph": "X", "name": "n", "ts": 4, "dur": 2, "pid": 12, "tid": 13},
    ])
}

fn negative_times() -> Value {
    json!([
        {"ph": "X", "name": "Launch", "ts": -613_000.5, "dur": 613_000, "pid": 1, "tid": 38},
        {"ph": "X", "name": "Work", "ts": 0, "dur": 10, "pid": 1, "tid": 38},
    ])
}

#[test]
fn babeltrace_reads_what_is_made_of_chrome_json() {
    let has_babeltrace = tools::has("babeltrace2");
    let cases = [
        ("optional", optional_members()),
        ("threads", odd_threads()),
        ("negative", negative_times()),
    ];
    for (name, events) in cases {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let from = directory.join(format!("babeltrace-{name}.json"));
        std::fs::write(&from, events.to_string()).unwrap();
        let trace = open(std::slice::from_ref(&from), &OpenOptions::default()).unwrap();
        let to = directory.join(format!("babeltrace-{name}"));
        let options = Options { replace: true, ..Options::default() };
        convert(&trace, Target::Ctf, &to, &options).unwrap();
        // In our own reader the context is unchanged.
        let copy = open(std::slice::from_ref(&to), &OpenOptions::default()).unwrap();
        let classes = |trace: &dyn Source| -> Vec<(String, Vec<String>, Vec<String>)> {
            let classes = trace.trace().stream_classes.iter();
            let names = |class: &Option<lateralis_model::FieldClass>| -> Vec<String> {
                let members = class.iter().flat_map(|class| class.members());
                let members = members.filter(|member| !member.class.structural);
                members.map(|member| member.name.clone()).collect()
            };
            let all = classes.flat_map(|class| &class.event_classes);
            all.map(|class| (class.name.clone(), names(&class.context), names(&class.payload)))
                .collect()
        };
        assert_eq!(classes(&copy), classes(&trace), "{name}");
        let (ours, theirs) = (lines(&to), lines(&from));
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            for member in ["time_ns", "name", "context", "payload"] {
                assert_eq!(ours[member], theirs[member], "{name}");
            }
        }
        if !has_babeltrace {
            continue;
        }
        let output = Command::new("babeltrace2").arg(&to).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}: {errors}", output.status);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.lines().count(), theirs.len(), "{name}: {errors}");
    }
}
