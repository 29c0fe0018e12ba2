// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts: activities of recordings and dumps, filters of every command, and the guide.

use crate::place;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lateralis_analysis::{Edge, Pairer, Side};
use lateralis_model::{Source, Writer};
use lateralis_store::facts::Fact;
use lateralis_store::{Facts, Recording};
use place::Place;
use serde_json::Value;

fn demo() -> Place {
    let place = Place::new();
    let output = place.lat(&["demo", "-o", "demo", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place
}

/// Begin, end, key, and the threads of both ends.
type Span = (i64, i64, u64, Option<(u64, u64)>, Option<(u64, u64)>);

/// Returns the spans that the schema declares, by name, paired here by brute force.
fn declared(path: &Path) -> BTreeMap<String, Vec<Span>> {
    let recording = Recording::open(path).unwrap();
    let trace = recording.annotated();
    let mut facts = Facts::new(&trace, &recording.streams);
    let mut pairers: BTreeMap<u32, Pairer> = BTreeMap::new();
    let mut spans: Vec<(u32, Span)> = Vec::new();
    let mut events = recording.source.events();
    let who = |writer: Option<Writer>| writer.map(|w| (u64::from(w.pid), u64::from(w.tid)));
    while let Some(event) = events.next_event() {
        facts.of(&event, |at, fact| {
            let (span, side, key) = match fact {
                Fact::Begin { span, key } => (span, Side::Begin, key),
                Fact::End { span, key } => (span, Side::End, key),
                _ => return,
            };
            let edge = Edge { time: at.time, side, key, writer: at.writer };
            if let Some(found) = pairers.entry(span).or_default().push(edge) {
                let (begin, end) = (found.begin, found.end);
                let key = begin.key.unwrap_or(0);
                let found = (begin.time.0, end.time.0, key, who(begin.writer), who(end.writer));
                spans.push((span, found));
            }
        });
    }
    let mut by_name: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for (span, found) in spans {
        let name = facts.kinds().spans[span as usize].name.clone();
        by_name.entry(name).or_default().push(found);
    }
    by_name
}

/// Returns the activities of a script in the same form, by name.
fn scripted(place: &Place, trace: &[&str], script: &str) -> BTreeMap<String, Vec<Span>> {
    fs::write(place.0.join("test.js"), script).unwrap();
    let found = place.json(&[&["run-script"], trace, &["test.js", "--json"]].concat());
    let mut by_name: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for activity in found["activities"].as_array().unwrap() {
        let who = |side: &str| {
            let id = |what: &str| activity[format!("{side}_{what}")].as_u64();
            id("pid").zip(id("tid"))
        };
        let (begin, end) = (&activity["begin_ns"], &activity["end_ns"]);
        let (begin, end) = (begin.as_i64().unwrap(), end.as_i64().unwrap());
        assert_eq!(activity["duration_ns"].as_i64(), Some((end - begin).max(0)));
        let span = (begin, end, activity["key"].as_u64().unwrap(), who("begin"), who("end"));
        let name = activity["activity"].as_str().unwrap().to_owned();
        by_name.entry(name).or_default().push(span);
    }
    let statistics = found["statistics"].as_array().unwrap();
    for of in statistics {
        let listed = by_name.get(of["name"].as_str().unwrap()).map_or(0, Vec::len);
        assert_eq!(of["count"].as_u64(), Some(listed as u64), "{of}");
    }
    by_name
}

#[test]
fn scripts_find_exactly_the_spans_that_the_schema_declares() {
    let place = demo();
    let declared = declared(&place.0.join("demo"));
    let (requests, held) = (&declared["request"], &declared["shelf_held"]);
    assert!(requests.len() > 100 && held.len() > 100);
    let forms = [
        "activity('request').begin('client:ORDER').end('client:DONE').key('id');
         activity('shelf_held').begin('warehouse:TAKE').end('warehouse:RELEASE').key('worker');",
        "activity('request').begin(e => e.name === 'client:ORDER')
            .end(e => e.name.endsWith(':DONE')).key(e => e.fields.id);
         activity('shelf_held').begin('warehouse:*', e => e.name.endsWith('TAKE'))
            .end('*RELEASE').key(e => e.fields.worker)",
        "activity('request', (e, a) => {
            if (e.name === 'client:ORDER') a.begin(e.fields.id);
            if (e.name === 'client:DONE') a.end(e.fields.id, {pieces: e.fields.pieces});
         });
         activity('shelf_held', (e, a) => {
            switch (e.name) {
                case 'warehouse:TAKE': return a.begin(e.fields.worker);
                case 'warehouse:RELEASE': return a.end(e.fields.worker);
            }
         });",
    ];
    for form in forms {
        let scripted = scripted(&place, &["demo"], form);
        assert!(scripted["request"] == *requests, "{form}");
        assert!(scripted["shelf_held"] == *held, "{form}");
    }
}

