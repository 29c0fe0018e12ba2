// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every writer on a hostile CTF trace: classes and values that no sane producer
//! makes. The last byte of the input chooses the writer.

use crate::{columns, trace};
use lateralis_interchange::{chrome, csv, fxt, jsonl, parquet, perfetto};
use lateralis_model::Source;
use lateralis_seedformats::barrelfish::{self, Definitions};
use std::io::{self, Write};

const SINK: &str = "a vector takes everything";

/// Besides not panicking: what can be read again has no damage, and formats with a
/// line or record for each event have all of them.
pub fn check(input: &[u8]) {
    let Some((&which, input)) = input.split_last() else { return };
    let reader = trace::reader(input);
    let Some(events) = columns::compare(&reader).filter(|&events| events <= 20_000) else {
        return;
    };
    let source: &dyn Source = &reader;
    let mut out = Vec::new();
    match which % 8 {
        0 => {
            chrome::write(source, &mut out).expect(SINK);
            let again = chrome::read("again", &out, u64::MAX).expect("what was written");
            assert!(again.damage().is_empty(), "{:?}", again.damage());
        }
        1 => {
            perfetto::write(source, &mut out).expect(SINK);
            let again = perfetto::read("again", &out, u64::MAX).expect("what was written");
            assert!(again.damage().is_empty(), "{:?}", again.damage());
        }
        2 => {
            fxt::write(source, &mut out).expect(SINK);
            let again = fxt::read("again", &out, u64::MAX).expect("what was written");
            assert!(again.damage().is_empty(), "{:?}", again.damage());
        }
        3 => {
            jsonl::write(source, &mut out).expect(SINK);
            let text = std::str::from_utf8(&out).expect("JSON is UTF-8");
            assert!(text.lines().count() >= events, "{events} events");
        }
        4 => {
            let both = input.first().is_some_and(|byte| byte % 2 == 0);
            csv::write(source, &mut out, csv::Options { header: both, text: both }).expect(SINK);
            std::str::from_utf8(&out).expect("CSV is UTF-8");
        }
        5 => {
            parquet::write(source, &mut out).expect(SINK);
            assert!(out.starts_with(b"PAR1") && out.ends_with(b"PAR1"));
            let mut open = |_: &str| Ok(Box::new(io::sink()) as Box<dyn Write>);
            parquet::write_classes(source, &mut open).expect(SINK);
        }
        6 => {
            let options = lateralis_pcapng::Options::default();
            lateralis_pcapng::write(source, &mut out, &options).expect(SINK);
            let again = lateralis_pcapng::read("again", &out, u64::MAX).expect("a capture");
            assert!(again.damage().is_empty(), "{:?}", again.damage());
        }
        _ => {
            barrelfish::write(source, &mut out, &Definitions::legacy()).expect(SINK);
            let again = barrelfish::read("again", &out, u64::MAX).expect("a dump");
            assert!(again.damage().is_empty(), "{:?}", again.damage());
        }
    }
}

/// Good traces for each writer.
pub fn good() -> Vec<Vec<u8>> {
    let traces = trace::good();
    let of = |trace: &Vec<u8>, which: u8| [&trace[..], &[which]].concat();
    let own = traces.iter().take(4).flat_map(|trace| (0..8).map(move |which| of(trace, which)));
    let real = traces.iter().skip(4).enumerate().map(|(at, trace)| of(trace, at as u8));
    own.chain(real).collect()
}
