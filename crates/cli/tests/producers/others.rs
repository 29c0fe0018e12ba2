// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interpretation of events of programs, and of systems other than Linux.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::kernel::{count, same_spans};
use super::printed::{self, Event};
use super::shared;
use super::table::Column;
use super::truth::{self, Times};
use crate::foreign::{self, TraceProcessor, table};
use crate::place::Place;
use crate::place::genode::{checkpoint, event};

/// Spans by thread: functions, identified by address.
fn function(event: &Event, tid: Option<i64>) -> Option<(bool, String, String)> {
    let begins = match event.name.as_str() {
        "func_entry" => true,
        "func_exit" => false,
        _ => return None,
    };
    Some((begins, "function".to_owned(), format!("{} {}", tid?, event.number("addr")?)))
}

#[test]
fn lttng_ust() {
    let Some(path) = shared("traces/ctf1/tracecompass-EPL2/cyg-profile") else { return };
    let mut column = Column::new("LTTng UST");
    let Some(events) = printed::babeltrace(&path) else { return };
    let (place, trace) = (Place::new(), path.to_str().expect("UTF-8"));
    let stats = place.json(&["stats", trace, "--json"]);
    column.check("span", "babeltrace2", || same_spans(&stats, &truth::spans(&events, function)));
    column.check("name of a thread", "babeltrace2", || {
        let names = |rows: Vec<(String, String)>| rows.into_iter().collect::<BTreeSet<_>>();
        let row = |row: &BTreeMap<String, String>| (row["tid"].clone(), row["thread"].clone());
        let here = names(table(&place, trace, "events").iter().map(row).collect());
        let there = events.iter().filter_map(|event| {
            Some((event.tid?.to_string(), event.context.get("procname")?.clone()))
        });
        assert_eq!(here, names(there.collect()));
        true
    });
    column.finish();
}