/// Mutexes of Barrelfish before 2013 (subsystem threads 0xeeee: LOCK_ENTER 0x200, LOCK_LEAVE 0x201, UNLOCK
/// 0x205): two on two cores; the argument is the address.
const DUMP: &str = "\
# Start 1000 Duration 0 Stop 18446744073709551615
# Min_timestamp 1000
# Core 0 LOG DUMP ==================================================
# DCB 0 ffffff8002656c00 app
0 1000 ffffcccc02656c00
0 1100 eeee02000060c950
0 1150 eeee02010060c950
0 1300 eeee02050060c950
0 1400 eeee02000060c990
0 1450 eeee02010060c990
0 1700 eeee02050060c990
0 1800 eeee02010060c950
# Core 1 LOG DUMP ==================================================
1 1310 eeee02010060c950
1 1350 eeee02050060c950
1 1360 eeee02050060caaa
";

#[test]
fn the_mutexes_of_a_barrelfish_dump_are_activities() {
    let place = Place::new();
    fs::write(place.0.join("dump"), DUMP).unwrap();
    let output = place.lat(&["convert", "dump", "--frequency", "1000000000", "-o", "converted"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let declared = declared(&place.0.join("converted"));
    let held = &declared["threads:MUTEX_HELD"];
    let durations: Vec<i64> = held.iter().map(|(begin, end, ..)| end - begin).collect();
    assert_eq!(durations, [150, 40, 250]);
    for form in [
        "activity('threads:MUTEX_HELD').begin('threads:MUTEX_LOCK_LEAVE')
            .end('threads:MUTEX_UNLOCK').key('arg')",
        "activity('threads:MUTEX_HELD', (event, activity) => {
            if (event.name === 'threads:MUTEX_LOCK_LEAVE') activity.begin(event.fields.arg);
            if (event.name === 'threads:MUTEX_UNLOCK') activity.end(event.fields.arg);
         });",
    ] {
        let scripted = scripted(&place, &["converted"], form);
        assert_eq!(scripted["threads:MUTEX_HELD"], *held, "{form}");
        let direct =
            place.json(&["run-script", "dump", "test.js", "--frequency", "1000000000", "--json"]);
        let statistics = &direct["statistics"][0];
        assert_eq!((&statistics["count"], &statistics["max_ns"]), (&3.into(), &250.into()));
        assert_eq!((&statistics["unfinished"], &statistics["orphans"]), (&1.into(), &1.into()));
        assert_eq!(statistics["quality"], "exact");
    }
}

