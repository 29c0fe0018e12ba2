// SPDX-License-Identifier: Apache-2.0 OR MIT

use super::*;

fn provider(body: &str) -> File {
    parse(&format!(
        "<tmfxml>\n<stateProvider id=\"p\" version=\"1\">\n{body}\n</stateProvider></tmfxml>"
    ))
}

fn pattern(body: &str) -> File {
    let text = format!(
        "<tmfxml>\n<pattern id=\"p\" version=\"1\"><patternHandler>\n{body}\n\
         </patternHandler></pattern></tmfxml>"
    );
    parse(&text)
}

/// The problems of a file that has no analysis.
fn errors(file: &File) -> Vec<String> {
    assert!(file.analyses.is_empty() && file.has_errors(), "{file:?}");
    file.problems.iter().map(ToString::to_string).collect()
}

const CHANGE: &str = "<stateChange><stateAttribute type=\"constant\" value=\"a\"/>\
    <stateValue type=\"int\" value=\"1\"/></stateChange>";

#[test]
fn what_is_not_understood_is_told_with_its_line() {
    let change = |value: &str| {
        format!(
            "<eventHandler eventName=\"e\">\n<stateChange>\
             <stateAttribute type=\"constant\" value=\"a\"/>\n{value}</stateChange></eventHandler>"
        )
    };
    for (body, expected) in [
        (change("<stateValue type=\"script\" value=\"1+1\"/>"), "line 5, column 1: scripts"),
        (change("<stateValue type=\"int\" value=\"x\"/>"), "line 5, column 1: `x` is no whole"),
        (change("<stateValue type=\"int\" value=\"$X\"/>"), "no <definedValue> has the name `X`"),
        (change("<stateValue type=\"int\" value=\"1\" colour=\"1\"/>"), "attribute `colour`"),
        (change("<stateValue type=\"null\" mappingGroup=\"m\"/>"), "no <mappingGroup>"),
        (change("<stateValue type=\"null\" stack=\"push\" update=\"true\"/>"), "only one of"),
        (change("<stateValue type=\"color\"/>"), "values of type `color`"),
        (change(""), "a state change is a path"),
        ("<eventHandler/>".to_owned(), "line 3, column 1: <eventHandler> needs the attribute"),
        ("<eventHandler eventName=\"a[bc]\"/>".to_owned(), "regular expression"),
        ("<dance/>".to_owned(), "line 3, column 1: <dance> in <stateProvider>"),
        (String::new(), "an analysis has at least one <eventHandler>"),
        (
            format!(
                "<eventHandler eventName=\"e\">{}</eventHandler>",
                CHANGE.replace("type=\"constant\"", "type=\"pool\"")
            ),
            "attributes of type `pool`",
        ),
    ] {
        let told = errors(&provider(&body)).join("\n");
        assert!(told.contains(expected), "{body}: {told}");
    }
}

#[test]
fn what_is_wrong_in_a_pattern_is_told_at_once() {
    let file = pattern(
        "<test id=\"t\"><if><condition operator=\"like\"/></if></test>\n\
         <action id=\"a\"><fsmScheduleAction id=\"x\"/></action>\n\
         <fsm id=\"f\"><state id=\"s\"/></fsm>",
    );
    let told = errors(&file);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("line 3, ") && told[0].contains("`like`"), "{told:?}");
    assert!(told[1].starts_with("line 4, ") && told[1].contains("fsmSchedule"), "{told:?}");
    for (machine, expected) in [
        ("<fsm id=\"f\"><state id=\"s\"><transition target=\"x\"/></state></fsm>", "no <state>"),
        ("<fsm id=\"f\"><state id=\"s\"/><final id=\"s\"/></fsm>", "two states have the id `s`"),
        ("<fsm id=\"f\"/>", "an <fsm> needs a <state>"),
        ("<fsm id=\"f\" initial=\"y\"><state id=\"s\"/></fsm>", "no <state>"),
        ("<fsm id=\"f\" multiple=\"maybe\"><state id=\"s\"/></fsm>", "use true or false"),
        (
            "<fsm id=\"f\"><state id=\"s\"><transition target=\"s\" cond=\"c\"/></state></fsm>",
            "no <test> has the id `c`",
        ),
        (
            "<fsm id=\"f\"><state id=\"s\"><transition target=\"s\" action=\"b\"/></state></fsm>",
            "no <action> has the id `b`",
        ),
        ("<fsm id=\"f\"><state id=\"s\"><state id=\"inner\"/></state></fsm>", "<state> in <state>"),
    ] {
        let told = errors(&pattern(machine)).join("\n");
        assert!(told.contains(expected), "{machine}: {told}");
    }
}

