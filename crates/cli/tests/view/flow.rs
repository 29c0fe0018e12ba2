// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls, instructions and stacks of samples in the viewer, compared with the list of a simulated CPU, and
//! with the counts of `lat flow`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::client::{Page, Viewer};
use crate::instructions::{data, machine};
use crate::place::Place;
use crate::samples::{built, is_there, recorded};

/// Returns the single lane that has rows of a kind, with those rows.
fn rows_of(open: &Value, kind: &str) -> Option<(Value, Vec<Value>)> {
    let mut lanes = open["lanes"].as_array().expect("lanes").iter();
    lanes.find_map(|lane| {
        let rows = lane["rows"].as_array().expect("rows").iter();
        let rows: Vec<Value> = rows.filter(|row| row["kind"] == kind).cloned().collect();
        (!rows.is_empty()).then(|| (lane.clone(), rows))
    })
}

/// Returns the items of a row with their times. A window in which a pixel has several items is requested in
/// halves, because the distance of samples depends on the machine.
fn things(
    page: &mut Page,
    lane: &Value,
    row: &Value,
    (t0, t1): (f64, f64),
) -> Vec<(f64, f64, u64)> {
    let asked = json!({ "lanes": [lane["id"]], "t0": t0, "t1": t1, "px": 16384, "filter": 0 });
    let (told, columns) = page.ask_columns("view", asked);
    let mut rows = told["rows"].as_array().expect("rows").iter();
    let place = rows.position(|of| of["row"] == row["row"]).expect("the row") as f64;
    if told["rows"][place as usize]["exact"] != true {
        assert!(t1 - t0 > 1.0, "two things in one nanosecond: {row}");
        let middle = f64::midpoint(t0, t1).floor();
        let halves = [(t0, middle), (middle, t1)];
        return halves.map(|half| things(page, lane, row, half)).concat();
    }
    let column = |name: &str| columns[name].clone();
    let (of, begins) = (column("item_row"), column("item_begin"));
    let (ends, names) = (column("item_end"), column("item_name"));
    let is_here = |at: &usize| of[*at] == place && (t0..t1).contains(&begins[*at]);
    let all = (0..of.len()).filter(is_here);
    all.map(|at| (begins[at], ends[at], names[at] as u64)).collect()
}

#[test]
fn instructions_of_the_view_are_the_truth_of_the_simulated_processor() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    for name in ["fibs", "fibscyc"] {
        let folder = made.join(name);
        let truth = fs::read(folder.join("truth.ips.zst")).expect("the truth");
        let truth = zstd::decode_all(&truth[..]).expect("zstd");
        let truth: Vec<u64> = String::from_utf8_lossy(&truth)
            .split_whitespace()
            .map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("hex"))
            .collect();
        let trace = folder.join("perf.data").display().to_string();
        let viewer = Viewer::start(&place, &[&trace, "--symfs", &machine]);
        let mut page = viewer.page();
        let open = page.ask("open", json!({}));
        let methods = open["methods"].as_array().expect("methods");
        assert!(methods.contains(&json!("instructions")));
        let (lane, calls) = rows_of(&open, "calls").expect("rows of calls");
        assert!(calls.len() > 3, "{calls:?}");
        let whole = (open["begin"].as_f64().unwrap(), open["end"].as_f64().unwrap());
        let mut found = Vec::new();
        loop {
            let asked = json!({
                "lane": lane["id"], "t0": whole.0, "t1": whole.1, "from": found.len(), "count": 1000,
            });
            let answer = page.ask("instructions", asked);
            assert_eq!(answer["total"], truth.len(), "{name}");
            let rows = answer["rows"].as_array().expect("rows");
            if rows.is_empty() {
                break;
            }
            for row in rows {
                let address = row["address"].as_str().expect("an address");
                found.push(u64::from_str_radix(&address[2..], 16).expect("hex"));
            }
        }
        assert_eq!(found, truth, "{name}");
        rates_sum_up(&mut page, &open, truth.len() as f64);
        a_call_has_its_instructions(&mut page, (&open, &lane, &calls), &truth);
    }
}

/// The pixels together contain the number of executed instructions.
fn rates_sum_up(page: &mut Page, open: &Value, instructions: f64) {
    const PX: usize = 1000;
    let counters = open["counters"].as_array().expect("counters");
    let counter =
        counters.iter().find(|of| of["name"] == "instructions per µs").expect("a counter");
    let (t0, t1) = (0.0, open["end"].as_f64().unwrap());
    let asked = json!({ "counters": [counter["id"]], "t0": t0, "t1": t1, "px": PX });
    let (_, columns) = page.ask_columns("levels", asked);
    let width = |pixel: usize| {
        let edge = |pixel: usize| (pixel as f64 * (t1 - t0) / PX as f64).floor();
        (edge(pixel + 1) - edge(pixel)).max(1.0)
    };
    let known = columns["last"].iter().enumerate().filter(|(_, rate)| !rate.is_nan());
    let sum: f64 = known.map(|(pixel, rate)| rate / 1000.0 * width(pixel)).sum();
    // Tolerance: the pixels at both ends, and a rounding error of one instruction per pixel.
    assert!((sum - instructions).abs() <= 2.0 * PX as f64, "{sum} of {instructions}");
}

