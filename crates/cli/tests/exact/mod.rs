// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A number marked exact does not change if lost events are restored, filters are widened, the recording is
//! cut shorter, or a source is switched off. A number marked as a lower bound is one.

mod numbers;
mod paths;
mod program;
mod trace;

use numbers::Numbers;
use program::{APP, CPUS, Event, KERNEL, Random, Stretch, TIDS, Truth, Writer, pid};
use serde_json::json;
use trace::Recording;

use crate::place::Place;

const STEPS: usize = 1200;
const EVENTS_PER_PACKET: usize = 12;
const SEEDS: std::ops::Range<u64> = 0..4;

/// Numbers that by definition depend on the set of recorded event classes: event counts over all classes,
/// self time (of the innermost class), and unknown time.
const OF_THE_KINDS: [&str; 8] = [
    "events_by_cpu",
    "].self_",
    "].unknown_ns",
    "events_by_thread",
    "threads[tid",
    "cpus[cpu",
    "applications[pid",
    "stats.events_total",
];

/// Compares the numbers of an incomplete recording with those of the complete one.
fn contradictions(
    some: &Numbers,
    whole: &Numbers,
    is_left_out: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for (path, said) in some.iter().filter(|(path, _)| !is_left_out(path)) {
        let truth = whole.get(path);
        let is_true = match (said.quality.as_str(), truth) {
            ("exact", Some(truth)) => said.value == truth.value && truth.quality == "exact",
            ("lower_bound", Some(truth)) => {
                (truth.quality != "exact" && !path.ends_with('≥')) || said.value <= truth.value
            }
            (_, None) => said.quality == "unknown" || said.value == 0.0,
            _ => true,
        };
        if !is_true {
            found.push(format!("{path}: {} {}, whole {truth:?}", said.quality, said.value));
        }
    }
    found
}

fn check(
    what: &str,
    place: &Place,
    (some, whole): (&str, &str),
    is_left_out: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for of in [numbers::of_stats, numbers::of_tables] {
        let (some, whole) = (of(place, some), of(place, whole));
        let exact = |of: &Numbers| of.values().filter(|one| one.quality == "exact").count();
        println!(
            "{what}: {} of {} exact, of {} {}",
            exact(&some),
            some.len(),
            exact(&whole),
            whole.len()
        );
        let lines = contradictions(&some, &whole, &is_left_out);
        found.extend(lines.into_iter().map(|line| format!("{what}: {line}")));
    }
    found
}

/// Runs a check for each seed.
fn each(
    what: &str,
    change: impl Fn(&mut Recording, &mut Random),
    is_left_out: impl Fn(&str) -> bool,
) -> Vec<String> {
    let place = Place::new();
    let mut found = Vec::new();
    for seed in SEEDS {
        let truth = Truth::of(seed, STEPS);
        let whole = Recording::new(&truth.streams, EVENTS_PER_PACKET);
        whole.write(&place, &format!("whole{seed}"));
        let mut some = whole.clone();
        change(&mut some, &mut Random(seed + 77));
        some.write(&place, &format!("some{seed}"));
        let (some, whole) = (format!("some{seed}"), format!("whole{seed}"));
        let what = format!("{what} {seed}");
        found.extend(check(&what, &place, (&some, &whole), &is_left_out));
        found.extend(beside(&what, &numbers::of_stats(&place, &some), &truth, (0, u64::MAX)));
        let paths = paths::of(&place, &some, &truth);
        println!("{what}: {} parts of paths", paths.compared);
        found.extend(paths.wrong.into_iter().map(|line| format!("{what}: {line}")));
    }
    found
}

fn none(found: &[String]) {
    assert!(found.is_empty(), "{} contradictions:\n{}", found.len(), found.join("\n"));
}

