// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names, values, paths and messages that would act on a terminal: nothing of them gets there, whichever
//! command prints them, on standard output as on standard error.

use crate::place::Place;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Output;

/// Title of the window, colour, colour by one character, direction of writing, a line of its own.
const HOSTILE: &str = "\x1b]0;T\x07\x1b[31m\u{9b}31m\u{202e}\u{2066}\u{2028}\nFORGED line\r\x7f";

/// A trace of everything that has a name.
pub fn chrome() -> String {
    let x = HOSTILE;
    let event = |more: serde_json::Value| {
        let mut event = serde_json::json!({"cat": format!("cat{x}"), "pid": 1, "tid": 2});
        for (name, value) in more.as_object().into_iter().flatten() {
            event[name] = value.clone();
        }
        event
    };
    let named = |what: &str| {
        serde_json::json!({"name": what, "ph": "M", "pid": 1, "tid": 2,
            "args": {"name": format!("{what}{x}")}})
    };
    let events = vec![
        named("process_name"),
        named("thread_name"),
        event(serde_json::json!({"name": format!("span{x}"), "ph": "X", "ts": 10, "dur": 50,
            "args": {format!("key{x}"): format!("value{x}"), "ok": x}})),
        event(serde_json::json!({"name": format!("counter{x}"), "ph": "C", "ts": 21,
            "args": {format!("series{x}"): 4}})),
        event(serde_json::json!({"name": format!("async{x}"), "ph": "b", "id": format!("i{x}"),
            "ts": 22})),
        event(serde_json::json!({"name": format!("async{x}"), "ph": "e", "id": format!("i{x}"),
            "ts": 29})),
        event(serde_json::json!({"name": format!("flow{x}"), "ph": "s", "id": 7, "ts": 23})),
        event(serde_json::json!({"name": format!("flow{x}"), "ph": "f", "id": 7, "ts": 25,
            "bp": "e"})),
        event(serde_json::json!({"name": format!("odd{x}"), "ph": "M"})),
        event(serde_json::json!({"name": format!("odd{x}"), "ph": "E", "ts": 12})),
    ];
    serde_json::json!({"traceEvents": events, format!("env{x}"): x}).to_string()
}

/// CTF with names that TSDL lets have anything, and files of such names.
pub fn ctf(place: &Place) -> std::path::PathBuf {
    let folder = place.0.join("ctf");
    fs::create_dir_all(&folder).expect("a folder");
    let octal = |text: &str| text.bytes().map(|byte| format!("\\{byte:03o}")).collect::<String>();
    let name = octal(&format!("e{HOSTILE}"));
    let metadata = format!(
        "/* CTF 1.8 */\ntrace {{ major = 1; minor = 8; byte_order = le; }};\n\
         env {{ hostname = \"{name}\"; tracer_name = \"{name}\"; }};\n\
         clock {{ name = c; freq = 1000000000; description = \"{name}\"; }};\n\
         stream {{ event.header := struct {{ integer {{ size = 64; align = 8; map = \
         clock.c.value; }} timestamp; }}; }};\n\
         event {{ name = \"{name}\"; id = 0; fields := struct {{ string s; enum : integer \
         {{ size = 8; align = 8; }} {{ \"{name}\" = 2 }} x; }}; }};\n"
    );
    fs::write(folder.join("metadata"), metadata).expect("metadata");
    let mut stream = 1_000u64.to_le_bytes().to_vec();
    stream.extend_from_slice(HOSTILE.replace('\0', "").as_bytes());
    stream.extend_from_slice(b"\x9b31m\0\x02");
    // Cut in the middle of the next: a damage, told with the file's name.
    stream.extend_from_slice(&[1, 2, 3]);
    let mut file = b"stream\x9b".to_vec();
    file.extend_from_slice(HOSTILE.as_bytes());
    fs::write(folder.join(std::ffi::OsStr::from_bytes(&file)), stream).expect("a stream");
    folder
}