/// The range of instructions of a call has the right length, and the first one is at the start of the call.
fn a_call_has_its_instructions(
    page: &mut Page,
    (open, lane, calls): (&Value, &Value, &[Value]),
    truth: &[u64],
) {
    let middle = open["end"].as_u64().unwrap() / 2;
    let at = json!({
        "lane": lane["id"], "row": calls[2]["row"], "t": middle, "within": middle, "filter": 0,
    });
    let thing = page.ask("at", at)["thing"].clone();
    assert_eq!(thing["kind"], "call", "{thing}");
    let field = |name: &str| {
        let mut fields = thing["fields"].as_array().expect("fields").iter();
        fields.find(|of| of["name"] == name).map(|of| of["value"].clone())
    };
    let (first, count) = (&thing["instructions"]["first"], &thing["instructions"]["count"]);
    assert_eq!(field("instructions").as_ref(), Some(count));
    let asked = json!({
        "lane": lane["id"], "t0": thing["begin"], "t1": thing["end"], "first": first, "of": count,
        "from": 0, "count": 1000,
    });
    let answer = page.ask("instructions", asked);
    assert_eq!(&answer["total"], count);
    let rows = answer["rows"].as_array().expect("rows");
    assert_eq!(rows.len() as u64, count.as_u64().unwrap().min(1000));
    for (row, number) in rows.iter().zip(first.as_u64().unwrap()..) {
        let address = u64::from_str_radix(&row["address"].as_str().unwrap()[2..], 16).unwrap();
        assert_eq!(address, truth[number as usize]);
        assert_eq!(row["number"], number);
    }
    assert_eq!(rows[0]["function"], thing["name"]);
    assert_eq!(field("address").as_ref(), Some(&rows[0]["address"]));
}

const SAMPLED: &str = "
static volatile unsigned long sink;
#define APART __attribute__((noinline))
#define SPIN for (unsigned long i = 0; i < n; i++) sink += i; __asm__ volatile(\"\" ::: \"memory\")
static inline __attribute__((always_inline)) void inlined(unsigned long n) { SPIN; }
APART void spin(unsigned long n) { SPIN; }
APART void outer(unsigned long n) { spin(n); inlined(n); __asm__ volatile(\"\" ::: \"memory\"); }
int main(void) { for (int i = 0; i < 200; i++) outer(1000000); }
";

#[test]
fn stacks_of_samples_are_rows_of_the_thread() {
    let place = Place::new();
    if !is_there("gcc") {
        return;
    }
    built(&place, SAMPLED, "sampled", &["-O1", "-g", "-fno-omit-frame-pointer"]);
    if recorded(&place, &["-o", "r", "--", "./sampled"]).is_none() {
        return;
    }
    let stacks = place.json(&["flow", "stacks", "r", "--json"]);
    let of = &stacks["events"][0];
    let (samples, functions) = (of["samples"].as_u64().unwrap(), &stacks["functions"]);
    assert!(samples > 20, "{samples}");
    let viewer = Viewer::start(&place, &["r"]);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    // The last nanosecond belongs to the recording.
    let whole = (open["begin"].as_f64().unwrap(), open["end"].as_f64().unwrap() + 1.0);
    let (lane, marks) = rows_of(&open, "samples").expect("a row of samples");
    let (_, rows) = rows_of(&open, "stacks").expect("rows of stacks");
    let marks = things(&mut page, &lane, &marks[0], whole);
    assert_eq!(marks.len() as u64, samples);
    // At each sample, the rows show its functions; their counts are those of the stacks.
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for row in &rows {
        for (mark, ..) in &marks {
            // One nanosecond after the mark: at the mark itself, one function ends and another begins.
            let at = json!({
                "lane": lane["id"], "row": row["row"], "t": mark + 1.0, "within": 0, "filter": 0,
            });
            if let Some(name) = page.ask("at", at)["thing"]["name"].as_str() {
                *found.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
    for name in ["main", "outer", "spin", "inlined"] {
        let number = functions.as_array().unwrap().iter().position(|of| of["name"] == name);
        let number = number.expect("the function was sampled");
        let weights = of["functions"].as_array().unwrap().iter();
        let whole = weights.filter(|of| of["function"] == number).map(|of| &of["weight"]);
        let weight: u64 = whole.filter_map(Value::as_u64).sum();
        // All samples have the same weight, one clock period.
        let expected = weight / (of["weight"].as_u64().unwrap() / samples).max(1);
        let drawn = found.get(name).copied().unwrap_or(0);
        assert!(drawn.abs_diff(expected) <= 1, "{name}: {drawn} drawn of {expected}");
    }
    let at = |depth: usize| {
        json!({
            "lane": lane["id"], "row": rows[depth]["row"], "t": marks[10].0, "within": 10_000_000,
            "filter": 0,
        })
    };
    // The outermost function of the program with line information.
    let depth = (0..rows.len()).find(|depth| page.ask("at", at(*depth))["thing"]["name"] == "main");
    let thing = page.ask("at", at(depth.expect("main is on the stack")))["thing"].clone();
    assert_eq!(thing["kind"], "sampled");
    let fields = thing["fields"].as_array().expect("fields");
    let source = fields.iter().find(|of| of["name"] == "source").expect("a line");
    assert!(source["value"].as_str().unwrap().ends_with("sampled.c:8"), "{source}");
}
