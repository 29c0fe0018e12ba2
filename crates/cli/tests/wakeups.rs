// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wakers and wakeup latencies of each producer, compared with counts from the output of other programs for
//! the same trace.

use crate::kernel::{number, usable};
use crate::place::Place;
use crate::view::client::Viewer;
use crate::view::counted::activities;

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A scheduler event as printed by another program.
pub struct Printed {
    pub time: u64,
    pub tid: i64,
    pub cpu: i64,
    /// Whether the program reports that it occurred in an interrupt.
    pub is_interrupt: bool,
    pub name: String,
    pub line: String,
}

/// Cause of a wakeup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    Interrupt,
    Thread(i64),
    /// No switch of its CPU has been recorded yet.
    Unknown,
}

/// Latencies of each thread in order, and number of wakeups by waker and woken thread.
#[derive(Default)]
pub struct Counted {
    nanos: BTreeMap<i64, Vec<u64>>,
    pairs: BTreeMap<(By, i64), u64>,
    /// Threads with a wakeup whose `sched_waking` precedes the recording, which starts CPU by CPU and event
    /// by event: the recorded part began earlier, with an unknown waker.
    begun_before: BTreeSet<i64>,
    /// Threads to which a CPU switched and never from them, or vice versa: the kernel of some virtual
    /// machines omits switches of its idle thread.
    torn: BTreeSet<i64>,
    /// Threads with events whose order is unknown.
    unordered: BTreeSet<i64>,
}

/// Returns threads with events on two CPUs in the same nanosecond, from events in time order. Their order is
/// unknown, and programs print them in different orders.
pub fn of_one_time(events: impl IntoIterator<Item = (u64, i64, Vec<i64>)>) -> BTreeSet<i64> {
    let (mut now, mut of_now) = (0, BTreeMap::new());
    let mut found = BTreeSet::new();
    for (time, cpu, tids) in events {
        if time != now {
            (now, of_now) = (time, BTreeMap::new());
        }
        let is_of_two = |tid: &i64| *of_now.entry(*tid).or_insert(cpu) != cpu;
        found.extend(tids.into_iter().filter(is_of_two));
    }
    found.remove(&0);
    found
}

impl Counted {
    /// Whether other programs may legitimately have other numbers for a thread.
    fn is_uncertain(&self, tid: i64) -> bool {
        self.torn.contains(&tid) || self.unordered.contains(&tid)
    }

    fn has_uncertain(&self) -> bool {
        !self.torn.is_empty() || !self.unordered.is_empty()
    }

    /// Keeps the pairs of threads with certain numbers.
    fn certain(&self, mut pairs: BTreeMap<(By, i64), u64>) -> BTreeMap<(By, i64), u64> {
        pairs.retain(|(_, wakee), _| !self.is_uncertain(*wakee));
        pairs
    }

    fn unknown_count(&self) -> u64 {
        self.pairs.iter().filter(|((by, _), _)| *by == By::Unknown).map(|(_, count)| count).sum()
    }
}

