// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Analyses run over small traces: each rule of the language by itself.

use lateralis_model::{
    Clock, EventClass, FieldClass, FieldKind, IntegerClass, Label, MemoryTrace, Range, Source,
    StreamClass, Writer,
};
use lateralis_tmfxml::{Found, parse};

/// An event: time, name, number, text.
type Line = (u64, &'static str, i64, &'static str);

/// Events with a number `n`, a text `name` and an enumeration `kind`, which is the number.
fn trace(lines: &[Line]) -> MemoryTrace {
    let mut builder = MemoryTrace::builder("a test", u64::MAX);
    let clock = builder.clock(Clock::new("c", 1_000_000_000, 0, 0));
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
    let stream = builder.stream(class, "s", None);
    let label = |value: i128, name: &str| Label {
        name: name.into(),
        ranges: vec![Range { low: value, high: value }],
    };
    let labels = vec![label(1, "ONE"), label(2, "TWO")];
    let kind = FieldKind::Signed(IntegerClass { bits: 64, labels, ..Default::default() });
    let mut names: Vec<&str> = Vec::new();
    for &(time, name, number, text) in lines {
        let index = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            let fields = [
                ("n", FieldClass::i64()),
                ("name", FieldClass::text()),
                ("kind", FieldClass::new(kind.clone())),
            ];
            let payload = Some(FieldClass::structure(fields));
            let class_of = EventClass { name: name.into(), payload, ..Default::default() };
            builder.event_class(class, class_of);
            names.push(name);
            names.len() - 1
        });
        let writer = Some(Writer { pid: 1, tid: 7 });
        let pending = builder.event(stream, index as u32, time, writer);
        pending.i64(number).text(text).i64(number).end().unwrap();
    }
    builder.finish()
}

/// All that is found, one line each, in its order; then what was left out.
fn run(xml: &str, lines: &[Line]) -> Vec<String> {
    let file = parse(xml);
    assert!(!file.has_errors(), "{:?}", file.problems);
    let trace = trace(lines);
    let mut text = Vec::new();
    for analysis in &file.analyses {
        let (mut run, mut found) = (analysis.start(), Vec::new());
        let mut events = trace.events();
        while let Some(event) = events.next_event() {
            run.event(&event, trace.names(), &mut found);
        }
        let left_out = run.finish(&mut found);
        text.extend(found.iter().map(show));
        text.extend(left_out);
    }
    text
}

fn show(found: &Found) -> String {
    match found {
        Found::State(state) => {
            let open = if state.is_open { "…" } else { "" };
            let (path, value) = (state.path.join("/"), &state.value);
            format!("{path}={value} {}-{}{open}", state.begin.0, state.end.0)
        }
        Found::Segment(segment) => {
            let fields = segment.fields.iter().map(|(name, value)| format!(" {name}={value}"));
            let (name, begin, end) = (&segment.name, segment.begin.0, segment.end.0);
            format!("{name} {begin}-{end}{}", fields.collect::<String>())
        }
    }
}

/// A state provider with a handler of event `e` that makes these changes.
fn on_e(changes: &str) -> String {
    on("e", changes)
}

fn on(event: &str, changes: &str) -> String {
    format!(
        "<tmfxml><stateProvider id=\"p\" version=\"0\">\
         <definedValue name=\"RUNNING\" value=\"100\"/>\
         <location id=\"here\"><stateAttribute type=\"constant\" value=\"Tasks\"/>\
         <stateAttribute type=\"eventField\" value=\"name\"/></location>\
         <mappingGroup id=\"m\">\
         <entry><stateValue type=\"long\" value=\"1\"/><stateValue type=\"string\" value=\"one\"/>\
         </entry></mappingGroup>\
         <eventHandler eventName=\"{event}\">{changes}</eventHandler></stateProvider></tmfxml>"
    )
}

fn change(value: &str) -> String {
    format!("<stateChange><stateAttribute type=\"constant\" value=\"a\"/>{value}</stateChange>")
}

