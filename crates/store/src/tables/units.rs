// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Units as written in tables.

use lateralis_pleco::schema::{Annotation, Field};

/// The unit of a field in a schema; empty if there is none.
pub fn of_field(field: &Field) -> &'static str {
    let known = [
        (Annotation::Bytes, "B"),
        (Annotation::Bits, "bit"),
        (Annotation::Ns, "ns"),
        (Annotation::Us, "us"),
        (Annotation::Ms, "ms"),
        (Annotation::S, "s"),
        (Annotation::Cycles, "cycles"),
        (Annotation::Hz, "Hz"),
        (Annotation::Percent, "%"),
    ];
    known.iter().find(|(unit, _)| field.has(*unit)).map_or("", |(_, name)| name)
}
