// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filters that the traced program evaluates: from text to steps.

use std::sync::LazyLock;

use lateralis_pleco::Schema;
use lateralis_recorder::filter::{Filter, compile};
use lateralis_ring::abi;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = "schema x; subsystem s { event E (a: u8, b: i64, c: enum { X, Y }, d: bool, \
        e: f32, f: string, g: u16), };";
    lateralis_pleco::compile("x.pleco", text.as_bytes()).schema.expect("a good schema")
});

/// Besides not panicking: a filter has few steps, each leads to a later one, and none reads
/// outside of the fields.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(filter) = Filter::parse(text) else { return };
    let event = &SCHEMA.events[0];
    let Ok(steps) = compile(&filter, &SCHEMA, event) else { return };
    assert!((1..=abi::FILTER_STEPS).contains(&steps.len()), "{text}");
    let most = event.layout().payload_bytes_min;
    for (number, step) in steps.iter().enumerate() {
        assert!(u32::from(step.offset) + u32::from(step.bytes) <= most, "{text}");
        for next in [step.if_true, step.if_false] {
            let is_end = next == abi::FILTER_ACCEPT || next == abi::FILTER_REJECT;
            let next = usize::from(next);
            assert!(is_end || next > number && next < steps.len(), "{text}");
        }
    }
}

/// Conditions with most of what there is.
pub fn good() -> Vec<Vec<u8>> {
    let texts = [
        "s:E: a == 1",
        "s:E: a > 1 and (b <= -5 or not c == Y) and d == true",
        "s:E: !(a & 0x0f != 3 || b < 9) && c = X",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
