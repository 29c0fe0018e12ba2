// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cost of filters over columns. At three instructions per nanosecond, 30 of them are 100 million events
//! per second.

mod counted;

use counted::{Case, Select, few_instructions};
use lateralis_analysis::filter::Filter;

const CASES: [Case; 16] = [
    ("bytes > 4k", 3.0),
    ("bytes >= 1000 && bytes < 3000", 3.0),
    ("bytes < 1000 || delta > 40 || ratio >= 0.9", 8.0),
    ("bytes > 4k && delta < 0 && ratio < 0.5", 8.0),
    ("state == RUNNING", 3.0),
    ("state == RUNNING || state == READY || state == 9", 5.0),
    ("bytes == 1 || bytes == 900 || bytes == 5000 || bytes == 7919 || bytes == 9999", 30.0),
    ("name == 'redis-server'", 14.0),
    ("name =~ 'redis*'", 40.0),
    ("name =~ 'redis*' && ratio >= 0.5", 26.0),
    ("name =~ '*swap*'", 140.0),
    ("$event == 'io:READ' && bytes > 4k && delta < 0", 6.0),
    ("$time >= 4us && $time < 9us", 3.0),
    ("$time < 2us && name =~ '*swap*'", 26.0),
    ("ratio >= 0.5", 3.0),
    ("delta > $time", 10.0),
];

#[test]
fn a_filter_takes_few_instructions_an_event() {
    let test = "a_filter_takes_few_instructions_an_event";
    few_instructions(test, &CASES, |text, stream, class| -> Select {
        let plan = Filter::parse(text).expect("a filter").plan(stream, class);
        Box::new(move |part, asking, mask| plan.select(part, asking, mask))
    });
}
