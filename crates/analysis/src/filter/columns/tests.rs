// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results on columns equal those on single events.

mod drawn;

use lateralis_model::{StreamSummary, Want};
use proptest::prelude::*;

use super::{Answer, Asking, Mask, Parts};
use crate::filter::{Context, Filter};
use drawn::{Drawn, classes, drawn, names};

const OPERANDS: [&str; 49] = [
    "u",
    "i",
    "real",
    "flag",
    "state",
    "level",
    "bits",
    "at.text",
    "at.port",
    "at",
    "at.none",
    "blob",
    "list",
    "list[1]",
    "numbers",
    "numbers[0]",
    "numbers[2]",
    "u[1]",
    "seq",
    "none",
    "cpu_id",
    "vpid",
    "procname",
    "$event",
    "$subsystem",
    "$cpu",
    "$pid",
    "$tid",
    "$process",
    "$thread",
    "$stream",
    "$time",
    "0",
    "1",
    "2",
    "-3",
    "4k",
    "0.5",
    "5.0",
    "-1.5",
    "9007199254740992.0",
    "18446744073709551615",
    "9223372036854775808",
    "'hello'",
    "'RUNNING'",
    "'R*'",
    "'*o*'",
    "''",
    "'\u{fffd}'",
];

fn expression() -> impl Strategy<Value = String> {
    let operators = vec!["==", "!=", "<", "<=", ">", ">=", "=~", "!~"];
    let operand = || prop::sample::select(&OPERANDS[..]);
    let words = vec![
        "RUNNING",
        "'hello world'",
        "'he*'",
        "'*d'",
        "'*ll*'",
        "'h?llo'",
        "'io:READ'",
        "redis",
        "'\u{20ac}'",
        "'*\u{fffd}*'",
        "READY",
        "cpu0",
        "IDLE",
    ];
    let compared = prop_oneof![2 => operand(), 1 => prop::sample::select(words)];
    let compare = (operand(), prop::sample::select(operators), compared)
        .prop_map(|(left, operator, right)| format!("{left} {operator} {right}"));
    let leaf = prop_oneof![8 => compare, 1 => operand().prop_map(str::to_owned)];
    leaf.prop_recursive(4, 12, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        let three = (inner.clone(), inner.clone(), inner.clone());
        prop_oneof![
            pair.clone().prop_map(|(a, b)| format!("({a} && {b})")),
            pair.prop_map(|(a, b)| format!("({a} || {b})")),
            three.prop_map(|(a, b, c)| format!("({a} && {b} && {c})")),
            inner.prop_map(|a| format!("!({a})")),
        ]
    })
}

/// Evaluates a plan on a batch, and on each event individually.
fn check(text: &str, batch: &Drawn) {
    let filter = Filter::parse(text).expect(text);
    let streams = [StreamSummary { name: "cpu0".into(), ..StreamSummary::default() }];
    let names = names();
    let context = Context { names: &names, streams: &streams };
    let mut asking = Asking::new(&context);
    let mut mask = Mask::default();
    let class = |index: u32| &batch.stream_class.event_classes[index as usize];
    let parts = Parts::new(batch, &batch.stream_class, true);
    for index in 0..parts.len() {
        let part = parts.part(index);
        let plan = filter.plan(&batch.stream_class, class(part.class().class));
        plan.select(&part, &mut asking, &mut mask);
        let rows = (0..batch.rows.len()).filter(|at| batch.rows[*at].class == part.class().class);
        let expected: Vec<bool> =
            rows.map(|at| filter.matches(&batch.event(at), &context)).collect();
        let found: Vec<bool> = (0..mask.len()).map(|at| mask.contains(at)).collect();
        assert_eq!(found, expected, "{text} of class {}", part.class().class);
        assert_eq!(mask.asked(), [], "{text}");
        if let Some(answer) = plan.constant() {
            assert!(expected.iter().all(|chosen| *chosen == (answer == Answer::Yes)), "{text}");
        }
        // Columns that are not requested are not read.
        let wanted = plan.want();
        let looked = match &wanted {
            Want::Columns(columns) => columns.iter().filter(|wanted| **wanted).count(),
            _ => 0,
        };
        assert!(looked <= part.class().columns, "{text}: {wanted:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn columns_say_what_events_say(texts in prop::collection::vec(expression(), 8), batch in drawn()) {
        for text in texts {
            check(&text, &batch);
        }
    }
}

#[test]
fn what_a_class_cannot_have_is_decided_before() {
    let stream = classes();
    let plan = |text: &str, class: usize| {
        Filter::parse(text).unwrap().plan(&stream, &stream.event_classes[class])
    };
    for (text, class, answer, want) in [
        ("$event == 'io:READ' && u > 3", 1, Some(Answer::No), Want::Count),
        ("$event == 'io:DONE' || state == RUNNING", 1, Some(Answer::Yes), Want::Times),
        ("state == RUNNING", 1, Some(Answer::No), Want::Count),
        ("!(state == RUNNING)", 1, Some(Answer::Yes), Want::Times),
        ("u >= 0", 0, Some(Answer::Yes), Want::Times),
        ("u > 18446744073709551615", 0, Some(Answer::No), Want::Count),
        ("state == SLEEPING", 0, Some(Answer::No), Want::Count),
        ("$subsystem == io && u > 3", 0, None, Want::Columns(vec![false, false, false, true])),
        ("$cpu == 2 && $time > 5", 1, None, Want::Columns(vec![true])),
        ("$stream == cpu0 && seq == 3", 1, None, Want::Times),
        ("none < 3 || $event =~ '*READ' && !blob", 0, Some(Answer::No), Want::Count),
    ] {
        let plan = plan(text, class);
        assert_eq!((plan.constant(), plan.want()), (answer, want), "{text} of {class}");
    }
}

#[test]
fn long_chains_need_no_deep_stack() {
    let stream = classes();
    let text = vec!["u == 3"; 20_000].join(" || ");
    let filter = Filter::parse(&text).unwrap();
    let plan = filter.plan(&stream, &stream.event_classes[0]);
    assert_eq!(plan.constant(), None);
}