#[test]
fn the_example_of_the_manual_tracks_tasks_and_sections() {
    let attribute =
        |kind: &str, value: &str| format!("<stateAttribute type=\"{kind}\" value=\"{value}\"/>");
    let task = attribute("constant", "Tasks") + &attribute("eventField", "n");
    let section = attribute("constant", "Section") + &attribute("eventField", "name");
    let holder = format!(
        "{}<stateAttribute type=\"query\">{section}</stateAttribute>",
        attribute("constant", "Tasks")
    );
    let running = "<stateValue type=\"int\" value=\"$RUNNING\"/>";
    let one = |path: &str, value: &str| format!("<stateChange>{path}{value}</stateChange>");
    let handlers = [
        ("start", one(&task, running)),
        (
            "execute",
            one(&task, "<stateValue type=\"int\" value=\"101\"/>")
                + &one(&section, "<stateValue type=\"eventField\" value=\"n\"/>"),
        ),
        ("exec_end", one(&holder, running) + &one(&section, "<stateValue type=\"null\"/>")),
        ("stop", one(&task, "<stateValue type=\"null\"/>")),
    ];
    let handlers: String = handlers
        .iter()
        .map(|(name, changes)| {
            format!("<eventHandler eventName=\"{name}\">{changes}</eventHandler>")
        })
        .collect();
    let xml = format!(
        "<tmfxml><stateProvider id=\"p\" version=\"0\">\
         <definedValue name=\"RUNNING\" value=\"100\"/>{handlers}</stateProvider></tmfxml>"
    );
    let lines = [
        (1, "start", 3, ""),
        (4, "execute", 3, "crit"),
        (9, "exec_end", 0, "crit"),
        (12, "stop", 3, ""),
        (13, "execute", 5, "crit"),
        (20, "other", 0, ""),
    ];
    assert_eq!(
        run(&xml, &lines),
        [
            "Tasks/3=100 1-4",
            "Tasks/3=101 4-9",
            "Section/crit=3 4-9",
            "Tasks/3=100 9-12",
            "Section/crit=5 13-20…",
            "Tasks/5=101 13-20…",
        ]
    );
}

#[test]
fn the_same_value_goes_on_and_values_add_up() {
    let set = on_e(&change("<stateValue type=\"eventField\" value=\"n\"/>"));
    let lines = [(1, "e", 1, ""), (3, "e", 1, ""), (5, "e", 2, "")];
    assert_eq!(run(&set, &lines), ["a=ONE 1-5".replace("ONE", "1"), "a=2 5-5…".to_owned()]);
    let add = on_e(&change("<stateValue type=\"long\" value=\"2\" increment=\"true\"/>"));
    assert_eq!(run(&add, &lines), ["a=2 1-3", "a=4 3-5", "a=6 5-5…"]);
    // Without a value, nothing is there.
    let missing = on_e(&change("<stateValue type=\"eventField\" value=\"nothing\"/>"));
    assert_eq!(run(&missing, &lines), Vec::<String>::new());
}

#[test]
fn update_changes_the_state_that_goes_on() {
    let xml = on("e", &(change("<stateValue type=\"eventField\" value=\"n\" update=\"true\"/>")))
        .replace(
            "</stateProvider>",
            &format!(
                "<eventHandler eventName=\"begin\">{}</eventHandler></stateProvider>",
                change("<stateValue type=\"string\" value=\"x\"/>")
            ),
        );
    let lines = [(1, "begin", 0, ""), (5, "e", 9, ""), (8, "begin", 0, "")];
    assert_eq!(run(&xml, &lines), ["a=9 1-8", "a=x 8-8…"]);
}

#[test]
fn values_stack() {
    let name = "<stateValue type=\"eventField\" value=\"name\"";
    let xml = on("push", &change(&format!("{name} stack=\"push\"/>"))).replace(
        "</stateProvider>",
        &format!(
            "<eventHandler eventName=\"pop\">{}</eventHandler>\
             <eventHandler eventName=\"clear\">{}</eventHandler>\
             <eventHandler eventName=\"peek\"><stateChange>\
             <stateAttribute type=\"constant\" value=\"top\"/>\
             <stateValue type=\"null\" stack=\"peek\">\
             <stateAttribute type=\"constant\" value=\"a\"/></stateValue></stateChange>\
             </eventHandler></stateProvider>",
            change("<stateValue type=\"null\" stack=\"pop\"/>"),
            change("<stateValue type=\"null\" stack=\"popAll\"/>")
        ),
    );
    let lines = [
        (1, "push", 0, "f"),
        (2, "push", 0, "g"),
        (3, "peek", 0, ""),
        (4, "pop", 0, ""),
        (6, "push", 0, "h"),
        (8, "clear", 0, ""),
        (9, "pop", 0, ""),
    ];
    assert_eq!(
        run(&xml, &lines),
        [
            "a=1 1-2",
            "a/2=g 2-4",
            "a=2 2-4",
            "a=1 4-6",
            "a/2=h 6-8",
            "a=2 6-8",
            "a/1=f 1-8",
            "top=g 3-9…",
        ]
    );
}

