// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every number of `lat stats` is computed again here from the lines of `lat print`, by brute force on lists.

use crate::place;
use crate::view::client::Viewer;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use place::Place;
use serde_json::{Value, json};

/// Four threads that alternate at a lock; some hold it for long.
const PROGRAM: &str = "
import threading
lock = threading.Lock()
def work(number):
    for turn in range(200):
        with lock:
            sum(range(100 * number))
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
";

fn lines(place: &Place, trace: &str, options: &[&str]) -> Vec<Value> {
    let arguments = [&["print", trace, "--format", "json"], options].concat();
    let output = place.lat(&arguments);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn time(line: &Value) -> i64 {
    line["time_ns"].as_i64().expect("a time")
}

/// Returns the smallest value that at least this percentage of all values does not exceed.
fn percentile(sorted: &[i64], percent: usize) -> i64 {
    let enough = |at: &&i64| {
        let not_above = sorted.iter().filter(|other| other <= at).count();
        not_above * 100 >= percent * sorted.len()
    };
    *sorted.iter().find(enough).expect("there are some")
}

/// Checks count, sums, extremes and percentiles, and that all are exact.
fn check(row: &Value, mut nanos: Vec<i64>, what: &str) {
    nanos.sort_unstable();
    let count = nanos.len() as i64;
    let total: i64 = nanos.iter().sum();
    let mean = total as f64 / count as f64;
    let squares: f64 = nanos.iter().map(|&n| (n as f64 - mean).powi(2)).sum();
    assert_eq!(row["count"], count, "{what}: count");
    assert_eq!(row["min_ns"], nanos[0], "{what}: min");
    assert_eq!(row["max_ns"], nanos[nanos.len() - 1], "{what}: max");
    assert_eq!(row["mean_ns"], mean, "{what}: mean");
    for (name, percent) in [("median_ns", 50), ("p90_ns", 90), ("p99_ns", 99)] {
        assert_eq!(row[name], percentile(&nanos, percent), "{what}: {name}");
    }
    let stddev = row["stddev_ns"].as_f64().expect("a number");
    let expected = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
    assert!((stddev - expected).abs() <= 1e-6 * expected.max(1.0), "{what}: stddev {stddev}");
    assert_eq!(row["not_exact"], json!({}), "{what}");
}

fn named<'a>(rows: &'a Value, member: &str, name: &str) -> &'a Value {
    let mut rows = rows.as_array().into_iter().flatten();
    rows.find(|row| row[member] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// A held lock: begin, end, and thread of the begin.
struct Held {
    begin: i64,
    nanos: i64,
    tid: i64,
}

#[test]
fn sections_have_the_numbers_of_the_whole() {
    let place = Place::new();
    for (name, buffer) in [("whole", "16M"), ("lossy", "64K")] {
        let program = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=20000", "status=none"];
        let words = ["record", "-q", "--with", "io,malloc", "--buffer", buffer, "-o", name, "--"];
        assert!(place.lat(&[&words[..], &program].concat()).status.success());
        let head = |more: &[&str]| {
            let text = place.lat(&[&["stats", name], more].concat()).stdout;
            String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
        };
        let whole = place.json(&["stats", name, "--json"]);
        assert!(head(&[]).contains("of the tracer's own"), "{}", head(&[]));
        for section in
            ["events", "spans", "keys", "slowest", "latency", "threads", "losses", "cpus"]
        {
            assert_eq!(head(&["--section", section]), head(&[]), "{name} {section}");
            let part = place.json(&["stats", name, "--json", "--section", section]);
            for member in ["events_total", "duration_ns", "first_ns", "quality", "faults"] {
                assert_eq!(part[member], whole[member], "{name} {section} {member}");
            }
        }
    }
}

#[test]
fn locks_of_a_real_program_are_as_counted_by_hand() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|o| o.status.success()) {
        println!("SKIPPED: no python3 here");
        return;
    }
    let place = Place::new();
    let command = ["--with", "mutex,thread", "--", "python3", "-c", PROGRAM];
    let output = place.lat(&[&["record", "-o", "r", "--buffer", "16M"], &command[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stats = place.json(&["stats", "r", "--json"]);

    let mut open: Vec<(Value, Value, i64, i64)> = Vec::new();
    let mut locks: BTreeMap<u64, Vec<Held>> = BTreeMap::new();
    for line in lines(&place, "r", &["--event", "mutex:MUTEX_LOCK,mutex:MUTEX_UNLOCK"]) {
        let fields = &line["fields"];
        let (mutex, thread) = (&fields["mutex"], &fields["thread"]);
        if line["name"] == "mutex:MUTEX_LOCK" {
            let tid = line["tid"].as_i64().expect("a thread");
            open.push((mutex.clone(), thread.clone(), time(&line), tid));
            continue;
        }
        let innermost = open.iter().rposition(|of| of.0 == *mutex && of.1 == *thread);
        let Some(index) = innermost else { continue };
        let (_, _, begin, tid) = open.remove(index);
        let held = Held { begin, nanos: time(&line) - begin, tid };
        locks.entry(mutex.as_u64().expect("an address")).or_default().push(held);
    }
    let spans = named(&stats["spans"], "name", "mutex_held");
    assert!(locks.len() >= 2, "the interpreter has some locks");
    assert_eq!(spans["unfinished"], open.len());
    assert_eq!(spans["keys"], locks.len());
    assert_eq!(spans["key_fields"], json!(["mutex"]), "a thread makes no other lock");
    for (mutex, held) in &locks {
        let row = named(&spans["by_key"], "key", &format!("{mutex:#x}"));
        check(row, held.iter().map(|held| held.nanos).collect(), &format!("{mutex:#x}"));
        assert_eq!(row["total_ns"], held.iter().map(|held| held.nanos).sum::<i64>());
        let longest = held.iter().map(|held| held.nanos).max().expect("one");
        let by = held.iter().find(|held| held.nanos == longest).expect("one");
        assert_eq!(row["longest"]["tid"], by.tid, "who held {mutex:#x} longest");
        assert_eq!(row["longest"]["begin_ns"], by.begin);
    }
    let all: Vec<&Held> = locks.values().flatten().collect();
    check(spans, all.iter().map(|held| held.nanos).collect(), "all locks");
    let longest = all.iter().map(|held| held.nanos).max().expect("one");
    assert_eq!(spans["slowest"][0]["duration_ns"], longest);
    let mut threads: BTreeMap<i64, i64> = BTreeMap::new();
    all.iter().for_each(|held| *threads.entry(held.tid).or_default() += held.nanos);
    for row in spans["by_thread"].as_array().expect("threads") {
        assert_eq!(row["total_ns"], threads[&row["tid"].as_i64().expect("a thread")]);
    }
    assert_eq!(spans["by_thread"].as_array().map(Vec::len), Some(threads.len()));

    // The text output has the same numbers without a query.
    let page = place.lat(&["stats", "r", "--section", "keys"]).stdout;
    let page = String::from_utf8(page).expect("UTF-8");
    let most = spans["by_key"][0]["key"].as_str().expect("a lock");
    assert!(page.contains("mutex_held by mutex\n"), "{page}");
    assert!(page.contains(most) && !page.contains("events by processor"), "{page}");
}

#[test]
fn messages_states_and_levels_are_as_counted_by_hand() {
    let place = Place::new();
    place.lat(&["demo", "-o", "demo", "--orders", "100"]);
    let stats = place.json(&["stats", "demo", "--json"]);
    let all = lines(&place, "demo", &[]);

    for (channel, sent, received) in [
        ("order", "client:SEND", "warehouse:RECEIVE"),
        ("answer", "warehouse:SEND", "client:RECEIVE"),
    ] {
        let of = |name: &'static str| all.iter().filter(move |line| line["name"] == name);
        let mut nanos = Vec::new();
        let mut pairs: BTreeMap<(u64, u64), Vec<i64>> = BTreeMap::new();
        for receive in of(received) {
            let id = &receive["fields"]["id"];
            let send = of(sent).find(|send| send["fields"]["id"] == *id).expect("it was sent");
            let took = (time(receive) - time(send)).max(0);
            nanos.push(took);
            let cpu = |line: &Value| line["cpu"].as_u64().expect("a processor");
            pairs.entry((cpu(send), cpu(receive))).or_default().push(took);
        }
        let row = named(&stats["messages"], "channel", channel);
        assert_eq!((&row["never_sent"], &row["never_received"]), (&json!(0), &json!(0)));
        check(row, nanos, channel);
        assert_eq!(row["by_cpus"].as_array().map(Vec::len), Some(pairs.len()));
        for row in row["by_cpus"].as_array().expect("pairs") {
            let cpu = |name: &str| row[name].as_u64().expect("a processor");
            let pair = (cpu("from_cpu"), cpu("to_cpu"));
            check(row, pairs.remove(&pair).expect("it is one"), &format!("{channel} {pair:?}"));
        }
    }

    let end = all.iter().map(time).max().expect("events");
    let mut tids: Vec<i64> = Vec::new();
    for row in stats["states"].as_array().expect("states") {
        let tid = row["tid"].as_i64().expect("a thread");
        tids.push(tid);
        let is_it = |line: &&Value| {
            line["tid"] == tid && line["name"].as_str().is_some_and(|n| n.ends_with(":STATE"))
        };
        let told: Vec<&Value> = all.iter().filter(is_it).collect();
        let mut sums: BTreeMap<&str, (i64, u64)> = BTreeMap::new();
        for (index, line) in told.iter().enumerate() {
            let label = |line: &'_ &'_ Value| line["fields"]["state.label"].clone();
            let until = told.get(index + 1).map_or(end, |next| time(next));
            let state = line["fields"]["state.label"].as_str().expect("a state");
            let sum = sums.entry(state).or_default();
            sum.0 += until - time(line);
            sum.1 += u64::from(index == 0 || label(&told[index - 1]) != label(line));
        }
        for (state, (nanos, entries)) in sums {
            let of = named(&row["states"], "state", state);
            assert_eq!((&of["total_ns"], &of["entries"]), (&json!(nanos), &json!(entries)));
        }
    }
    assert!(tids.len() >= 4, "workers and clients: {tids:?}");

    let levels: Vec<(i64, i64)> = all
        .iter()
        .filter(|line| line["name"] == "warehouse:QUEUE")
        .map(|line| (time(line), line["fields"]["waiting"].as_i64().expect("a level")))
        .collect();
    let counter = &stats["counters"][0];
    assert_eq!(counter["counter"], "warehouse:QUEUE.waiting");
    assert_eq!(counter["count"], levels.len());
    let most = levels.iter().map(|level| level.1).max().expect("levels");
    let least = levels.iter().map(|level| level.1).min().expect("levels");
    assert_eq!((&counter["min"], &counter["max"]), (&json!(least as f64), &json!(most as f64)));
    let untils = levels.iter().skip(1).map(|level| level.0).chain([end]);
    let area: i64 =
        levels.iter().zip(untils).map(|(level, until)| level.1 * (until - level.0)).sum();
    let mean = area as f64 / (end - levels[0].0) as f64;
    let told = counter["mean"].as_f64().expect("a mean");
    assert!((mean - told).abs() <= 1e-9 * mean.max(1.0), "{mean} {told}");
    let chart = counter["chart"].as_array().expect("a chart");
    assert!(chart.len() <= 1024 && chart.iter().any(|point| point[1] == most as f64));
}

/// Path of an LTTng trace that is not part of the project; prints a message and returns `None` if it is
/// missing.
fn kernel_trace() -> Option<String> {
    let shared = "../../../shared/data/traces/ctf1/lttng-ref/basic-kernel-analysis/kernel";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(shared);
    if !path.exists() {
        println!("SKIPPED: no {}", path.display());
        return None;
    }
    Some(path.to_str().expect("UTF-8").to_owned())
}

#[test]
fn utilisation_of_threads_is_as_counted_by_hand() {
    let Some(trace) = kernel_trace() else { return };
    let trace = trace.as_str();
    let place = Place::new();
    let stats = place.json(&["stats", trace, "--json"]);
    let all = lines(&place, trace, &[]);
    let end = all.iter().map(time).max().expect("events");
    let begin = all.iter().map(time).min().expect("events");
    let mut threads: BTreeMap<i64, (i64, u64)> = BTreeMap::new();
    let mut open = BTreeSet::new();
    let mut cpus = 0;
    for row in stats["cpus"].as_array().expect("processors") {
        cpus += 1;
        let of_cpu: Vec<&Value> = all.iter().filter(|line| line["cpu"] == row["cpu"]).collect();
        let switches: Vec<_> =
            of_cpu.iter().filter(|line| line["name"] == "sched_switch").collect();
        let number = |line: &Value, name: &str| line["fields"][name].as_i64().expect("a thread");
        let mut stretches = Vec::new();
        // The thread before the first switch of a CPU, and the length of the run after its last switch, are
        // unknown.
        let mut since = time(switches[0]);
        for (index, switch) in switches.iter().enumerate() {
            if index == 0 {
                open.insert(number(switch, "prev_tid"));
            }
            stretches.push((number(switch, "prev_tid"), time(switch) - since));
            since = time(switch);
            threads.entry(number(switch, "next_tid")).or_default().1 += 1;
        }
        open.insert(number(switches[switches.len() - 1], "next_tid"));
        let busy: i64 = stretches.iter().filter(|(tid, _)| *tid != 0).map(|(_, n)| n).sum();
        let idle: i64 = stretches.iter().filter(|(tid, _)| *tid == 0).map(|(_, n)| n).sum();
        for (tid, nanos) in stretches {
            threads.entry(tid).or_default().0 += nanos;
        }
        assert_eq!((&row["busy_ns"], &row["idle_ns"]), (&json!(busy), &json!(idle)));
        let unknown = time(switches[0]) - begin + end - since;
        assert_eq!(row["unknown_ns"], unknown);
        assert_eq!(row["not_exact"]["busy_ns"], "lower_bound");
        assert_eq!(row["switches"], switches.len());
        let series = row["series"]["busy_ns"].as_array().expect("a series");
        assert_eq!(series.iter().filter_map(Value::as_i64).sum::<i64>(), busy);
        assert!(
            row["kernel_ns"].as_i64() > Some(0) && row["kernel_ns"].as_i64() < Some(busy + idle)
        );
    }
    assert_eq!(cpus, 2);
    let rows = stats["threads"].as_array().expect("threads");
    threads.remove(&0);
    assert_eq!(rows.len(), threads.len());
    for row in rows {
        let (nanos, schedules) = threads[&row["tid"].as_i64().expect("a thread")];
        assert_eq!(row["running_ns"], nanos, "{row}");
        let is_open = open.contains(&row["tid"].as_i64().expect("a thread"));
        assert_eq!(row["not_exact"]["running_ns"] == "lower_bound", is_open, "{row}");
        assert_eq!(row["schedules"], schedules, "{row}");
        let share = nanos as f64 / (end - begin) as f64;
        assert!((row["utilisation"].as_f64().expect("a share") - share).abs() < 1e-9);
        // No tracer records every entry into the kernel.
        let of_kernel = json!({ "kernel_ns": "lower_bound" });
        assert_eq!(row["not_exact"] == of_kernel, !is_open, "{row}");
    }

    // Only events on one CPU, in the second second.
    let window = ["--cpu", "1", "--from", "1s", "--until", "2s"];
    let stats = place.json(&[&["stats", trace, "--json"], &window[..]].concat());
    let chosen = lines(&place, trace, &window);
    assert_eq!(stats["events_total"], chosen.len());
    assert_eq!(stats["cpus"].as_array().map(Vec::len), Some(1));
    let silence = chosen.windows(2).map(|two| time(&two[1]) - time(&two[0])).max();
    assert_eq!(stats["events_by_cpu"][0]["longest_silence_ns"], json!(silence));
}

#[test]
fn switches_that_nothing_told_of_make_nothing_exact() {
    let Some(trace) = kernel_trace() else { return };
    let trace = trace.as_str();
    let place = Place::new();
    // Some kernels never record leaving the idle thread.
    place.lat(&["convert", trace, "-o", "out", "--where", "!(prev_tid == 0)"]);
    let stats = place.json(&["stats", "out", "--json"]);
    assert_eq!(stats["losses"], json!([]), "nobody has counted them");
    let mut partial = BTreeSet::new();
    let (mut contradictions, mut torn_count) = (BTreeSet::new(), 0);
    for cpu in stats["cpus"].as_array().expect("processors") {
        let number = cpu["cpu"].to_string();
        let switches = lines(&place, "out", &["--event", "sched_switch", "--cpu", &number]);
        let who = |line: &Value, name: &str| line["fields"][name].as_i64().expect("a thread");
        let two =
            switches.windows(2).map(|two| [who(&two[0], "next_tid"), who(&two[1], "prev_tid")]);
        let torn: Vec<[i64; 2]> = two.filter(|[came, leaves]| came != leaves).collect();
        assert!(torn.len() > 100);
        assert_eq!(cpu["missing_switches"], torn.len());
        assert_eq!(cpu["not_exact"]["busy_ns"], "lower_bound");
        assert_eq!(cpu["not_exact"]["utilisation"], "unknown");
        let of_cpu = |torn: &[i64; 2]| (cpu["cpu"].as_i64(), torn[0], torn[1]);
        contradictions.extend(torn.iter().map(of_cpu));
        torn_count += torn.len();
        partial.extend(torn.into_iter().flatten());
    }
    // The reason: nothing was lost, yet the thread that left is not the one that was running.
    assert_eq!(stats["contradictions"]["count"], torn_count);
    let first = stats["contradictions"]["first"].as_array().expect("a list");
    assert_eq!(first.len(), 100);
    for of in first {
        assert_eq!(of["kind"], "other_thread_left");
        let tid = |name: &str| of[name].as_i64().unwrap_or(0);
        let place = (of["cpu"].as_i64(), tid("tid"), tid("left_tid"));
        assert!(contradictions.contains(&place), "{of}");
        assert!(of["begin_ns"].as_i64() <= of["end_ns"].as_i64(), "{of}");
    }
    for thread in stats["threads"].as_array().expect("threads") {
        let is_partial = partial.contains(&thread["tid"].as_i64().expect("a thread"));
        let quality = if is_partial { json!("lower_bound") } else { Value::Null };
        assert_eq!(thread["not_exact"]["running_ns"], quality, "{thread}");
    }
    // Wakeups are not exact either: if a thread left the CPU without a recorded switch, its wakeup appears
    // needless.
    let wakeups = &stats["wakeups"];
    assert_eq!(wakeups["not_exact"]["needless"], "unknown", "{}", wakeups["needless"]);
    let rows = wakeups["latencies"].as_array().expect("latencies");
    assert!(rows.len() > 10);
    for row in rows {
        let is_partial = partial.contains(&row["tid"].as_i64().expect("a thread"));
        let quality = if is_partial { json!("lower_bound") } else { Value::Null };
        assert_eq!(row["not_exact"]["count"], quality, "{row}");
    }
    let text = place.lat(&["stats", "out", "--section", "cpus"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("switches are missing") && text.contains("≥ at least"), "{text}");
    assert!(text.contains("contradictions: ") && text.contains(" came, and "), "{text}");
    every_consumer_lists_contradictions(&place, &stats["contradictions"]);
}

/// Checks that other consumers of the recording `out` list these contradictions, too.
fn every_consumer_lists_contradictions(place: &Place, expected: &Value) {
    let count = expected["count"].as_u64().expect("a number");
    let info = place.json(&["info", "out", "--json"]);
    assert_eq!(&info["contradictions"], expected);
    let text = String::from_utf8_lossy(&place.lat(&["info", "out"]).stdout).into_owned();
    assert!(text.contains(&format!("switches    {} contradictions", count)), "{text}");
    assert!(text.contains(" came, and "), "{text}");
    let columns = "kind,cpu,ts,end_ts,tid,left_tid";
    let table = ["table", "out", "--name", "contradictions", "--column", columns];
    let table = String::from_utf8_lossy(&place.lat(&table).stdout).into_owned();
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert_eq!(rows.len() as u64, count);
    let first = expected["first"].as_array().expect("a list");
    for (row, of) in rows.iter().zip(first) {
        let cell = |name: &str| match &of[name] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            number => number.to_string(),
        };
        let cells = ["kind", "cpu", "begin_ns", "end_ns", "tid", "left_tid"].map(cell);
        assert_eq!(*row, cells.join(","));
    }
    let open = Viewer::start(place, &["out"]).page().ask("open", json!({}));
    let origin: i64 = open["origin"].as_str().expect("a time").parse().expect("a number");
    let listed = open["damage"].as_array().expect("a list");
    assert_eq!(listed.len(), first.len() + 1, "and how many more");
    for (row, of) in listed.iter().zip(first) {
        let time = |name: &str| row[name].as_i64().map(|time| origin + time);
        assert_eq!([time("begin"), time("end")], [of["begin_ns"].as_i64(), of["end_ns"].as_i64()]);
        assert_eq!(row["file"], "switches");
    }
    // No event is missing for it.
    assert_eq!(open["recordings"][0]["quality"], "exact");
}

/// Calls of the utilisation functions between requests: three requests before, five in the first interval,
/// two between, seven in the second. The last reset has no finalize.
const TRACKED: &str = r#"
    #include <lockio.h>
    #include <lat/utilisation.h>
    static uint32_t id;
    static void requests(int count) { while (count-- > 0) lat_server_request(id++); }
    int main(void) {
        requests(3);
        lat_utilisation_reset();
        requests(1);
        lat_utilisation_reset();
        requests(5);
        lat_utilisation_finalize();
        requests(2);
        lat_utilisation_reset();
        requests(7);
        lat_utilisation_finalize();
        requests(4);
        lat_utilisation_reset();
        return 0;
    }
"#;

#[test]
fn statistics_are_of_the_interval_that_a_program_tracked() {
    let place = Place::new();
    let source = place.0.join("tracked.c");
    std::fs::write(&source, TRACKED).expect("its source");
    let Some(program) = place.compile("tracked", &source, "lockio") else { return };
    place.record("out", &[], &program, &[]);
    let requests = |option: &[&str]| {
        let stats = place.json(&[&["stats", "out", "--json"], option].concat());
        let classes = stats["events"].as_array().expect("classes").clone();
        let own = classes.iter().find(|row| row["name"] == "server:REQUEST").cloned();
        (own.expect("requests")["count"].clone(), stats["utilisation"].clone())
    };
    assert_eq!(requests(&[]).0, 22);
    let (count, first) = requests(&["--utilisation=1"]);
    assert_eq!((count, &first["interval"], &first["of"]), (json!(5), &json!(1), &json!(2)));
    assert!(first["begin_ns"].as_i64() < first["end_ns"].as_i64(), "{first}");
    for option in ["--utilisation", "--utilisation=2"] {
        let (count, second) = requests(&[option]);
        assert_eq!((count, &second["interval"]), (json!(7), &json!(2)), "{option}");
        assert!(second["pid"].is_u64() && second["begin_ns"].as_i64() > first["end_ns"].as_i64());
    }
    let page = place.lat(&["stats", "out", "--utilisation"]);
    let text = String::from_utf8_lossy(&page.stdout);
    assert!(text.starts_with("utilisation  interval 2 of 2 of tracked-program ("), "{text}");
    for (options, told) in [
        (&["--utilisation=3"][..], "it has 2 intervals"),
        (&["--utilisation", "--from", "1s"], "cannot be used with"),
    ] {
        let output = place.lat(&[&["stats", "out"], options].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(told), "{text}");
    }
}