/// Compares the numbers of CPUs and threads with their true activity between two times.
fn beside(what: &str, said: &Numbers, truth: &Truth, window: (u64, u64)) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |path: String, nanos: u64| {
        let Some(said) = said.get(&path) else { return };
        let is_true = match said.quality.as_str() {
            "exact" => said.value == nanos as f64,
            "lower_bound" => said.value <= nanos as f64,
            _ => true,
        };
        if !is_true {
            found.push(format!("{what}: {path}: {} {}, truth {nanos}", said.quality, said.value));
        }
    };
    for cpu in 0..CPUS {
        let nanos = |is_it: fn(&Stretch) -> bool| {
            truth.nanos(window, |stretch| stretch.cpu == cpu && is_it(stretch))
        };
        let path = |name: &str| format!("stats.cpus[cpu={cpu}].{name}");
        compare(path("busy_ns"), nanos(|stretch| stretch.tid != 0));
        compare(path("idle_ns"), nanos(|stretch| stretch.tid == 0));
        compare(path("kernel_ns"), nanos(|stretch| stretch.is_in_kernel));
    }
    for tid in TIDS {
        let nanos = |is_it: fn(&Stretch) -> bool| {
            truth.nanos(window, |stretch| stretch.tid == tid && is_it(stretch))
        };
        let pid = pid(tid);
        let path = |list: &str, name: &str| format!("stats.{list}[pid={pid},tid={tid}].{name}");
        compare(path("threads", "running_ns"), nanos(|_| true));
        compare(path("thread_states", "running_ns"), nanos(|_| true));
        compare(path("threads", "kernel_ns"), nanos(|stretch| stretch.is_in_kernel));
    }
    found
}

/// A number that is known is marked exact.
#[test]
fn a_whole_recording_is_exact() {
    let place = Place::new();
    for seed in SEEDS {
        let truth = Truth::of(seed, STEPS);
        let name = format!("whole{seed}");
        Recording::new(&truth.streams, EVENTS_PER_PACKET).write(&place, &name);
        let stats = numbers::of_stats(&place, &name);
        none(&beside(&name, &stats, &truth, (0, u64::MAX)));
        let is_exact = |of: &Numbers| of.values().filter(|one| one.quality == "exact").count();
        assert!(is_exact(&stats) * 10 > stats.len() * 8, "{} of {}", is_exact(&stats), stats.len());
        let paths = paths::of(&place, &name, &truth);
        none(&paths.wrong);
        assert!(paths.compared > 100, "{} parts of paths", paths.compared);
        let tables = numbers::of_tables(&place, &name);
        let rows = tables.keys().filter(|path| path.ends_with('≥')).count();
        assert!(is_exact(&tables) + 20 > rows, "{} of {rows}", is_exact(&tables));
    }
}

#[test]
fn losses_that_are_put_back_change_no_exact_number() {
    none(&each("losses", |some, random| some.lose(random, 9), |_| false));
}

#[test]
fn damaged_bytes_change_no_exact_number() {
    none(&each("damage", |some, random| some.damage(random, 12), |_| false));
}

/// Kernel event classes that a recording may lack.
#[test]
fn sources_that_were_off_change_no_exact_number() {
    let interrupts = ["irq_handler", "softirq", "hrtimer", "reschedule"];
    let mut found = Vec::new();
    for names in [
        &interrupts[..],
        &["waking"],
        &["syscall_exit"],
        &["syscall_entry"],
        &["_entry"],
        &["switch"],
    ] {
        let is_off = |name: &str| names.iter().any(|off| name.contains(off));
        let is_on = |writer: Writer, event: &Event| match writer {
            Writer::Thread(_) => true,
            Writer::Cpu(_) => !is_off(KERNEL[event.class].name),
        };
        // Without switches the thread is unknown.
        let of_whom = ["by_thread[", "slowest[", "tid="];
        let is_of_whom =
            |path: &str| names == ["switch"] && of_whom.iter().any(|name| path.contains(name));
        let is_left_out =
            |path: &str| OF_THE_KINDS.iter().any(|name| path.contains(name)) || is_of_whom(path);
        found.extend(each(&names.join(","), |some, _| some.retain(is_on), is_left_out));
    }
    none(&found);
}