fn printed(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let all = [&["print", "demo", "--format", "json"], arguments].concat();
    let output = place.lat(&all);
    assert!(output.status.success(), "{all:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn filters_choose_in_every_command() {
    let place = demo();
    let all = printed(&place, &[]);
    let is_kept = |line: &Value| {
        line["name"] == "client:ORDER" && line["fields"]["id"].as_u64().unwrap() % 10 == 3
    };
    let expected = all.iter().filter(|line| is_kept(line)).count();
    assert!(expected > 10);
    let compiled = "event.name === 'client:ORDER' && event.fields.id % 10 === 3";
    let interpreted = "const rest = 3; filter(e => /^client:ORDER$/.test(e.name));
        filter(e => e.fields.id % 10 === rest)";
    fs::write(place.0.join("keep.js"), interpreted).unwrap();
    for filter in [compiled, "keep.js"] {
        let kept = printed(&place, &["--filter", filter]);
        assert_eq!(kept.len(), expected, "{filter}");
        assert!(kept.iter().all(is_kept), "{filter}");
        // Combined with other options.
        let both = printed(&place, &["--filter", filter, "--where", "id == 3 || id == 13"]);
        assert!(!both.is_empty() && both.len() < kept.len(), "{filter}");
        let out = place.lat(&["convert", "demo", "--filter", filter, "--to", "jsonl", "-o", "-"]);
        assert!(out.status.success(), "{filter}");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(text.lines().filter(|line| line.contains("client:ORDER")).count(), expected);
        assert!(!text.contains("warehouse:WORK"), "{filter}");
    }
    // Filters of a script, and of the command line, select the events for its activities.
    fs::write(
        place.0.join("few.js"),
        "filter(e => e.fields.id % 10 === 3);
        activity('request').begin('client:ORDER').end('client:DONE').key('id')",
    )
    .unwrap();
    let found = place.json(&["run-script", "demo", "few.js", "--json"]);
    assert_eq!(found["statistics"][0]["count"], expected);
    let by_option = place.json(&[
        "run-script",
        "demo",
        "few.js",
        "--json",
        "--filter",
        "event.fields.id === 13",
    ]);
    let keys = by_option["activities"].as_array().unwrap();
    assert!(!keys.is_empty() && keys.iter().all(|activity| activity["key"] == 13));
}

#[test]
fn errors_name_the_line_and_end_with_2() {
    let place = demo();
    for (script, place_in_it, message) in [
        ("filter(e =>\n    e.fields.none.a > 3);", "bad.js:2:5", "cannot read property 'a'"),
        ("filter(e => {", "bad.js:1", "SyntaxError"),
        ("let x = 1;\nfilter(y);", "bad.js:2", "y is not defined"),
        ("filter(e => { for (;;); })", "bad.js", "stopped after 20000000 steps"),
        ("let x = 1;", "bad.js", "declares nothing"),
    ] {
        fs::write(place.0.join("bad.js"), script).unwrap();
        for arguments in [
            &["print", "demo", "--filter", "bad.js"][..],
            &["run-script", "demo", "bad.js"],
            &["convert", "demo", "--filter", "bad.js", "--to", "jsonl", "-o", "-"],
        ] {
            let output = place.lat(arguments);
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{script}: {error}");
            assert!(error.contains("error: "), "{script}: {error}");
            assert!(error.contains(place_in_it) && error.contains(message), "{script}: {error}");
        }
    }
    let output = place.lat(&["print", "demo", "--filter", "none.js"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read: none.js"));
    fs::write(place.0.join("only.js"), "activity('a').begin('a').end('b')").unwrap();
    let output = place.lat(&["print", "demo", "--filter", "only.js"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("declares no filter"));
}

#[test]
fn text_and_csv_say_what_json_says() {
    let place = demo();
    let script = "activity('a, \"b\"').begin('client:ORDER').end('client:DONE').key('id')\
        .attributes('item')";
    fs::write(place.0.join("test.js"), script).unwrap();
    let found = place.json(&["run-script", "demo", "test.js", "--json"]);
    let activities = found["activities"].as_array().unwrap();
    let output = place.lat(&["run-script", "demo", "test.js", "--csv"]);
    let csv = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), activities.len() + 1);
    assert!(lines[0].starts_with("activity,begin_ns,end_ns,duration_ns,key,"));
    let first = &activities[0];
    let begin = format!(
        "\"a, \"\"b\"\"\",{},{},{},{},",
        first["begin_ns"], first["end_ns"], first["duration_ns"], first["key"]
    );
    assert!(lines[1].starts_with(&begin), "{}", lines[1]);
    let attribute = format!(",\"{{\"\"item\"\":{}}}\"", first["attributes"]["item"]);
    assert!(lines[1].ends_with(&attribute), "{} {attribute}", lines[1]);
    let output = place.lat(&["run-script", "demo", "test.js", "-n", "3"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("item=")).count(), 3, "{text}");
    assert!(text.contains("activity a, \"b\": compiled"), "{text}");
}

/// Every script of the guide is written to a file, and every command of it runs.
#[test]
fn the_guide_does_what_it_says() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/scripts.md");
    let guide = fs::read_to_string(guide).unwrap();
    let place = demo();
    let mut name = None;
    let mut lines = guide.lines();
    let (mut scripts, mut commands) = (0, 0);
    while let Some(line) = lines.next() {
        if let Some(file) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            name = Some(file);
        } else if line == "```js" {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            fs::write(place.0.join(name.take().expect("a name")), body.join("\n")).unwrap();
            scripts += 1;
        } else if line == "```sh" {
            for command in lines.by_ref().take_while(|line| *line != "```") {
                let output = std::process::Command::new("sh")
                    .args(["-ec", &command.replace("lat ", "\"$LAT\" ")])
                    .current_dir(&place.0)
                    .env("LAT", env!("CARGO_BIN_EXE_lat"))
                    .env("LATERALIS_DIR", place.0.join("areas"))
                    .output()
                    .unwrap();
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{command}: {error}");
                let prints = !command.contains(" -o ");
                assert!(!prints || output.stdout.len() > 100, "{command}");
                commands += 1;
            }
        }
    }
    assert_eq!((scripts, commands), (3, 9));
}