#[test]
fn locations_maps_forced_types_and_names_of_events() {
    let path = "<stateAttribute type=\"location\" value=\"here\"/>";
    let mapped = "<stateValue type=\"eventField\" value=\"n\" mappingGroup=\"m\"/>";
    let xml = on("e*", &format!("<stateChange>{path}{mapped}</stateChange>"));
    let lines = [(1, "e1", 1, "x"), (3, "e2", 2, "x"), (4, "f", 1, "x")];
    assert_eq!(run(&xml, &lines), ["Tasks/x=one 1-3"]);
    let named = on("f|e1", &change("<stateValue type=\"eventName\"/>"));
    assert_eq!(run(&named, &lines), ["a=e1 1-4", "a=f 4-4…"]);
    let forced =
        on_e(&change("<stateValue type=\"eventField\" value=\"name\" forcedType=\"long\"/>"));
    assert_eq!(run(&forced, &[(1, "e", 0, "12"), (2, "e", 0, "x")]), ["a=12 1-2"]);
    let known = on_e(&change("<stateValue type=\"eventField\" value=\"TID\"/>"));
    assert_eq!(run(&known, &[(1, "e", 0, ""), (2, "f", 0, "")]), ["a=7 1-2…"]);
}

#[test]
fn changes_may_lie_in_the_future() {
    let xml = on_e(
        "<stateChange><stateAttribute type=\"constant\" value=\"a\"/>\
         <stateValue type=\"eventField\" value=\"name\"/>\
         <futureTime type=\"eventField\" value=\"n\"/></stateChange>",
    );
    let lines = [(1, "e", 5, "x"), (2, "e", 2, "now"), (9, "other", 0, ""), (10, "e", 3, "past")];
    assert_eq!(
        run(&xml, &lines),
        ["a=now 2-5", "a=x 5-10…", "1 times: a change lies in the past, or its time is no number"]
    );
}

#[test]
fn conditions_of_changes_choose() {
    let test = |condition: &str| {
        let xml = on_e(&format!(
            "<stateChange><if>{condition}</if>\
             <then><stateAttribute type=\"constant\" value=\"a\"/>\
             <stateValue type=\"string\" value=\"yes\"/></then>\
             <else><stateAttribute type=\"constant\" value=\"a\"/>\
             <stateValue type=\"string\" value=\"no\"/></else></stateChange>"
        ));
        let found = run(&xml, &[(1000, "e", 2, "ab"), (2000, "f", 0, "")]);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].starts_with("a=yes")
    };
    let compare = |operator: &str, field: &str, value: &str| {
        format!(
            "<condition operator=\"{operator}\"><field name=\"{field}\"/>\
             <stateValue {value}/></condition>"
        )
    };
    for (operator, number, expected) in [
        ("eq", 2, true),
        ("ne", 2, false),
        ("ge", 2, true),
        ("gt", 1, true),
        ("le", 1, false),
        ("lt", 3, true),
    ] {
        let value = format!("type=\"int\" value=\"{number}\"");
        assert_eq!(test(&compare(operator, "n", &value)), expected, "{operator} {number}");
    }
    assert!(test(&compare("eq", "name", "type=\"string\" value=\"ab\"")));
    assert!(test(&compare("eq", "kind", "type=\"string\" value=\"TWO\"")));
    assert!(test(&compare("eq", "kind", "type=\"long\" value=\"2\"")));
    let (yes, no) = (
        compare("eq", "n", "type=\"int\" value=\"2\""),
        compare("eq", "n", "type=\"int\" value=\"3\""),
    );
    for (condition, expected) in [
        (format!("<and>{yes}{no}</and>"), false),
        (format!("<or>{no}{yes}</or>"), true),
        (format!("<not>{no}</not>"), true),
        (format!("<and>{yes}<not><or>{no}{no}</or></not></and>"), true),
    ] {
        assert_eq!(test(&condition), expected, "{condition}");
    }
    let range = |unit: &str, what: &str, begin: i64, end: i64| {
        format!(
            "<condition><timerange unit=\"{unit}\"><{what} begin=\"{begin}\" end=\"{end}\"/>\
             </timerange></condition>"
        )
    };
    assert!(test(&range("us", "in", 1, 1)) && !test(&range("us", "out", 0, 1)));
    assert!(test(&range("ns", "out", 1, 999)));
    let path = "<condition><stateAttribute type=\"constant\" value=\"b\"/>\
                <stateValue type=\"null\"/></condition>";
    assert!(test(path), "an attribute that is not there has no value");
}

