// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Common mistakes give messages with the correct form.

use crate::place::{data, outcome, run};

/// Statements, and the expected texts in the message.
const MISTAKES: [(&str, &str); 34] = [
    (
        "SELECT sum(class) FROM events",
        "a text is no number: sum(class): sum takes numbers: numbers \
      of events are ts, stream, cpu, pid, tid, packet",
    ),
    ("SELECT avg(class) FROM events", "a text is no number: avg(class): "),
    ("SELECT sum(DISTINCT class) FROM events", "a text is no number: sum(DISTINCT class): "),
    ("SELECT stddev(class) FROM events", "a text is no number: stddev(class): "),
    ("SELECT median(fields) FROM events", "a text is no number: median(fields): "),
    ("SELECT abs(class) FROM events", "a text is no number: abs(class): "),
    ("SELECT corr(class, ts) FROM events", "a text is no number: corr(class, ts): "),
    ("SELECT approx_percentile_cont(class, 0.5) FROM events", "a text is no number: "),
    (
        "SELECT percentile(class, 99) FROM events",
        "wrong arguments: percentile(class, 99): \
      percentile(x, p) takes numbers, not a text and an integer",
    ),
    ("SELECT percentile(ts) FROM events", "wrong arguments: percentile(ts): percentile takes two"),
    (
        "SELECT time_bucket(ts) FROM events",
        "wrong arguments: time_bucket(ts): time_bucket takes two \
      arguments: time_bucket('10ms', ts)",
    ),
    ("SELECT histogram(class) FROM events", "wrong arguments: histogram(class): histogram takes a"),
    (
        "SELECT round(ts, 1, 2) FROM events",
        "wrong number of arguments: round(ts, 1, 2): round takes \
      1 or 2, not 3",
    ),
    ("SELECT max() FROM events", "wrong number of arguments: max(): "),
    ("SELECT sum(*) FROM events", "nothing to compute with: an aggregate other than count(*): "),
    ("SELECT upper(ts) FROM events", "a number is no text: upper(ts): CAST"),
    (
        "SELECT date_trunc('second', ts) FROM events",
        "an integer is no date: \
      date_trunc('second', ts): ",
    ),
    ("SELECT extract(hour FROM ts) FROM events", "an integer is no date: "),
    ("SELECT class + 1 FROM events", "cannot compute: a text + an integer: numbers of events are "),
    ("SELECT * FROM events WHERE class > 5", "a text is no number: '"),
    ("SELECT * FROM events WHERE cpu = 'x'", "a text is no number: 'x': compare texts with"),
    (
        "SELECT * FROM events WHERE ts > '10ms'",
        "a text is no number: '10ms': times are nanoseconds: \
      write ns('10ms')",
    ),
    (
        "SELECT * FROM events WHERE ts > '2023-11-14 22:13:20'",
        "a text is no number: '2023-11-14 \
      22:13:20': times are nanoseconds since 1970: write CAST(to_timestamp_nanos(",
    ),
    ("SELECT * FROM events WHERE ts > now()", "cannot compare: an integer > "),
    ("SELECT class, count(*) FROM events", "not grouped: events.class: put it into GROUP BY"),
    ("SELECT * FROM events WHERE count(*) > 5", "an aggregate in WHERE: "),
    ("SELECT * FROM events WHERE class", "no condition: events.class is a text: compare it"),
    (
        "SELECT * FROM events WHERE class = \"page fault\"",
        "no such column: page fault: a text \
      stands in single quotes: 'page fault'",
    ),
    ("SELECT cout(*) FROM events", "no such function: cout: did you mean count"),
    ("SELECT ts / 0 FROM events", "division by zero: "),
    ("SELECT ts FROM events UNION SELECT class FROM events", "cannot unite: columns of the sides"),
    (
        "SELECT ts FROM events UNION SELECT ts, class FROM events",
        "cannot unite: the sides of UNION",
    ),
    (
        "SELECT ts FROM events ORDER BY 3",
        "no such column: ORDER BY 3: columns of the result are 1 \
      to 1",
    ),
    ("SELECT ts FROM events LIMIT -1", "no number of rows: LIMIT: write LIMIT 10"),
];

#[test]
fn usual_mistakes_are_told_with_what_to_write() {
    let Some(trace) = data("traces/generated/lttng-ust-20k") else { return };
    for (sql, words) in MISTAKES {
        let (code, said) = outcome(&run(&trace, &["-c", sql]));
        assert_eq!(code, Some(2), "{sql}: {said}");
        assert!(said.starts_with(&format!("error: {words}")), "{sql}: {said}");
        for word in ["DataFusion", "Internal", "Candidate", "Int64", "Utf8", "Dictionary"] {
            assert!(!said.contains(word), "{sql}: {said}");
        }
    }
}

#[test]
fn what_is_advised_can_be_written() {
    let Some(trace) = data("traces/generated/lttng-ust-20k") else { return };
    for (sql, wanted) in [
        ("SELECT count(*) > 0 AS x FROM events WHERE ts > ns('10ms')", "true"),
        ("SELECT CAST(to_timestamp_nanos('1970-01-01 00:00:01') AS BIGINT) AS x", "1000000000"),
        ("SELECT to_timestamp_nanos(1000000001)::text AS x", "1970-01-01T00:00:01.000000001"),
        ("SELECT coalesce(1 / nullif(0, 0), 7) AS x", "7"),
    ] {
        let output = run(&trace, &["--format", "csv", "-c", sql]);
        let shown = String::from_utf8(output.stdout.clone()).unwrap();
        assert_eq!(shown.lines().nth(1), Some(wanted), "{sql}: {}", outcome(&output).1);
    }
}