/// Counts by the rules common to perf, lttng-analyses and the kernel: a wakeup begins with `sched_waking`, if
/// there is any; it has no effect on a thread that is running or already woken.
pub fn count(events: &[Printed]) -> Counted {
    let has_waking = events.iter().any(|event| event.name == "sched_waking");
    let mut counted = Counted::default();
    let (mut running, mut woken) = (BTreeSet::new(), BTreeMap::new());
    // Wakeups whose `sched_wakeup` is still to come.
    let mut begun = BTreeSet::new();
    // For LTTng, whose events contain neither the thread nor the interrupt.
    let (mut on, mut depths): (BTreeMap<i64, i64>, BTreeMap<i64, u64>) = Default::default();
    let one = |event: &Printed, name: &str| number(&event.line, name);
    let either = |event: &Printed, names: [&str; 2]| names.iter().find_map(|name| one(event, name));
    let tids = |event: &Printed| {
        let names =
            [[" tid = ", " pid="], [" prev_tid = ", " prev_pid="], [" next_tid = ", " next_pid="]];
        names.into_iter().filter_map(|names| either(event, names)).collect()
    };
    counted.unordered =
        of_one_time(events.iter().map(|event| (event.time, event.cpu, tids(event))));
    for event in events {
        let name = event.name.as_str();
        let either = |names| either(event, names);
        if ["sched_waking", "sched_wakeup", "sched_wakeup_new"].contains(&name) {
            let Some(wakee) = either([" tid = ", " pid="]) else { panic!("{}", event.line) };
            if name == "sched_waking" {
                begun.insert(wakee);
            } else if name == "sched_wakeup" && begun.remove(&wakee) {
                continue;
            }
            if wakee == 0 || running.contains(&wakee) || woken.contains_key(&wakee) {
                continue;
            }
            if name == "sched_wakeup" && has_waking {
                counted.begun_before.insert(wakee);
                woken.insert(wakee, (event.time, By::Unknown));
                continue;
            }
            let thread = if event.tid < 0 { on.get(&event.cpu).copied() } else { Some(event.tid) };
            let is_inside = depths.get(&event.cpu).is_some_and(|depth| *depth > 0);
            let by = match thread {
                _ if event.is_interrupt || is_inside => By::Interrupt,
                Some(0) => By::Interrupt,
                Some(tid) => By::Thread(tid),
                None => By::Unknown,
            };
            woken.insert(wakee, (event.time, by));
        } else if name == "sched_switch" {
            let from = either([" prev_tid = ", " prev_pid="]).expect("a thread");
            let to = either([" next_tid = ", " next_pid="]).expect("a thread");
            if let Some(before) = on.insert(event.cpu, to).filter(|before| *before != from) {
                counted.torn.extend([before, from]);
            }
            depths.insert(event.cpu, 0);
            running.remove(&from);
            woken.remove(&from);
            begun.remove(&to);
            if to != 0 {
                running.insert(to);
                if let Some((time, by)) = woken.remove(&to) {
                    counted.nanos.entry(to).or_default().push(event.time.saturating_sub(time));
                    *counted.pairs.entry((by, to)).or_default() += 1;
                }
            }
        } else if name.ends_with("irq_handler_entry") || name.ends_with("softirq_entry") {
            *depths.entry(event.cpu).or_default() += 1;
        } else if name.ends_with("irq_handler_exit") || name.ends_with("softirq_exit") {
            let depth = depths.entry(event.cpu).or_default();
            *depth = depth.saturating_sub(1);
        }
    }
    counted.nanos.values_mut().for_each(|nanos| nanos.sort_unstable());
    counted
}

/// Checks that the latencies of all threads are those counted, up to `off` nanoseconds by which two
/// conversions of one clock differ. Returns the section.
pub fn compare(place: &Place, trace: &str, counted: &Counted, off: u64) -> Value {
    let stats = place.json(&["stats", trace, "--section", "wakeups", "--json"]);
    let wakeups = stats["wakeups"].clone();
    let rows = wakeups["latencies"].as_array().expect("rows");
    let threads: BTreeSet<i64> = rows.iter().filter_map(|row| row["tid"].as_i64()).collect();
    assert_eq!(threads, counted.nanos.keys().copied().collect(), "{trace}");
    for row in rows {
        let tid = row["tid"].as_i64().expect("a thread");
        if counted.is_uncertain(tid) {
            println!(
                "not compared: thread {tid}: a switch is missing, or two events have no order"
            );
            continue;
        }
        let nanos = &counted.nanos[&tid];
        // Events printed by other programs may be lost only for `lat`, which then reports it.
        assert_eq!(row["touched_by_losses"], 0, "{row}");
        assert_eq!(row["count"], nanos.len(), "{trace}: {row}");
        let is_near = |name: &str, nanos: u64| {
            assert!(row[name].as_u64().unwrap().abs_diff(nanos) <= off, "{name} {nanos}: {row}");
        };
        is_near("min_ns", nanos[0]);
        is_near("median_ns", nanos[(nanos.len() - 1) / 2]);
        is_near("max_ns", nanos[nanos.len() - 1]);
        if counted.begun_before.contains(&tid) {
            assert_eq!(row["not_exact"]["max_ns"], "lower_bound", "{row}");
        }
    }
    wakeups
}

