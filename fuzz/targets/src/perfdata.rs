// SPDX-License-Identifier: Apache-2.0 OR MIT
//! perf.data, trace.dat and pages of the kernel's ring buffer.

use lateralis_model::{ByteOrder, Fields, Source, Value};
use lateralis_perfdata::ftrace::{PagesInfo, open_pages};
use lateralis_store::Chosen;
use lateralis_store::places::Images;
use lateralis_store::stacks::gather;
use lateralis_symbols::{Functions, Image};

#[path = "../../../crates/perfdata/tests/common/maker.rs"]
mod maker;

/// Memory for events, in bytes.
const LIMIT_BYTES: u64 = 1 << 20;

/// Reads arbitrary bytes as a file, and as pages. Besides not panicking: values
/// fit the classes of their fields, and the list of damage is bounded.
pub fn check(bytes: &[u8]) {
    let file = std::sync::Arc::new(bytes.to_vec());
    if let Ok(trace) = lateralis_perfdata::open("input", file, LIMIT_BYTES) {
        walk(&*trace);
        stacks(&*trace);
    }
    for area in lateralis_perfdata::perf::aux_areas(bytes) {
        assert!(area.begin_bytes + area.size_bytes <= bytes.len() as u64, "outside of the file");
    }
    let info = PagesInfo { formats: &[("heart", maker::FORMAT)], ..PagesInfo::default() };
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let pages: lateralis_perfdata::perf::Bytes = std::sync::Arc::new(bytes.to_vec());
        walk(&open_pages("input", vec![(0, pages)], &info, order));
    }
}

/// No file can be read, under any name.
pub struct Nothing;

impl Images for Nothing {
    fn image(&mut self, _: &str, _: Option<&[u8]>) -> Result<Image, String> {
        Err("not there".to_owned())
    }

    fn code(&mut self, _: &str, _: Option<&[u8]>, _: (u64, u64)) -> Result<Vec<u8>, String> {
        Err("no files here".to_owned())
    }

    fn kernel(&mut self, _: Option<&[u8]>) -> Result<Functions, String> {
        Err("not there".to_owned())
    }

    fn generated(&mut self, _: u32) -> Option<(Functions, String)> {
        None
    }
}

/// Each sample counts once.
fn stacks(trace: &dyn Source) {
    for of in gather(&Chosen::all_of(trace), &mut Nothing, true).stacks {
        assert_eq!(of.nodes.iter().map(|node| node.samples).sum::<u64>(), of.samples);
        let most = of.totals().into_iter().max().unwrap_or(0);
        assert!(most <= of.weight, "{most} of {}", of.weight);
    }
}

fn walk(trace: &dyn Source) {
    assert!(trace.damage().len() <= 1000, "{} places", trace.damage().len());
    let mut events = trace.events();
    while let Some(event) = events.next_event() {
        let parts = [event.common_context(), event.context(), event.payload()];
        let used: usize = parts.into_iter().flatten().map(|fields| fields.slot_count()).sum();
        assert_eq!(used, event.slots.len(), "slots of {}", event.class.name);
        parts.into_iter().flatten().for_each(fields);
    }
}

fn fields(fields: Fields<'_>) {
    for (_, field) in fields {
        match field.value() {
            Value::Text(text) => drop(text.to_str()),
            Value::Struct(inner) => self::fields(inner),
            Value::Array(elements) => assert_eq!(elements.len(), elements.count()),
            _ => {}
        }
    }
}

/// Good inputs of every kind.
pub fn good() -> Vec<Vec<u8>> {
    let both = [ByteOrder::Little, ByteOrder::Big].into_iter();
    both.flat_map(|order| {
        [maker::perf_data(order), maker::trace_dat(order), maker::page(order, 7, true)]
    })
    .collect()
}