/// A pattern with these tests, actions and machines.
fn pattern(body: &str) -> String {
    format!(
        "<tmfxml><pattern id=\"p\" version=\"1\"><storedField id=\"n\" alias=\"number\"/>\
         <patternHandler>{body}</patternHandler></pattern></tmfxml>"
    )
}

/// A segment named by the field `name`.
const EMIT: &str = "<action id=\"emit\"><segment><segType><segName>\
    <stateValue type=\"eventField\" value=\"name\"/></segName></segType></segment></action>";

/// Scenarios that go from `begin` to `end` of one name.
fn begin_end(attributes: &str) -> String {
    pattern(&format!(
        "<test id=\"same\"><if><condition><stateValue type=\"eventField\" value=\"name\"/>\
         <stateValue type=\"query\"><stateAttribute type=\"constant\" value=\"#CurrentScenario\"/>\
         <stateAttribute type=\"constant\" value=\"who\"/></stateValue></condition></if></test>\
         <action id=\"note\"><stateChange>\
         <stateAttribute type=\"constant\" value=\"#CurrentScenario\"/>\
         <stateAttribute type=\"constant\" value=\"who\"/>\
         <stateValue type=\"eventField\" value=\"name\"/></stateChange></action>{EMIT}\
         <fsm id=\"f\" initial=\"s\" {attributes}><state id=\"s\">\
         <transition event=\"begin\" target=\"w\" action=\"note\"/></state>\
         <state id=\"w\"><transition event=\"end\" cond=\"same\" target=\"x\" action=\"emit\"/>\
         </state><final id=\"x\"/></fsm>"
    ))
}

const OVERLAPPING: [Line; 7] = [
    (1, "begin", 0, "a"),
    (3, "begin", 0, "b"),
    (5, "end", 0, "a"),
    (6, "begin", 0, "b"),
    (8, "end", 0, "b"),
    (9, "end", 0, "b"),
    (10, "end", 0, "b"),
];

#[test]
fn scenarios_run_side_by_side_and_the_first_takes_the_event() {
    assert_eq!(run(&begin_end(""), &OVERLAPPING), ["a 1-5", "b 3-8", "b 6-9"]);
}

#[test]
fn without_consuming_an_event_moves_all() {
    let found = run(&begin_end("consuming=\"false\""), &OVERLAPPING);
    assert_eq!(found, ["a 1-5", "b 3-8", "b 6-8"]);
}

#[test]
fn a_machine_may_run_only_once() {
    assert_eq!(run(&begin_end("multiple=\"false\""), &OVERLAPPING), ["a 1-5"]);
}

#[test]
fn every_event_may_be_a_segment_with_times_of_its_own() {
    // The second example of the manual.
    let xml = pattern(
        "<action id=\"segment_create\"><segment><segType segName=\"seg1\"/>\
         <segTime><begin type=\"eventField\" value=\"timestamp\"/>\
         <end type=\"eventField\" value=\"n\"/></segTime></segment></action>\
         <fsm id=\"test\" multiple=\"true\"><state id=\"start\">\
         <transition event=\"*\" target=\"end\" action=\"segment_create\"/></state>\
         <final id=\"end\"/></fsm>",
    );
    let lines = [(1, "test", 10, ""), (3, "test1", 100, ""), (5, "test", 20, ""), (7, "x", 2, "")];
    // An end before the beginning is none.
    assert_eq!(run(&xml, &lines), ["seg1 1-10", "seg1 3-100", "seg1 5-20", "seg1 7-7"]);
    let duration = xml.replace("<end ", "<duration ");
    assert_eq!(run(&duration, &lines[..1]), ["seg1 1-11"]);
}

