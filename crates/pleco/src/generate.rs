// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is made from a schema: sources, descriptions, documentation. Each output
//! is a function from a [`Schema`](crate::Schema) to a text.

mod c_events;
mod c_header;
mod json_schema;
mod legacy;
mod markdown;
mod rust_events;
mod rust_module;
mod wording;

pub use c_header::c_header;
pub use json_schema::json;
pub use legacy::{legacy_header, legacy_json, legacy_note_json};
pub use markdown::markdown;
pub use rust_module::{rust_module, rust_module_by_hand};