/// Returns wakers and woken threads of `lat stats`, and the number of wakeups by unknown wakers. If switches
/// of a thread are missing, some of its wakeups appear needless.
fn pairs(wakeups: &Value, torn: &BTreeSet<i64>) -> (BTreeMap<(By, i64), u64>, u64) {
    let (mut pairs, mut unknown) = (BTreeMap::new(), 0);
    let rows = wakeups["pairs"].as_array().expect("rows");
    // If some wakers of a thread are unknown, the known ones may have woken it more often.
    let of_unknown: Vec<&Value> =
        rows.iter().filter(|row| row["woken_by"] == "unknown").map(|row| &row["tid"]).collect();
    for row in rows {
        let count = row["count"].as_u64().expect("a number");
        let by = match row["woken_by"].as_str().expect("a word") {
            "interrupt" => By::Interrupt,
            "thread" => By::Thread(row["waker_tid"].as_i64().expect("a thread")),
            _ => {
                assert_eq!(row["not_exact"], json!({ "count": "unknown" }));
                unknown += count;
                continue;
            }
        };
        let is_torn = torn.contains(&row["tid"].as_i64().expect("a thread"));
        let expected = match of_unknown.contains(&&row["tid"]) {
            _ if is_torn => json!({ "count": "unknown" }),
            true => json!({ "count": "lower_bound" }),
            false => json!({}),
        };
        assert_eq!(row["not_exact"], expected, "{row}");
        *pairs.entry((by, row["tid"].as_i64().expect("a thread"))).or_default() += count;
    }
    (pairs, unknown)
}

/// Returns the output of a program; prints a message and returns `None` if it cannot run.
fn output(program: &str, arguments: &[&str], place: &Place) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(&place.0).output().ok()?;
    if !output.status.success() {
        println!("SKIPPED: {program}: {}", String::from_utf8_lossy(&output.stderr).trim());
        return None;
    }
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `SECONDS.FRACTION` as nanoseconds.
fn nanos(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + fraction)
}

#[test]
fn wake_ups_of_lttng_are_as_counted_by_the_waker_s_moment() {
    let shared = "../../../shared/data/traces/ctf1/lttng-ref/basic-kernel-analysis";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(shared);
    if !path.exists() {
        println!("SKIPPED: no {}", path.display());
        return;
    }
    let place = Place::new();
    let trace = path.to_str().expect("UTF-8");
    let options = ["--clock-seconds", "--no-delta", trace];
    let Some(text) = output("babeltrace2", &options, &place) else { return };
    let printed = |line: &str| {
        // [SECONDS.FRACTION] ubuntu NAME: { cpu_id = 1 }, { … }
        let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
        let name = rest.split_once(": {")?.0.rsplit(' ').next()?.to_owned();
        let (time, cpu) = (nanos(time)?, number(line, "cpu_id = ")?);
        Some(Printed { time, tid: -1, cpu, is_interrupt: false, name, line: line.to_owned() })
    };
    let counted = count(&text.lines().filter_map(printed).collect::<Vec<_>>());
    let wakeups = compare(&place, trace, &counted, 0);
    let rcu = wakeups["latencies"].as_array().unwrap().iter().find(|row| row["tid"] == 7).unwrap();
    // As in lttng-schedstats.
    let number = |name: &str| rcu[name].as_u64().unwrap();
    assert_eq!((number("median_ns") + 50) / 100, 363);
    assert_eq!((number("max_ns") + 50) / 100, 23_719);
    assert_eq!(rcu["not_exact"], json!({}));
    // The trace has no timer events: a wakeup outside of other interrupts is by the thread or by a timer.
    let (found, unknown) = pairs(&wakeups, &counted.torn);
    assert!(found.keys().all(|(by, _)| *by == By::Interrupt), "{found:?}");
    let interrupts = counted.pairs.iter().filter(|((by, _), _)| *by == By::Interrupt);
    assert_eq!(found, interrupts.map(|(pair, count)| (*pair, *count)).collect());
    assert_eq!(unknown, counted.pairs.values().sum::<u64>() - found.values().sum::<u64>());
}