#[test]
fn states_have_actions_stored_fields_and_a_time_since() {
    let xml = pattern(&format!(
        "<test id=\"quick\"><if><condition><elapsedTime unit=\"ns\">\
         <less since=\"w\" value=\"5\"/></elapsedTime></condition></if></test>\
         <test id=\"slow\"><if><not><condition><elapsedTime><less since=\"w\" value=\"5\"/>\
         </elapsedTime></condition></not></if></test>\
         <action id=\"in\"><stateChange><stateAttribute type=\"constant\" value=\"busy\"/>\
         <stateValue type=\"eventName\"/></stateChange></action>\
         <action id=\"out\"><stateChange><stateAttribute type=\"constant\" value=\"busy\"/>\
         <stateValue type=\"null\"/></stateChange></action>{EMIT}\
         <fsm id=\"f\"><precondition event=\"begin|end\"/>\
         <initial><transition target=\"s\"/></initial>\
         <state id=\"s\"><transition event=\"begin\" target=\"w\" saveStoredFields=\"true\"/></state>\
         <state id=\"w\"><onentry action=\"in\"/><onexit action=\"out\"/>\
         <transition event=\"*\" cond=\"quick\" target=\"x\" action=\"emit\"/>\
         <transition cond=\"slow\" target=\"s\" clearStoredFields=\"true\"/></state>\
         <final id=\"x\"/></fsm>"
    ));
    let lines = [
        (10, "begin", 5, "a"),
        (11, "tick", 0, "not looked at"),
        (12, "end", 0, "quick"),
        (20, "begin", 6, "b"),
        (40, "end", 0, "slow"),
    ];
    assert_eq!(run(&xml, &lines), ["busy=begin 10-12", "quick 10-12 number=5", "busy=begin 20-40"]);
}

#[test]
fn a_scenario_that_comes_back_counts_from_what_it_sets() {
    // As the checkpoint analysis of Genode: no final state, and a startTime of its own.
    let xml = pattern(&format!(
        "<action id=\"now\"><stateChange>\
         <stateAttribute type=\"constant\" value=\"#CurrentScenario\"/>\
         <stateAttribute type=\"constant\" value=\"startTime\"/>\
         <stateValue type=\"eventField\" value=\"timestamp\"/></stateChange></action>{EMIT}\
         <fsm id=\"f\" multiple=\"false\"><state id=\"idle\">\
         <transition event=\"begin\" target=\"on\" action=\"now\"/></state>\
         <state id=\"on\"><transition event=\"end\" target=\"idle\" action=\"emit\"/></state></fsm>"
    ));
    let lines =
        [(1, "begin", 0, "a"), (4, "end", 0, "a"), (7, "begin", 0, "b"), (9, "end", 0, "b")];
    assert_eq!(run(&xml, &lines), ["a 1-4", "b 7-9"]);
}

#[test]
fn only_initial_machines_begin() {
    let machine = |id: &str| {
        format!(
            "<action id=\"{id}\"><segment><segType segName=\"{id}\"/></segment></action>\
             <fsm id=\"{id}\"><state id=\"s\"><transition event=\"e\" target=\"x\" \
             action=\"{id}\"/></state><final id=\"x\"/></fsm>"
        )
    };
    let body = machine("one") + &machine("two");
    let xml = pattern(&body);
    assert_eq!(run(&xml, &[(3, "e", 0, "")]), ["one 3-3", "two 3-3"]);
    let initial = xml.replace("<patternHandler>", "<patternHandler initial=\"two\">");
    assert_eq!(run(&initial, &[(3, "e", 0, ""), (4, "e", 0, "")]), ["two 3-3", "two 4-4"]);
}

#[test]
fn a_hostile_trace_is_bounded() {
    // More stacked values than may be.
    let push = on_e(&change("<stateValue type=\"eventField\" value=\"n\" stack=\"push\"/>"));
    let lines: Vec<Line> = (0..10_100).map(|n| (n, "e", n as i64, "")).collect();
    let found = run(&push, &lines);
    assert!(found.last().unwrap().starts_with("100 times: a stack is too high"), "{found:?}");
    // Scenarios that never end.
    let lines: Vec<Line> = (0..20_000).map(|n| (n, "begin", 0, "a")).collect();
    let found = run(&begin_end(""), &lines);
    assert_eq!(found, ["3616 times: more scenarios are open than a machine may have"]);
}
