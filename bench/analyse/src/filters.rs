// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filters over columns in memory: their cost without that of reading.
//!
//! The columns are also written to files, so that other programs can evaluate the same filters.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use lateralis_analysis::filter::columns::{Asking, Leaf, Mask, Parts, Plan, Slices};
use lateralis_analysis::filter::{Context, Filter};
use lateralis_model::{Column, EventClass, FieldClass, Names, Spans, StreamClass};
use lateralis_script::expression::Expression;
use lateralis_units::Nanos;

use crate::Random;

/// Events of a batch: about as many as a packet of a trace contains.
const BATCH: usize = 1 << 14;

/// Name and expression of each filter. `run` contains the same ones in the languages of the other programs.
const FILTERS: [(&str, &str); 8] = [
    ("one comparison", "arg > 512k"),
    ("a range", "arg >= 100k && arg < 200k"),
    ("three comparisons, one of them", "arg < 1k || delta > 490 || ratio >= 0.99"),
    ("three comparisons, all of them", "arg > 512k && delta < 0 && ratio < 0.5"),
    ("one of five values", "state == 1 || state == 3 || state == 4 || state == 7 || state == 12"),
    ("a window of time", "$time >= 1ms && $time < 1500us"),
    ("a text", "name == 'redis-server'"),
    ("the beginning of a text", "name =~ 'redis*'"),
];

/// Likewise for scripts.
const SCRIPTS: [(&str, &str); 3] = [
    ("two columns", "event.fields.arg > event.fields.delta"),
    ("a script", "event.fields.arg > 5000 && event.fields.delta < 3"),
    ("a script with arithmetic", "event.fields.arg + 2 * event.fields.delta > 700000"),
];

const TEXT: &[u8] = b"redis-server nginx swapper/0 redis-client kworker/u8:2-events";
const WORDS: [(u64, u32); 5] = [(0, 12), (13, 5), (19, 9), (29, 12), (42, 19)];

/// Columns of this number of events.
struct Columns {
    times: Vec<Nanos>,
    arg: Vec<u64>,
    delta: Vec<i64>,
    ratio: Vec<f64>,
    state: Vec<u64>,
    word: Vec<u64>,
    starts: Vec<u64>,
    lengths: Vec<u32>,
}

impl Columns {
    fn new(events: usize) -> Self {
        let mut random = Random(7);
        let mut drawn =
            |limit: u64| -> Vec<u64> { (0..events).map(|_| random.below(limit)).collect() };
        let (arg, delta, ratio) = (drawn(1 << 20), drawn(1000), drawn(1000));
        let (state, word) = (drawn(16), drawn(WORDS.len() as u64));
        let (starts, lengths) = word.iter().map(|&word| WORDS[word as usize]).unzip();
        Self {
            times: (0..events as i64).map(Nanos).collect(),
            arg,
            delta: delta.iter().map(|&n| n as i64 - 500).collect(),
            ratio: ratio.iter().map(|&n| n as f64 / 1000.0).collect(),
            state,
            word,
            starts,
            lengths,
        }
    }

    fn write(&self, directory: &Path) -> io::Result<()> {
        let write = |name: &str, bytes: Vec<u8>| fs::write(directory.join(name), bytes);
        let of = |values: &[u64]| values.iter().flat_map(|v| v.to_le_bytes()).collect();
        write("time", self.times.iter().flat_map(|v| v.0.to_le_bytes()).collect())?;
        write("arg", of(&self.arg))?;
        write("delta", self.delta.iter().flat_map(|v| v.to_le_bytes()).collect())?;
        write("ratio", self.ratio.iter().flat_map(|v| v.to_le_bytes()).collect())?;
        write("state", of(&self.state))?;
        write("word", of(&self.word))?;
        let words = WORDS.map(|(start, length)| &TEXT[start as usize..][..length as usize]);
        write("words", words.join(&b'\n'))
    }

    fn batches(&self) -> Vec<Slices<'_>> {
        let events = self.arg.len();
        let of = |from: usize| {
            let range = from..events.min(from + BATCH);
            let spans = Spans::new(&self.starts[range.clone()], &self.lengths[range.clone()], TEXT);
            let columns = vec![
                Column::Unsigned(&self.arg[range.clone()]),
                Column::Signed(&self.delta[range.clone()]),
                Column::Real(&self.ratio[range.clone()]),
                Column::Unsigned(&self.state[range.clone()]),
                Column::Spans(spans),
            ];
            Slices::new(0, &self.times[range], columns)
        };
        (0..events).step_by(BATCH).map(of).collect()
    }
}

/// Prints `question;nanoseconds;count` for each filter: the best of five passes over all events, and the
/// number of events selected. Before them, a copy and a sum of one column.
pub fn filters(directory: &Path, events: u64) -> io::Result<()> {
    let columns = Columns::new(events as usize);
    columns.write(directory)?;
    let mut copy = vec![0_u64; columns.arg.len()];
    print("memcpy", &mut || {
        copy.copy_from_slice(&columns.arg);
        copy[copy.len() / 2]
    });
    print("scan", &mut || columns.arg.iter().fold(0, |sum: u64, value| sum.wrapping_add(*value)));
    drop(copy);
    let payload = FieldClass::structure([
        ("arg", FieldClass::u64()),
        ("delta", FieldClass::i64()),
        ("ratio", FieldClass::real()),
        ("state", FieldClass::u64()),
        ("name", FieldClass::text()),
    ]);
    let class =
        EventClass { name: "io:READ".into(), payload: Some(payload), ..EventClass::default() };
    let stream = StreamClass { event_classes: vec![class], ..StreamClass::default() };
    let class = &stream.event_classes[0];
    let batches = columns.batches();
    for (question, text) in FILTERS {
        let filter = Filter::parse(text).map_err(io::Error::other)?;
        ask(question, &filter.plan(&stream, class), &stream, &batches)?;
    }
    for (question, text) in SCRIPTS {
        let expression = Expression::parse(text);
        let expression = expression.map_err(|error| io::Error::other(error.to_string()))?;
        ask(question, &expression.plan(&stream, class), &stream, &batches)?;
    }
    Ok(())
}

fn ask<L: Leaf>(
    question: &str,
    plan: &Plan<L>,
    stream: &StreamClass,
    batches: &[Slices<'_>],
) -> io::Result<()> {
    let names = Names::default();
    let context = Context { names: &names, streams: &[] };
    let (mut asking, mut mask) = (Asking::new(&context), Mask::default());
    let mut asked = 0;
    print(question, &mut || {
        let mut chosen = 0;
        for batch in batches {
            let parts = Parts::new(batch, stream, false);
            plan.select(&parts.part(0), &mut asking, &mut mask);
            chosen += mask.count() as u64;
            asked += mask.asked().len();
        }
        chosen
    });
    match asked {
        0 => Ok(()),
        _ => Err(io::Error::other(format!("{question}: {asked} events are not decided"))),
    }
}

fn print(question: &str, work: &mut dyn FnMut() -> u64) {
    let (mut best, mut answer) = (u128::MAX, 0);
    for _ in 0..5 {
        let begin = Instant::now();
        answer = std::hint::black_box(work());
        best = best.min(begin.elapsed().as_nanos());
    }
    println!("{question};{best};{answer}");
}
