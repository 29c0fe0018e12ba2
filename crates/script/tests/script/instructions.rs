// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What compiled filters cost over columns.

use crate::counted::{Case, Select, few_instructions};
use lateralis_script::expression::Expression;

const CASES: [Case; 6] = [
    ("event.fields.bytes > 5000 && event.fields.delta < 3", 6.0),
    ("event.fields.bytes < 900 || event.fields.delta > 40 || event.fields.ratio >= 0.9", 8.0),
    ("event.labels.state === 'RUNNING'", 4.0),
    ("event.fields.bytes + 2 * event.fields.delta > 5000", 16.0),
    ("(event.fields.bytes & 6) === 6", 60.0),
    ("event.fields.name.startsWith('redis') && event.time < 9000n", 26.0),
];

#[test]
fn a_script_takes_few_instructions_an_event() {
    let test = "instructions::a_script_takes_few_instructions_an_event";
    few_instructions(test, &CASES, |text, stream, class| -> Select {
        let plan = Expression::parse(text).expect("in the subset").plan(stream, class);
        Box::new(move |part, asking, mask| plan.select(part, asking, mask))
    });
}