/// Complains about what must not be there.
fn look(what: &str, output: &Output, is_text: bool) {
    for (stream, bytes) in [("standard output", &output.stdout), ("standard error", &output.stderr)]
    {
        if stream == "standard output" && !is_text {
            continue;
        }
        let text = String::from_utf8_lossy(bytes);
        let is_bad = |c: &char| {
            *c != '\n'
                && (c.is_control()
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
                    || matches!(c, '\u{2028}' | '\u{2029}'))
        };
        assert_eq!(text.chars().find(is_bad), None, "{what}: {stream}: {text:?}");
        assert!(
            !bytes
                .iter()
                .zip(bytes.iter().skip(1))
                .any(|(a, b)| a.is_ascii() && (0x80..=0x9f).contains(b)),
            "{what}: {stream}: a control of one byte"
        );
        let forged = text.lines().find(|line| line.trim_start().starts_with("FORGED"));
        assert_eq!(forged, None, "{what}: {stream}");
    }
    assert!(matches!(output.status.code(), Some(0..=2)), "{what}: {:?}", output.status);
}

#[test]
fn no_command_lets_a_trace_speak_to_the_terminal() {
    let place = Place::new();
    fs::write(place.0.join("c.json"), chrome()).expect("a trace");
    let ctf = ctf(&place);
    let ctf = ctf.to_str().expect("a path");
    let script = format!(
        "activity({0}).begin('*').end('*').key('x'); throw new Error({0})",
        serde_json::json!(HOSTILE)
    );
    fs::write(place.0.join("s.js"), script).expect("a script");
    let pattern = format!("*{HOSTILE}*");
    let calls: &[&[&str]] = &[
        &["info"],
        &["info", "--json"],
        &["print"],
        &["print", "--format", "babeltrace"],
        &["print", "--format", "json"],
        &["print", "--event", &pattern],
        &["print", "--where", &format!("'{HOSTILE}' == ok")],
        &["print", "--where", &format!("{HOSTILE} == 1")],
        &["stats"],
        &["stats", "--json"],
        &["table"],
        &["table", "--name", &pattern],
        &["tracepoints"],
        &["path", "--span", &pattern],
        &["convert", "-o", "out.json", "--force"],
        &["convert", "-o", &format!("out{HOSTILE}.json"), "--force"],
        &["convert", "--to", "jsonl", "-o", "-", "--force"],
        &["recover", "-o", "saved"],
        &["run-script", "s.js"],
        &["xml", "c.json"],
        &[&pattern],
    ];
    for trace in ["c.json", ctf] {
        for call in calls {
            let mut arguments = call.to_vec();
            match call[0] {
                "run-script" | "xml" => arguments.push(trace),
                _ => arguments.insert(1, trace),
            }
            let is_data = call.contains(&"jsonl");
            look(&format!("{arguments:?}"), &place.lat(&arguments), !is_data);
            let _ = fs::remove_dir_all(place.0.join("saved"));
        }
        look("diff", &place.lat(&["diff", trace, trace]), true);
        look("diff", &place.lat(&["diff", trace, "c.json"]), true);
    }
    // What is no trace at all, and paths that are not there.
    for call in ["info", "print", "stats", "table", "recover", "pleco", "policy"] {
        look(call, &place.lat(&[call, &pattern]), true);
        look(call, &place.lat(&[call, "check", &pattern]), true);
    }
}

#[test]
fn what_was_there_can_still_be_told_from_its_escapes() {
    let place = Place::new();
    fs::write(place.0.join("c.json"), chrome()).expect("a trace");
    let text = String::from_utf8(place.lat(&["stats", "c.json"]).stdout).expect("text");
    let shown =
        "\\x1b]0;T\\x07\\x1b[31m\\u{9b}31m\\u{202e}\\u{2066}\\u{2028}\\nFORGED line\\r\\x7f";
    assert!(text.contains(&format!("span{shown}")), "{text}");
    // JSON keeps the meaning.
    let json = place.json(&["stats", "c.json", "--json"]);
    assert!(
        json["spans"].to_string().contains("FORGED") && json.to_string().contains("span\\u001b")
    );
    let name = json["spans"][0]["name"].as_str().expect("a name");
    assert_eq!(name, format!("span{HOSTILE}"));
}