#[test]
fn chrome_json() {
    let Some(tool) = TraceProcessor::find() else { return };
    let place = Place::new();
    let mut column = Column::new("Chrome JSON");
    // A Python program, traced by a tracer that writes this format.
    let python = std::env::var("LATERALIS_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let program = "import threading\nfrom viztracer import VizTracer\n\
        tracer = VizTracer(verbose=0, output_file='t.json')\ntracer.start()\n\
        def deep(n): return n if n == 0 else deep(n - 1) + deep(n // 3)\n\
        def work():\n  for n in range(9):\n    tracer.log_var('level', deep(n) + n)\n\
        threads = [threading.Thread(target=work, name=f'w{n}') for n in range(3)]\n\
        [thread.start() for thread in threads]\n[thread.join() for thread in threads]\n\
        tracer.stop()\ntracer.save()\n";
    let run = Command::new(&python).args(["-c", program]).current_dir(&place.0).output();
    if !run.is_ok_and(|output| output.status.success()) || !place.0.join("t.json").exists() {
        println!("SKIPPED: no viztracer");
        return;
    }
    let text = fs::read_to_string(place.0.join("t.json")).expect("a trace");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let of_phase = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count() as u64;
    let stats = place.json(&["stats", "t.json", "--json"]);
    column.check("span", "trace processor", || {
        // The trace processor stores instants as slices of length zero.
        let (own, other) =
            (foreign::spans(&place, "t.json", 1), foreign::perfetto(&tool, &place, "t.json", 1));
        assert!(own.keys().eq(other.keys()), "{own:?} {other:?}");
        // Each program rounds fractions of nanoseconds in its own way.
        for (name, (count, nanos)) in &own {
            let there = other[name];
            assert!(*count == there.0 && nanos.abs_diff(there.1) <= 2 * count, "{name} {there:?}");
        }
        assert!(own.values().map(|times| times.0).sum::<u64>() <= of_phase("X"));
        !own.is_empty()
    });
    column.check("span: self time", "counting", || {
        // On each thread, every point in time belongs to the innermost span, so self times add up to the
        // covered time.
        let mut own: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
        for event in events.iter().filter(|event| event["ph"] == "X") {
            let nanos =
                |name: &str| (event[name].as_f64().expect("a time") * 1000.0).round() as u64;
            let thread = (event["pid"].as_u64().unwrap_or(0), event["tid"].as_u64().unwrap_or(0));
            own.entry(thread).or_default().push((nanos("ts"), nanos("ts") + nanos("dur")));
        }
        let mut covered = 0;
        for intervals in own.values_mut() {
            intervals.sort_unstable();
            let mut end = 0;
            for (begin, until) in intervals {
                covered += until.saturating_sub(end.max(*begin));
                end = end.max(*until);
            }
        }
        let spans = stats["spans"].as_array().expect("spans").iter();
        let here: u64 = spans.map(|span| span["self_ns"].as_u64().unwrap_or(0)).sum();
        // Times are in microseconds with three decimals, parsed as floating point here.
        assert!(here.abs_diff(covered) <= 2 * of_phase("X"), "{here} {covered}");
        true
    });
    column.check("counter", "trace processor", || {
        let here: u64 =
            stats["counters"].as_array().expect("counters").iter().map(|c| count(c, "count")).sum();
        let rows = tool.ask(&place.0.join("t.json"), &["select count(*) from counter"]);
        assert_eq!(Some(here), rows[0][0][0].as_str().and_then(|count| count.parse().ok()));
        assert_eq!(here, of_phase("C"));
        here > 0
    });
    names_of_json(&mut column, &place, events);
    // Asynchronous spans, with several processes, categories and kinds of ids.
    column.check("async span", "trace processor", || {
        for seed in 1..4 {
            fs::write(place.0.join("a.json"), foreign::chrome_async(seed)).expect("written");
            let own = foreign::spans(&place, "a.json", 0);
            assert_eq!(own, foreign::perfetto(&tool, &place, "a.json", 0));
            assert!(own.keys().any(|name| name.starts_with("Request")));
        }
        true
    });
    column.check("flow", "trace processor", || {
        let mut text = Vec::new();
        for id in 0..50 {
            let (out, back) = (id * 100, id * 100 + 40);
            text.push(format!(r#"{{"ph":"X","name":"a","pid":1,"tid":1,"ts":{out},"dur":9}}"#));
            text.push(format!(
                r#"{{"ph":"s","name":"m","cat":"c","id":{id},"pid":1,"tid":1,"ts":{out}}}"#
            ));
            text.push(format!(r#"{{"ph":"X","name":"b","pid":2,"tid":2,"ts":{back},"dur":9}}"#));
            let end = r#""ph":"f","bp":"e","name":"m","cat":"c""#;
            text.push(format!(r#"{{{end},"id":{id},"pid":2,"tid":2,"ts":{back}}}"#));
        }
        fs::write(place.0.join("f.json"), format!("[{}]", text.join(",\n"))).expect("written");
        let rows = tool.ask(&place.0.join("f.json"), &["select count(*) from flow"]);
        let stats = place.json(&["stats", "f.json", "--json"]);
        assert_eq!(stats["messages"][0]["matched"], 50);
        assert_eq!(rows[0][0][0], "50");
        true
    });
    column.finish();
}

fn names_of_json(column: &mut Column, place: &Place, events: &[Value]) {
    for (meaning, name, id, of) in [
        ("name of a thread", "thread_name", "tid", "thread"),
        ("name of a process", "process_name", "pid", "process"),
    ] {
        column.check(meaning, "counting", || {
            let told = events.iter().filter(|event| event["ph"] == "M" && event["name"] == name);
            let told: BTreeMap<String, String> = told
                .map(|event| {
                    (event[id].to_string(), event["args"]["name"].as_str().unwrap_or("").to_owned())
                })
                .collect();
            let rows = table(place, "t.json", "threads");
            for row in &rows {
                assert_eq!(Some(&row[of]), told.get(&row[id]), "{row:?}");
            }
            !rows.is_empty()
        });
    }
}

#[test]
fn perfetto_track_events() {
    let Some(tool) = TraceProcessor::find() else { return };
    let Some(path) = shared("traces/perfetto-MIT/chrome.pftrace") else { return };
    let place = Place::new();
    fs::copy(&path, place.0.join("chrome.pftrace")).expect("a copy");
    let mut column = Column::new("Perfetto");
    super::kernel_of_perfetto(&mut column, &tool);
    let ask = |sql: &str| tool.ask(&path, &[sql])[0].clone();
    let number = |value: &Value| -> u64 {
        value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value}"))
    };
    let by_name = |sql: &str| -> BTreeMap<String, Times> {
        let rows = ask(sql);
        let rows = rows.as_array().expect("rows").iter();
        rows.map(|row| {
            (row[0].as_str().unwrap_or("").to_owned(), (number(&row[1]), number(&row[2])))
        })
        .collect()
    };
    let slices = |of: &str| {
        by_name(&format!(
            "select s.name, count(*), sum(s.dur) from slice s join {of} t on s.track_id = t.id \
             where s.dur > 0 group by 1"
        ))
    };
    let all = by_name("select name, count(*), sum(dur) from slice where dur > 0 group by 1");
    let here = foreign::spans(&place, "chrome.pftrace", 1);
    let same = |there: &BTreeMap<String, Times>| {
        for name in there.keys() {
            assert_eq!(here.get(name), all.get(name), "{name}");
        }
        !there.is_empty()
    };
    column.check("span", "trace processor", || same(&slices("thread_track")));
    column.check("async span", "trace processor", || same(&slices("process_track")));
    column.check("flow", "trace processor", || {
        // The trace processor prints ids as signed numbers.
        let id = |value: &Value| value.as_str().and_then(|id| id.parse::<i64>().ok());
        let rows = ask("select trace_id, count(*) from flow group by 1");
        let rows = rows.as_array().expect("rows").iter();
        let there: BTreeMap<u64, u64> =
            rows.filter_map(|row| Some((id(&row[0])?.cast_unsigned(), number(&row[1])))).collect();
        let mut here: BTreeMap<u64, u64> = BTreeMap::new();
        for row in table(&place, "chrome.pftrace", "messages") {
            let key = row["key"].split(' ').next().and_then(printed::number);
            if let Some(key) = key.filter(|_| row["status"] == "complete") {
                *here.entry(key.cast_unsigned()).or_default() += 1;
            }
        }
        for (id, count) in &there {
            assert_eq!(here.get(id), Some(count), "{id:#x}");
        }
        // A flow step without a start counts as a send here; the trace processor ignores it.
        let steps = "select value from stats where name = 'flow_step_without_start'";
        let more =
            here.iter().filter(|(id, _)| !there.contains_key(id)).map(|of| of.1).sum::<u64>();
        assert!(more <= number(&ask(steps)[0][0]), "{more}");
        !there.is_empty()
    });
    for (meaning, of, id) in
        [("name of a thread", "thread", "tid"), ("name of a process", "process", "pid")]
    {
        column.check(meaning, "trace processor", || {
            let rows = ask(&format!("select {id}, name from {of} where name is not null"));
            let rows = rows.as_array().expect("rows").iter();
            let there: BTreeMap<u64, String> = rows
                .map(|row| (number(&row[0]), row[1].as_str().unwrap_or("").to_owned()))
                .collect();
            let mut compared = 0;
            // Each CPU has a different thread 0.
            for row in
                table(&place, "chrome.pftrace", "threads").iter().filter(|row| row[id] != "0")
            {
                if let Some(name) = row[id].parse().ok().and_then(|id: u64| there.get(&id)) {
                    assert_eq!(&row[of], name, "{row:?}");
                    compared += 1;
                }
            }
            compared > 0
        });
    }
    column.finish();
}

#[test]
fn barrelfish() {
    let Some(path) = shared("barrelfish/atrace.trc") else { return };
    let text = fs::read_to_string(&path).expect("a dump");
    let (place, trace) = (Place::new(), path.to_str().expect("UTF-8"));
    let stats = place.json(&["stats", trace, "--json"]);
    let mut column = Column::new("Barrelfish");
    // CORE TIME RAW: subsystem and event are the upper half of the third number.
    let events: Vec<(u64, u64, u64, u64)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (core, time) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let raw = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((core, time, raw >> 32, raw & 0xffff_ffff))
        })
        .collect();
    // Names of dispatchers by the lower half of their address.
    let names: BTreeMap<u64, String> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("# DCB ")?.split_whitespace().skip(1);
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((address & 0xffff_ffff, words.next()?.to_owned()))
        })
        .collect();
    let switches: Vec<_> = events.iter().filter(|event| event.2 == 0xffff_cccc).collect();
    column.check("switch", "counting", || {
        for row in stats["cpus"].as_array().expect("rows") {
            let of_core = switches.iter().filter(|event| row["cpu"] == event.0).count();
            assert_eq!(row["switches"], of_core, "{row}");
        }
        !switches.is_empty()
    });
    column.check("time on a processor", "counting", || {
        let mut ran: BTreeMap<&str, u64> = BTreeMap::new();
        for (index, event) in switches.iter().enumerate() {
            let next = switches[index + 1..].iter().find(|next| next.0 == event.0);
            let nanos = next.map_or(0, |next| next.1 - event.1);
            *ran.entry(names[&event.3].as_str()).or_default() += nanos;
        }
        let row = |row: &Value| {
            let name = row["application"].as_str().unwrap_or("").split(" (").next().unwrap_or("");
            (name.to_owned(), count(row, "running_ns"))
        };
        let here: BTreeMap<String, u64> =
            stats["applications"].as_array().expect("rows").iter().map(row).collect();
        let there = ran.into_iter().map(|(name, nanos)| (name.to_owned(), nanos)).collect();
        assert_eq!(here, there);
        true
    });
    column.check("span", "counting", || {
        // A lock is held from LOCK_LEAVE or LOCK_NESTED_LEAVE to UNLOCK, by its address.
        let (mut open, mut held) = (BTreeMap::<u64, Vec<u64>>::new(), (0, 0));
        for (_, time, kind, lock) in &events {
            match kind {
                0xeeee_0201 | 0xeeee_0203 => open.entry(*lock).or_default().push(*time),
                0xeeee_0205 => {
                    if let Some(begin) = open.get_mut(lock).and_then(Vec::pop) {
                        held = (held.0 + 1, held.1 + (time - begin));
                    }
                }
                _ => {}
            }
        }
        same_spans(&stats, &BTreeMap::from([("threads:MUTEX_HELD".to_owned(), held)]))
    });
    column.check("state", "counting", || {
        let machines = stats["states"].as_array().expect("machines");
        let states =
            machines.iter().flat_map(|machine| machine["states"].as_array().expect("states"));
        let here: BTreeSet<&str> = states.filter_map(|state| state["state"].as_str()).collect();
        let there = switches.iter().map(|event| names[&event.3].as_str()).collect();
        assert_eq!(here, there);
        true
    });
    column.check("name of a process", "counting", || {
        let here: BTreeSet<String> = table(&place, trace, "threads")
            .iter()
            .map(|row| row["process"].clone())
            .filter(|name| !name.is_empty() && name != "idle")
            .collect();
        let ran: BTreeSet<String> = switches.iter().map(|event| names[&event.3].clone()).collect();
        assert!(here.is_superset(&ran), "{here:?} {ran:?}");
        true
    });
    column.finish();
}

#[test]
fn genode() {
    let place = Place::new();
    let mut column = Column::new("Genode");
    // A server that is called and calls another; its queue; a nested part of its work.
    let mut events = Vec::new();
    let (mut time, mut calls, mut levels) = (1000, (0, 0), Vec::new());
    for round in 0..20_u64 {
        let mut next = |step: u64| {
            time += step;
            time
        };
        events.push(event(3, next(5 + round), b"serve\0"));
        events.push(checkpoint(next(1), round as u32, 0, "slots free"));
        levels.push(round);
        events.push(event(1, next(3), b"call\0"));
        events.push(event(2, next(7 * round + 1), b"call\0"));
        calls = (calls.0 + 1, calls.1 + 7 * round + 1);
        events.push(checkpoint(next(1), 0, 1, "part"));
        events.push(checkpoint(next(2), 0, 2, "part"));
        events.push(event(4, next(1), b"serve\0"));
    }
    place.genode("run", &[("init -> app", "ep", (0, time + 1), &events)]);
    let stats = place.json(&["stats", "run", "--json"]);
    column.check("span", "the run as made", || {
        let parts = (20, 40);
        let truth = [("rpc".to_owned(), calls), ("checkpoint".to_owned(), parts)];
        same_spans(&stats, &truth.into_iter().collect())
    });
    column.check("counter", "the run as made", || {
        let counters = stats["counters"].as_array().expect("counters");
        let [counter] = &counters[..] else { panic!("{counters:?}") };
        assert_eq!((&counter["count"], counter["max"].as_f64()), (&20.into(), Some(19.0)));
        true
    });
    column.check("state", "the run as made", || {
        // The thread waits for the reply of each call until the call returns.
        let states = stats["states"][0]["states"].as_array().expect("states");
        let waits = states.iter().find(|state| state["state"] == "await_reply").expect("it");
        assert_eq!(count(waits, "total_ns"), calls.1, "{waits}");
        true
    });
    let rows = table(&place, "run", "threads");
    for (meaning, column_name, name) in
        [("name of a thread", "thread", "ep"), ("name of a process", "process", "init -> app")]
    {
        column.check(meaning, "the run as made", || {
            assert!(rows.iter().all(|row| row[column_name] == name), "{rows:?}");
            !rows.is_empty()
        });
    }
    column.finish();
}

/// Event classes of Zephyr's `subsys/tracing/ctf` that are used here, with their numbers and fields.
const ZEPHYR: [(&str, u8, &str); 12] = [
    ("thread_switched_out", 0x10, "uint32_t thread_id; name_t name[20];"),
    ("thread_switched_in", 0x11, "uint32_t thread_id; name_t name[20];"),
    ("thread_priority_set", 0x12, "uint32_t thread_id; name_t name[20]; int8_t prio;"),
    ("thread_create", 0x13, "uint32_t thread_id; name_t name[20];"),
    ("thread_abort", 0x14, "uint32_t thread_id; name_t name[20];"),
    ("thread_ready", 0x17, "uint32_t thread_id; name_t name[20];"),
    ("thread_pending", 0x18, "uint32_t thread_id; name_t name[20];"),
    ("isr_enter", 0x1b, ""),
    ("isr_exit", 0x1c, ""),
    ("semaphore_take_enter", 0x24, "uint32_t id; uint32_t timeout;"),
    ("semaphore_take_exit", 0x26, "uint32_t id; uint32_t timeout; int32_t ret;"),
    ("isr_exit_to_scheduler", 0x1d, ""),
];

/// A run of Zephyr: a worker takes a semaphore that a timer gives, while another thread works continuously.
fn zephyr(folder: &Path) {
    const IDLE: u32 = 0x2000_0100;
    const WORKER: u32 = 0x2000_0200;
    const MAIN: u32 = 0x2000_0300;
    let name = |thread: u32| match thread {
        IDLE => "idle 00",
        WORKER => "worker",
        _ => "main",
    };
    let mut text = "/* CTF 1.8 */\n\
        typealias integer { size = 8; align = 8; signed = true; } := int8_t;\n\
        typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n\
        typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n\
        typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n\
        typealias integer { size = 8; align = 8; signed = false; encoding = ASCII; } := name_t;\n\
        struct event_header { uint32_t timestamp; uint8_t id; };\n\
        trace { major = 1; minor = 8; byte_order = le; };\n\
        stream { event.header := struct event_header; };\n"
        .to_owned();
    for (name, id, fields) in ZEPHYR {
        let fields = if fields.is_empty() {
            String::new()
        } else {
            format!("fields := struct {{ {fields} }};")
        };
        text += &format!("event {{ name = {name}; id = {id}; {fields} }};\n");
    }
    fs::write(folder.join("metadata"), text).expect("written");
    let (mut bytes, mut time) = (Vec::new(), 1000_u32);
    let mut add = |event: &str, step: u32, fields: &[u8]| {
        time += step;
        let (_, id, _) = ZEPHYR.iter().find(|(name, ..)| *name == event).expect("it");
        bytes.extend(time.to_le_bytes());
        bytes.push(*id);
        bytes.extend(fields);
    };
    let of = |thread: u32| {
        let mut fields = thread.to_le_bytes().to_vec();
        fields.extend(name(thread).as_bytes());
        fields.resize(24, 0);
        fields
    };
    let semaphore = [&7_u32.to_le_bytes()[..], &u32::MAX.to_le_bytes()].concat();
    let taken = [&semaphore[..], &0_i32.to_le_bytes()].concat();
    add("thread_create", 10, &of(WORKER));
    add("thread_priority_set", 10, &[&of(WORKER)[..], &[7]].concat());
    add("thread_switched_in", 10, &of(MAIN));
    for round in 0..30 {
        add("thread_switched_out", 100, &of(MAIN));
        add("thread_switched_in", 0, &of(WORKER));
        add("semaphore_take_enter", 40, &semaphore);
        add("thread_pending", 5, &of(WORKER));
        add("thread_switched_out", 5, &of(WORKER));
        let next = if round % 3 == 0 { IDLE } else { MAIN };
        add("thread_switched_in", 0, &of(next));
        add("isr_enter", 300 + round, &[]);
        add("thread_ready", 20, &of(WORKER));
        add(if round % 2 == 0 { "isr_exit" } else { "isr_exit_to_scheduler" }, 10, &[]);
        add("thread_switched_out", 5, &of(next));
        add("thread_switched_in", 0, &of(WORKER));
        add("semaphore_take_exit", 5, &taken);
        add("thread_switched_out", 5, &of(WORKER));
        add("thread_switched_in", 0, &of(MAIN));
    }
    add("thread_abort", 10, &of(MAIN));
    add("thread_switched_out", 0, &of(MAIN));
    add("thread_switched_in", 0, &of(IDLE));
    add("thread_switched_out", 50, &of(IDLE));
    add("thread_switched_in", 0, &of(WORKER));
    fs::write(folder.join("channel0_0"), bytes).expect("written");
}

#[test]
fn zephyr_ctf() {
    let place = Place::new();
    fs::create_dir(place.0.join("z")).expect("a folder");
    zephyr(&place.0.join("z"));
    let Some(events) = printed::babeltrace(&place.0.join("z")) else { return };
    let stats = place.json(&["stats", "z", "--json"]);
    let mut column = Column::new("Zephyr");
    let of = |name: &str| events.iter().filter(|event| event.name == name).count() as u64;
    let is_idle = |event: &Event| event.fields["name"].starts_with("idle");
    column.check("switch", "babeltrace2", || {
        assert_eq!(stats["cpus"][0]["switches"], of("thread_switched_in"));
        true
    });
    column.check("time on a processor", "babeltrace2", || {
        // From one switch in to the next: the scheduler's time between belongs to the previous thread.
        let ins: Vec<&Event> =
            events.iter().filter(|event| event.name == "thread_switched_in").collect();
        let mut ran: BTreeMap<i64, u64> = BTreeMap::new();
        for pair in ins.windows(2).filter(|pair| !is_idle(pair[0])) {
            let tid = pair[0].number("thread_id").expect("a thread");
            *ran.entry(tid).or_default() += pair[1].time - pair[0].time;
        }
        let row = |row: &Value| (row["tid"].as_i64().expect("it"), count(row, "running_ns"));
        let here: BTreeMap<i64, u64> =
            stats["threads"].as_array().expect("rows").iter().map(row).collect();
        assert_eq!(here, ran);
        true
    });
    let worker = || {
        let rows = stats["thread_states"].as_array().expect("rows").iter();
        rows.clone().find(|row| row["thread"] == "worker").expect("it").clone()
    };
    column.check("state of a thread that leaves", "babeltrace2", || {
        assert_eq!(count(&worker(), "sleeping_count"), of("thread_pending"), "{}", worker());
        true
    });
    column.check("waking", "babeltrace2", || {
        let rows = stats["wakeups"]["latencies"].as_array().expect("rows");
        assert_eq!(count(&rows[0], "count"), of("thread_ready"), "{rows:?}");
        let pairs = stats["wakeups"]["pairs"].as_array().expect("rows");
        assert!(pairs.iter().all(|pair| pair["woken_by"] == "interrupt"), "{pairs:?}");
        true
    });
    column.check("exit", "babeltrace2", || {
        let rows = stats["thread_states"].as_array().expect("rows").iter();
        let ended: Vec<&str> = rows
            .filter(|row| row["has_ended"] == true)
            .filter_map(|row| row["thread"].as_str())
            .collect();
        assert_eq!(ended, ["main"]);
        true
    });
    let spans = |begin: &'static str, end: &'static str, name: &'static str| {
        truth::spans(&events, move |event, _| {
            let begins = event.name == begin;
            (begins || event.name.starts_with(end))
                .then(|| (begins, name.to_owned(), String::new()))
        })
    };
    column.check("interrupt", "babeltrace2", || {
        same_spans(&stats, &spans("isr_enter", "isr_exit", "irq"))
    });
    column.check("span", "babeltrace2", || {
        let take = "semaphore_take";
        same_spans(&stats, &spans("semaphore_take_enter", "semaphore_take_exit", take))
    });
    column.check("name of a thread", "babeltrace2", || {
        let threads = table(&place, "z", "threads");
        let told: BTreeMap<String, &str> = events
            .iter()
            .filter_map(|e| Some((e.number("thread_id")?.to_string(), e.text_of(&["name"])?)))
            .collect();
        for row in threads.iter().filter(|row| row["tid"] != "0") {
            assert_eq!(Some(&row["thread"].as_str()), told.get(&row["tid"]), "{row:?}");
        }
        !threads.is_empty()
    });
    column.finish();
}

#[test]
fn own_schema() {
    let place = Place::new();
    let output = place.lat(&["demo", "-o", "demo", "--orders", "200"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let Some(events) = printed::babeltrace(&place.0.join("demo/ctf")) else { return };
    let stats = place.json(&["stats", "demo", "--json"]);
    let mut column = Column::new("own schema");
    // After examples/demo/demo.pleco: names of both subsystems, events in time order.
    let key = |event: &Event| event.number("id").or_else(|| event.number("worker"));
    let edge = |begin: &'static str, end: &'static str, name: &'static str| {
        move |event: &Event, _: Option<i64>| {
            let begins = event.full == begin;
            let is_it = begins || event.full == end;
            is_it.then(|| (begins, name.to_owned(), key(event).unwrap_or(-1).to_string()))
        }
    };
    column.check("span", "babeltrace2", || {
        let mut truth = BTreeMap::new();
        for (begin, end, name) in [
            ("client:ORDER", "client:DONE", "request"),
            ("warehouse:WORK", "warehouse:WORKED", "work"),
            ("warehouse:WAIT", "warehouse:LOCKED", "shelf_wait"),
            ("warehouse:TAKE", "warehouse:RELEASE", "shelf_held"),
        ] {
            truth.extend(truth::spans(&events, edge(begin, end, name)));
        }
        assert_eq!(truth.len(), 4);
        same_spans(&stats, &truth)
    });
    column.check("flow", "babeltrace2", || {
        for (send, receive, name) in [
            ("client:SEND", "warehouse:RECEIVE", "order"),
            ("warehouse:SEND", "client:RECEIVE", "answer"),
        ] {
            let there = truth::spans(&events, edge(send, receive, name));
            let rows = stats["messages"].as_array().expect("rows").iter();
            let here = rows.clone().find(|row| row["channel"] == name).expect("a channel");
            assert_eq!(count(here, "matched"), there[name].0, "{here}");
        }
        true
    });
    column.check("counter", "babeltrace2", || {
        let there = events.iter().filter(|event| event.full == "warehouse:QUEUE");
        let there: Vec<i64> = there.filter_map(|event| event.number("waiting")).collect();
        let counter = &stats["counters"][0];
        assert_eq!(counter["count"], there.len());
        let most = there.iter().max().copied();
        assert_eq!(counter["max"].as_f64().map(|most| most as i64), most);
        true
    });
    column.check("state", "babeltrace2", || {
        let names = ["client:STATE", "warehouse:STATE"];
        let there = events.iter().filter(|event| names.contains(&event.full.as_str())).count();
        let entries = |machine: &Value| -> u64 {
            let states = machine["states"].as_array().expect("states").iter();
            states.map(|state| count(state, "entries")).sum()
        };
        let here: u64 = stats["states"].as_array().expect("machines").iter().map(entries).sum();
        assert_eq!(here, there as u64);
        there > 0
    });
    column.check("name of a process", "babeltrace2", || {
        let told = events.iter().filter(|event| event.name == "PROCESS");
        let told: BTreeMap<String, String> = told
            .filter_map(|event| {
                Some((event.fields.get("pid")?.clone(), event.fields.get("name")?.clone()))
            })
            .collect();
        let rows = table(&place, "demo", "threads");
        let known = rows.iter().filter(|row| told.contains_key(&row["pid"]));
        assert!(known.clone().count() > 0);
        assert!(known.clone().all(|row| told[&row["pid"]] == row["process"]), "{told:?} {rows:?}");
        true
    });
    column.finish();
}