/// A filter keeps some events of a class; its report records this.
#[test]
fn filters_that_are_widened_change_no_exact_number() {
    let mut found = Vec::new();
    for (number, class) in APP.iter().enumerate() {
        let is_kept = |writer: Writer, event: &Event| {
            !matches!(writer, Writer::Thread(_)) || event.class != number || event.fields[1] == 0
        };
        let filter = |some: &mut Recording, _: &mut Random| {
            some.retain(is_kept);
            let filters = [format!("{}: unit == 0", class.name)];
            some.area = Some(json!({ "area_id": "1", "filters": filters, "left_out": 0 }));
        };
        found.extend(each(class.name, filter, |_| false));
    }
    let no_thread = |some: &mut Recording, _: &mut Random| {
        some.retain(|writer, _| writer != Writer::Thread(12));
        some.area = Some(json!({
            "area_id": "1", "schemas": ["app"], "left_out": 9, "left_out_of_threads": 9,
        }));
    };
    // Then no event states the thread's process.
    found.extend(each("a thread", no_thread, |path| {
        path.contains("tid=12") || path.contains("pid=12")
    }));
    none(&found);
}

/// Event classes of the program that were off, from the start or from the middle on; the report records this.
#[test]
fn classes_that_were_off_change_no_exact_number() {
    let mut found = Vec::new();
    for (number, class) in APP.iter().enumerate() {
        let is_it = |writer: Writer, event: &Event| {
            matches!(writer, Writer::Thread(_)) && event.class == number
        };
        let off = |some: &mut Recording, _: &mut Random| {
            some.retain(|writer, event| !is_it(writer, event));
            some.area = Some(json!({ "schemas": ["app"], "disabled": [class.name] }));
        };
        let what = format!("{} off", class.name);
        let is_of_kinds = |path: &str| OF_THE_KINDS.iter().any(|name| path.contains(name));
        found.extend(each(&what, off, is_of_kinds));
        // One class of each meaning is enough.
        if !["app:work_end", "app:leave", "app:level", "app:mode"].contains(&class.name) {
            continue;
        }
        let in_part = |some: &mut Recording, _: &mut Random| {
            let middle = some.middle();
            some.retain(|writer, event| !is_it(writer, event) || event.time < middle);
            some.area = Some(json!({ "schemas": ["app"], "disabled_in_part": [class.name] }));
        };
        found.extend(each(&format!("{} off later", class.name), in_part, |_| false));
    }
    none(&found);
}

/// Cuts the recording shorter: every exact item also exists in the complete recording, and numbers of CPUs
/// are those of their activity in the remaining time.
#[test]
fn a_recording_that_is_cut_changes_no_exact_number() {
    let place = Place::new();
    let mut found = Vec::new();
    for seed in SEEDS {
        let truth = Truth::of(seed, STEPS);
        let whole = Recording::new(&truth.streams, EVENTS_PER_PACKET);
        whole.write(&place, &format!("whole{seed}"));
        let of_whole = numbers::of_tables(&place, &format!("whole{seed}"));
        let times: Vec<u64> = truth.streams.values().flatten().map(|event| event.time).collect();
        let (first, last) = (*times.iter().min().unwrap(), *times.iter().max().unwrap());
        let at = |percent: u64| first + (last - first) * percent / 100;
        for (from, until) in [(at(0), at(60)), (at(40), at(100)), (at(30), at(70))] {
            let name = format!("cut{seed}-{from}-{until}");
            let mut some = whole.clone();
            some.retain(|_, event| (from..=until).contains(&event.time));
            some.write(&place, &name);
            let kept = times.iter().filter(|time| (from..=until).contains(time));
            let window = (*kept.clone().min().unwrap(), *kept.max().unwrap());
            let stats = numbers::of_stats(&place, &name);
            found.extend(beside(&name, &stats, &truth, window));
            found.extend(paths::of(&place, &name, &truth).wrong);
            let tables = numbers::of_tables(&place, &name);
            let is_thing = |path: &str| {
                let of = ["spans", "messages", "states", "thread_states", "calls"];
                of.iter().any(|table| path.starts_with(table))
            };
            // The thread before the first switch is unknown.
            let is_nobodys = |path: &str| path.starts_with("spans") && path.contains("tid=null");
            for (path, said) in
                tables.iter().filter(|(path, _)| is_thing(path) && !is_nobodys(path))
            {
                let truth = of_whole.get(path);
                let is_true = match said.quality.as_str() {
                    "exact" => truth.is_some_and(|truth| truth.value == said.value),
                    // A repeated state was entered earlier in the complete recording.
                    _ => truth.is_none_or(|truth| said.value <= truth.value),
                };
                if !is_true {
                    found.push(format!("{name}: {path}: {said:?}, whole {truth:?}"));
                }
            }
        }
    }
    none(&found);
}
