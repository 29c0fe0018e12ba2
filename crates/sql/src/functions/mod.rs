// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Timeline functions that SQL lacks.

mod duration;
mod histogram;
pub(crate) mod interval;
mod percentile;

pub use duration::parse_nanos;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::prelude::SessionContext;

/// A function as shown by `.functions`.
pub struct Described {
    /// Its call.
    pub call: &'static str,
    /// Its result.
    pub gives: &'static str,
}

/// All our functions, in the order of help.
pub const DESCRIBED: [Described; 9] = [
    Described {
        call: "ns('50us')",
        gives: "the duration as nanoseconds; units ns, us, µs, ms, s, min, h",
    },
    Described { call: "duration(ns)", gives: "nanoseconds as text with a unit: 1.234 ms" },
    Described {
        call: "overlaps(a_begin, a_end, b_begin, b_end)",
        gives: "whether two intervals share a moment; ends excluded, NULL is unbounded",
    },
    Described {
        call: "time_bucket(width, ts)",
        gives: "the begin of the bucket that ts lies in; width in ns or as text: '10ms'",
    },
    Described {
        call: "percentile(x, p)",
        gives: "exact nearest rank: the smallest x that at least p percent do not exceed",
    },
    Described {
        call: "histogram(x [, width])",
        gives: "list of {low, high, count}, low <= x < high; buckets double, or are all `width` wide",
    },
    Described { call: "FROM spans('name')", gives: "the spans of this name" },
    Described {
        call: "FROM activities('begin event', 'end event' [, 'key' …])",
        gives: "spans from any two kinds of events, matched by equal key, innermost first",
    },
    Described {
        call: "FROM span_join('a', 'b' [, 'key' …])",
        gives: "every pair of rows of a and b that overlap in time, with their common part",
    },
];

/// Registers all functions with the engine.
pub fn register(context: &SessionContext) {
    context.register_udf(ScalarUDF::from(duration::Ns::new()));
    context.register_udf(ScalarUDF::from(duration::Text::new()));
    context.register_udf(ScalarUDF::from(interval::Overlaps::new()));
    context.register_udf(ScalarUDF::from(interval::TimeBucket::new()));
    context.register_udaf(AggregateUDF::from(percentile::Percentile::new()));
    context.register_udaf(AggregateUDF::from(histogram::Histogram::new()));
}