#[test]
fn wake_ups_of_perf_are_as_perf_prints_them() {
    if !usable(&["perf"]) {
        return;
    }
    let place = Place::new();
    for events in [&["sched_waking", "sched_wakeup"][..], &["sched_waking"]] {
        let names = [&["sched_switch", "sched_wakeup_new"], events].concat();
        let named: Vec<String> = names.iter().map(|name| format!("sched:{name}")).collect();
        let mut words = vec!["record", "-q", "-a", "-o", "perf.data"];
        named.iter().for_each(|name| words.extend(["-e", name.as_str()]));
        words.extend(["sh", "-c", SLEEPERS]);
        if output("perf", &words, &place).is_none() {
            return;
        }
        let fields = "comm,tid,cpu,time,event,trace";
        let words = ["script", "--ns", "-F", fields, "-i", "perf.data"];
        let Some(text) = output("perf", &words, &place) else { return };
        let printed = |line: &str| {
            // COMM TID [CPU] SECONDS.FRACTION: sched:NAME: …; thread names may contain blanks.
            let (before, rest) = line.split_once(" sched:sched_")?;
            let (name, _) = rest.split_once(':')?;
            let mut words = before.split_whitespace().rev();
            let time = nanos(words.next()?.trim_end_matches(':'))?;
            let cpu = words.next()?.trim_matches(['[', ']']).parse().ok()?;
            let tid = words.next()?.parse::<i64>().ok()?.max(0);
            let (name, line) = (format!("sched_{name}"), line.to_owned());
            Some(Printed { time, tid, cpu, is_interrupt: false, name, line })
        };
        let counted = count(&text.lines().filter_map(printed).collect::<Vec<_>>());
        assert!(!counted.nanos.is_empty());
        let wakeups = compare(&place, "perf.data", &counted, 0);
        // perf does not print the interrupt flags, but a thread is never the waker if perf says that it was
        // none.
        let (found, unknown) = pairs(&wakeups, &counted.torn);
        let all: u64 = counted.pairs.values().sum();
        assert!(counted.has_uncertain() || found.values().sum::<u64>() + unknown == all);
        let certain = counted.certain(found);
        for (pair, count) in certain.iter().filter(|((by, _), _)| *by != By::Interrupt) {
            assert!(counted.pairs.get(pair).is_some_and(|most| count <= most), "{pair:?}");
        }
        let rows = wakeups["latencies"].as_array().unwrap().iter();
        let is_lower = |row: &&Value| row["not_exact"]["max_ns"] == "lower_bound";
        let lower: BTreeSet<i64> =
            rows.filter(is_lower).filter_map(|row| row["tid"].as_i64()).collect();
        let differ = lower.symmetric_difference(&counted.begun_before);
        assert!(differ.copied().all(|tid| counted.is_uncertain(tid)), "{wakeups}");
        // perf has no id of a thread that has exited by the end of its own event.
        let gone = text.lines().filter(|line| line.contains(" -1 [")).count() as u64;
        let most = gone + counted.unknown_count();
        assert!(counted.has_uncertain() || unknown <= most, "{unknown} {most}: {wakeups}");
    }
}

/// Threads that wake up, on an otherwise idle machine.
const SLEEPERS: &str = "for i in 1 2 3 4 5 6; do sleep 0.1$i & done; wait; sleep 0.2";

fn sleepers() {
    let status = Command::new("sh").args(["-c", SLEEPERS]).status().expect("sh is there");
    assert!(status.success());
}

/// An instance of tracefs, removed on drop.
struct Instance(std::path::PathBuf);

