// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Units as tables write them.

use lateralis_pleco::schema::{Annotation, Field};

/// The unit that a schema gives a field; empty if it gives none.
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
