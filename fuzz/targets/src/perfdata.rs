// SPDX-License-Identifier: Apache-2.0 OR MIT
//! perf.data, trace.dat and pages of the kernel's ring buffer.

use lateralis_model::{ByteOrder, Fields, Source, Value};
use lateralis_perfdata::ftrace::{PagesInfo, open_pages};

#[path = "../../../crates/perfdata/tests/common/maker.rs"]
mod maker;

/// Events may take so many bytes.
const LIMIT_BYTES: u64 = 1 << 20;

/// Reads arbitrary bytes as a file, and as pages. Besides not panicking: values
/// fit the classes of their fields, and the list of damage is bounded.
pub fn check(bytes: &[u8]) {
    let file = std::sync::Arc::new(bytes.to_vec());
    if let Ok(trace) = lateralis_perfdata::open("input", file, LIMIT_BYTES) {
        walk(&*trace);
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