impl Drop for Instance {
    fn drop(&mut self) {
        // trace-cmd extract already removes it.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn wake_ups_of_trace_cmd_are_as_it_prints_them() {
    if !usable(&["perf"]) {
        return;
    }
    let place = Place::new();
    let name = format!("lat-wakeups-{}", std::process::id());
    let instance = Instance(Path::new("/sys/kernel/tracing/instances").join(&name));
    if let Err(error) = fs::create_dir(&instance.0) {
        println!("SKIPPED: {}: {error}", instance.0.display());
        return;
    }
    let set = |file: &str, value: &str| fs::write(instance.0.join(file), value).expect("tracefs");
    set("buffer_size_kb", "8192");
    set("events/sched/enable", "1");
    sleepers();
    set("tracing_on", "0");
    if output("trace-cmd", &["extract", "-B", &name, "-o", "t.dat"], &place).is_none() {
        return;
    }
    let Some(text) = output("trace-cmd", &["report", "-N", "-t", "-l", "-i", "t.dat"], &place)
    else {
        return;
    };
    let printed = |line: &str| {
        // COMM-TID CPUFLAGS SECONDS.FRACTION: NAME: …; the third flag marks an interrupt.
        let at = line.find(": sched_")?;
        let (name, _) = line[at + 2..].split_once(':')?;
        let mut words = line[..at].split_whitespace().rev();
        let time = nanos(words.next()?)?;
        let flags = words.next()?;
        let digits = flags.bytes().take_while(u8::is_ascii_digit).count();
        let cpu = flags[..digits].parse().ok()?;
        let tid = words.next()?.rsplit('-').next()?.parse().ok()?;
        let is_interrupt = "hHszZ".contains(flags.chars().nth(digits + 2)?);
        Some(Printed { time, tid, cpu, is_interrupt, name: name.to_owned(), line: line.to_owned() })
    };
    let mut counted = count(&text.lines().filter_map(printed).collect::<Vec<_>>());
    assert!(counted.nanos.len() > 3, "{}", counted.nanos.len());
    let wakeups = compare(&place, "t.dat", &counted, 0);
    let unknown = counted.unknown_count();
    counted.pairs.retain(|(by, _), _| *by != By::Unknown);
    let (found, of_unknown) = pairs(&wakeups, &counted.torn);
    assert_eq!(counted.certain(found), counted.certain(counted.pairs.clone()));
    assert!(counted.has_uncertain() || of_unknown == unknown, "{of_unknown} {unknown}");
}

#[test]
fn perfetto_has_its_wake_ups() {
    let shared = "../../../shared/data/traces/perfetto-MIT/test_trace.perfetto-trace";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(shared);
    if !path.exists() {
        println!("SKIPPED: no {}", path.display());
        return;
    }
    let place = Place::new();
    let trace = path.to_str().expect("UTF-8");
    let stats = place.json(&["stats", trace, "--section", "wakeups", "--json"]);
    let wakeups = &stats["wakeups"];
    let rows = wakeups["latencies"].as_array().expect("rows").iter();
    let number = |value: &Value| value.as_u64().expect("a number");
    let latencies: u64 = rows.map(|row| number(&row["count"])).sum();
    let rest = number(&wakeups["needless"]) + number(&wakeups["not_run_yet"]);
    // Every `sched_wakeup` is there, and few are of threads that are awake.
    assert!(latencies > 8000 && latencies + rest <= 8743 && rest < 700, "{latencies} {rest}");
}

/// A program that only sleeps is woken by a timer, whatever other causes there may be.
#[test]
fn a_sleep_is_ended_by_its_timer_and_by_no_other_thread() {
    if !usable(&["python3"]) {
        return;
    }
    let sleeps = "import time\ntime.sleep(0.03)";
    for more in [
        &["--kernel", "sched,syscalls"][..],
        &["--kernel", "sched,syscalls,irq,softirq"],
        &["--kernel", "sched,syscalls,irq,softirq,timer"],
        &["--system"],
        &["--system", "--kernel", "sched,syscalls,irq,softirq,timer"],
    ] {
        let place = Place::new();
        let words = [&["record", "-q", "-o", "out"], more, &["--", "python3", "-c", sleeps]];
        let output = place.lat(&words.concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let span = "syscall clock_nanosleep";
        let path = place.json(&["path", "out", "--span", span, "--slowest", "50", "--json"]);
        let spans = path["spans"].as_array().expect("spans").iter();
        let mut of_it = spans.filter(|span| {
            span["thread"] == "python3" && span["duration_ns"].as_u64() > Some(29_000_000)
        });
        let one = of_it.next_back().unwrap_or_else(|| panic!("{more:?}: {path:#}"));
        let segments = one["segments"].as_array().expect("segments");
        assert!(segments.iter().all(|segment| segment["tid"] == one["tid"]), "{more:?}: {one:#}");
        let blocked = |segment: &&Value| segment["does"] == "blocked";
        let blocked: Vec<&Value> = segments.iter().filter(blocked).collect();
        let time = |segment: &Value| {
            segment["end_ns"].as_i64().unwrap() - segment["begin_ns"].as_i64().unwrap()
        };
        assert!(blocked.iter().map(|one| time(one)).sum::<i64>() > 20_000_000, "{one:#}");
        assert!(blocked.iter().all(|one| one["woken_by"] == "interrupt"), "{more:?}: {one:#}");
        assert_eq!(one["quality"], "exact", "{more:?}");
    }
}

/// A call of thread 11 that is open when the state dump names its process, and a later one.
fn dumped(folder: &Path) {
    fs::create_dir(folder).expect("a folder");
    let integer = |bits: u32, signed: bool, more: &str| {
        format!("integer {{ size = {bits}; align = 8; signed = {signed}; {more} }}")
    };
    let (u16, u32) = (integer(16, false, ""), integer(32, false, ""));
    let (i32, i64) = (integer(32, true, ""), integer(64, true, ""));
    let time = integer(64, false, "map = clock.monotonic.value;");
    let classes = [
        ("sched_switch", format!("{i32} _prev_tid; {i64} _prev_state; {i32} _next_tid;")),
        ("syscall_entry_read", format!("{u32} _fd;")),
        ("lttng_statedump_process_state", format!("{i32} _tid; {i32} _pid;")),
        ("syscall_exit_read", format!("{i64} _ret;")),
    ];
    let mut text = format!(
        "/* CTF 1.8 */\ntrace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ \
         {u32} magic; {u32} stream_id; }}; }};\n\
         env {{ domain = \"kernel\"; tracer_name = \"lttng-modules\"; }};\n\
         clock {{ name = monotonic; freq = 1000000000; }};\n\
         stream {{ id = 0; packet.context := struct {{ {u32} cpu_id; }}; event.header := struct {{ \
         {u16} id; {time} timestamp; }}; }};\n"
    );
    for (id, (name, fields)) in classes.iter().enumerate() {
        text += &format!(
            "event {{ name = \"{name}\"; id = {id}; stream_id = 0; fields := struct {{ {fields} }}; }};\n"
        );
    }
    fs::write(folder.join("metadata"), text).expect("written");
    let mut bytes: Vec<u8> = Vec::new();
    for word in [0xc1fc_1fc1_u32, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    let mut add = |id: u16, time: u64, fields: &[&[u8]]| {
        bytes.extend(id.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        fields.iter().for_each(|field| bytes.extend(*field));
    };
    let (none, long) = (&0_i32.to_le_bytes()[..], &0_i64.to_le_bytes()[..]);
    add(0, 1_000, &[none, long, &11_i32.to_le_bytes()]);
    add(1, 2_000, &[none]);
    add(2, 3_000, &[&11_i32.to_le_bytes(), &10_i32.to_le_bytes()]);
    add(3, 9_000_000, &[long]);
    add(1, 9_001_000, &[none]);
    add(3, 9_002_000, &[long]);
    fs::write(folder.join("stream"), bytes).expect("written");
}

#[test]
fn a_call_across_a_state_dump_is_one_call_everywhere() {
    let place = Place::new();
    dumped(&place.0.join("dumped"));
    let stats = place.json(&["stats", "dumped", "--json"]);
    let span = &stats["spans"][0];
    let number = |name: &str| span[name].as_u64().unwrap_or_else(|| panic!("{name}: {span}"));
    let found = ["count", "max_ns", "min_ns", "unfinished", "orphans"].map(number);
    assert_eq!(found, [2, 8_998_000, 1_000, 0, 0], "{span}");
    let threads = span["by_thread"].as_array().expect("threads");
    assert_eq!(threads.len(), 1, "{span}");
    assert_eq!((&threads[0]["pid"], &threads[0]["tid"]), (&json!(10), &json!(11)));

    let words = ["table", "dumped", "--name", "spans", "-o", "spans.jsonl"];
    let output = place.lat(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(place.0.join("spans.jsonl")).expect("a table");
    let rows: Vec<Value> = text.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let row = |row: &Value| ["pid", "tid", "end_pid", "duration"].map(|name| row[name].clone());
    let found: Vec<_> = rows.iter().map(row).collect();
    let expected = [8_998_000, 1_000].map(|nanos| [10, 11, 10, nanos].map(|value| json!(value)));
    assert_eq!(found, expected, "{text}");

    let path = place.json(&["path", "dumped", "--span", "syscall read", "--json"]);
    assert_eq!(path["spans"][0]["duration_ns"], 8_998_000);

    let viewer = Viewer::start(&place, &["dumped"]);
    let mut page = viewer.page();
    page.ask("open", json!({}));
    let rows = activities(&mut page, json!({}));
    let nanos = |row: &Value| row["end"].as_u64().unwrap() - row["begin"].as_u64().unwrap();
    assert_eq!(rows.iter().map(nanos).collect::<Vec<_>>(), [8_998_000, 1_000], "{rows:?}");
}
