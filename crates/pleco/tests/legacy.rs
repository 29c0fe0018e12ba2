// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The outputs of the original tool: the listings of the tech note (seed 000,
//! 2.1 to 2.3), and the real definitions of Barrelfish.

use lateralis_pleco::compile;
use lateralis_pleco::generate::{c_header, legacy_header, legacy_json, legacy_note_json};
use lateralis_pleco::schema::Schema;
use std::fs;
use std::path::Path;

/// Listing 2.1.
const LISTING: &str = r#"
subsystem kernel {
    event CSWITCH          "Context Switch",
    event BZERO            "Buffer zeroing",
    event TIMER            "",
    event TIMER_SYNC       "",
};

subsystem memserv {
    event ALLOC            "",
};
"#;

fn listing() -> Schema {
    compile("trace_defs.pleco", LISTING.as_bytes()).schema.expect("the listing compiles")
}

#[test]
fn header_of_the_tech_note() {
    // Listing 2.2 prints TRACE_EVENT_KERNEL_CSITCH: a slip of the note, since the
    // event is named CSWITCH in listing 2.1 and everywhere in Barrelfish.
    let expected = "\
#ifndef TRACE_DEFS_BARRELFISH__
#define TRACE_DEFS_BARRELFISH__

#define TRACE_SUBSYS_KERNEL 0
#define TRACE_EVENT_KERNEL_CSWITCH 0
#define TRACE_EVENT_KERNEL_BZERO 1
#define TRACE_EVENT_KERNEL_TIMER 2
#define TRACE_EVENT_KERNEL_TIMER_SYNC 3

#define TRACE_SUBSYS_MEMSERV 1
#define TRACE_EVENT_MEMSERV_ALLOC 0

#define TRACE_NUM_SUBSYSTEMS 2

#endif // TRACE_DEFS_BARRELFISH__
";
    assert_eq!(legacy_header(&listing(), "trace_defs"), expected);
}

#[test]
fn json_of_the_tech_note() {
    let expected = r#"{
0 : {
  "name" : "kernel",
  "events" : {
    0 : "Context Switch",
    1 : "Buffer zeroing",
    2 : "TIMER",
    3 : "TIMER_SYNC"
  }
},
1 : {
  "name" : "memserv",
  "events" : {
    0 : "ALLOC"
  }
}
}
"#;
    assert_eq!(legacy_note_json(&listing()), expected);
}

#[test]
fn json_of_the_last_tool() {
    let text = legacy_json(&listing());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!({
        "0": {
            "name": "kernel",
            "events": {
                "0": ["CSWITCH", "Context Switch"],
                "1": ["BZERO", "Buffer zeroing"],
                "2": ["TIMER", "TIMER"],
                "3": ["TIMER_SYNC", "TIMER_SYNC"],
            },
        },
        "1": { "name": "memserv", "events": { "0": ["ALLOC", "ALLOC"] } },
        "-5632": { "name": "ump send", "events": {} },
        "-5376": { "name": "ump receive", "events": {} },
    });
    assert_eq!(json, expected);
}

/// Explicit ids and the number of subsystems: one more than the greatest id, so
/// that an array of that size can be indexed by them.
#[test]
fn explicit_ids() {
    let text = "subsystem a = 3 { event X = 7, event Y }; subsystem b = 1 { event Z };";
    let schema = compile("x.pleco", text.as_bytes()).schema.unwrap();
    let header = legacy_header(&schema, "x");
    for line in ["SUBSYS_A 3", "EVENT_A_X 7", "EVENT_A_Y 8", "SUBSYS_B 1", "NUM_SUBSYSTEMS 4"] {
        assert!(header.contains(line), "{header}");
    }
}

#[test]
fn real_definitions_of_barrelfish() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The project's data lies beside the project.
    let path = root.canonicalize().unwrap().join("../shared/data/barrelfish/trace_defs.pleco");
    let Ok(text) = fs::read(&path) else {
        eprintln!("SKIPPED: ../shared/data/barrelfish/trace_defs.pleco is not there");
        return;
    };
    let compiled = compile("trace_defs.pleco", &text);
    assert!(compiled.diagnostics.is_empty(), "{}", compiled.render());
    let schema = compiled.schema.unwrap();
    let counts: Vec<(&str, usize)> =
        schema.subsystems.iter().map(|s| (s.name.as_str(), s.events.len())).collect();
    let expected = [
        ("kernel", 36),
        ("kernel_capops", 22),
        ("threads", 18),
        ("memserv", 4),
        ("memtest", 9),
        ("monitor", 15),
        ("capops", 78),
        ("chips", 1),
        ("bflib", 1),
        ("tweed", 8),
        ("route", 11),
        ("bench", 7),
        ("bomp", 3),
        ("barriers", 17),
        ("nnet", 50),
        ("multihop", 4),
        ("xmpl", 4),
        ("acpi", 1),
        ("cores", 3),
        ("memory", 5),
    ];
    assert_eq!(counts, expected);
    assert_eq!(schema.events.len(), 297);
    assert!(schema.events.iter().all(|event| event.is_legacy && event.fields.len() == 1));
    let header = legacy_header(&schema, "trace_defs");
    assert_eq!(header.matches("#define TRACE_EVENT_").count(), 297);
    assert_eq!(header.matches("#define TRACE_SUBSYS_").count(), 20);
    assert!(header.contains("#define TRACE_EVENT_KERNEL_CSWITCH 0\n"));
    assert!(header.contains("#define TRACE_NUM_SUBSYSTEMS 20\n"));
    let json: serde_json::Value = serde_json::from_str(&legacy_json(&schema)).unwrap();
    assert_eq!(json.as_object().unwrap().len(), 22);
    let again = compile("x.pleco", schema.canonical_text().as_bytes()).schema.unwrap();
    assert_eq!(again, schema);
    let formatted = lateralis_pleco::format("trace_defs.pleco", &text).unwrap();
    let reformatted = lateralis_pleco::format("trace_defs.pleco", formatted.as_bytes()).unwrap();
    assert_eq!(formatted, reformatted);
    assert!(c_header(&schema).contains("LAT_EVENT void lat_kernel_cswitch(uint32_t arg)"));
}
