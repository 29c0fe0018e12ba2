// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A library without `std` that records. Compiling it is the test: nothing here or below may need
//! Rust's operating system support.
#![no_std]

use lateralis::{Record, Schema};

const TEXT: &str = "schema sensor;\nsubsystem sensor {\nevent VALUE (id: u32, value: u32),\n\
    event NAME (id: u32, name: string),\n};\n";
static SCHEMA: Schema = Schema::new("sensor", TEXT, lateralis::text_hash(TEXT), 2);
lateralis::register_at_start!(SCHEMA);

/// Records a value.
pub fn value(id: u32, value: u32) {
    let on = SCHEMA.on(0);
    if on != 0 {
        let word = u64::from_ne_bytes(core::array::from_fn(|i| {
            if i < 4 { id.to_ne_bytes()[i] } else { value.to_ne_bytes()[i - 4] }
        }));
        SCHEMA.emit(on, 0, 8, [word]);
    }
}

/// Records a name.
pub fn name(id: u32, name: &str) {
    let on = SCHEMA.on(1);
    if on != 0 {
        let mut record = Record::new();
        record.u32(id);
        record.str(name);
        SCHEMA.emit_record(on, 1, &record);
    }
}

/// Logs without a schema.
pub fn log(id: u32) {
    let _span = lateralis::span!(sensor_log);
    lateralis::log!("sensor {} is {}", id, "warm");
    lateralis::mark!("sensor {id}");
}