#[test]
fn one_bad_analysis_does_not_stop_the_others_and_views_are_named() {
    let good = format!(
        "<stateProvider id=\"good\" version=\"1\"><head><label value=\"Good\"/></head>\
         <eventHandler eventName=\"e\">{CHANGE}</eventHandler></stateProvider>"
    );
    let file = parse(&format!(
        "<tmfxml>\n<stateProvider id=\"bad\" version=\"1\"/>\n{good}\n<timeGraphView id=\"v\"/>\
         </tmfxml>"
    ));
    assert_eq!(file.analyses.len(), 1);
    assert_eq!((file.analyses[0].id.as_str(), file.analyses[0].label.as_str()), ("good", "Good"));
    let told: Vec<_> =
        file.problems.iter().map(|problem| (problem.line, problem.severity)).collect();
    assert_eq!(told, [(2, Severity::Error), (4, Severity::Note)]);
}

#[test]
fn what_is_no_analysis_is_refused() {
    for (text, expected) in [
        ("", "no XML"),
        ("{}", "no XML"),
        ("<a/>", "the outermost element is not <tmfxml>"),
        ("<tmfxml>\n<x></tmfxml>", "line 2"),
        ("<!DOCTYPE x [<!ENTITY a \"b\">]><tmfxml>&a;</tmfxml>", "no XML"),
        ("<tmfxml><extra/></tmfxml>", "<extra> is not understood"),
    ] {
        let told = errors(&parse(text)).join("\n");
        assert!(told.contains(expected), "{text}: {told}");
    }
}

#[test]
fn hostile_files_are_bounded() {
    let deep = format!("<tmfxml>{}{}</tmfxml>", "<a>".repeat(100_000), "</a>".repeat(100_000));
    assert!(errors(&parse(&deep))[0].contains("64 deep"));
    let wide = format!("<tmfxml>{}</tmfxml>", "<a/>".repeat(1 << 18));
    assert!(errors(&parse(&wide))[0].contains("no XML"));
    let many = format!("<tmfxml>{}</tmfxml>", "<a/>".repeat(5000));
    assert_eq!(parse(&many).problems.len(), PROBLEMS);
    let large = format!("<tmfxml>{}</tmfxml>", " ".repeat(FILE_BYTES));
    assert!(errors(&parse(&large))[0].contains("bytes"));
    // Conditions in conditions, as deep as may be.
    let (open, close) = ("<not>".repeat(40), "</not>".repeat(40));
    let nested = pattern(&format!(
        "<test id=\"t\"><if>{open}<condition><field name=\"a\"/>\
         <stateValue type=\"int\" value=\"1\"/></condition>{close}</if></test>\
         <fsm id=\"f\"><state id=\"s\"><transition target=\"s\" cond=\"t\"/></state></fsm>"
    ));
    assert_eq!(nested.analyses.len(), 1, "{:?}", nested.problems);
    // A location in itself.
    let file = provider(
        "<location id=\"l\"><stateAttribute type=\"location\" value=\"l\"/></location>\
         <eventHandler eventName=\"e\"><stateChange>\
         <stateAttribute type=\"location\" value=\"l\"/><stateValue type=\"null\"/></stateChange>\
         </eventHandler>",
    );
    assert!(errors(&file)[0].contains("no <location>"));
}
