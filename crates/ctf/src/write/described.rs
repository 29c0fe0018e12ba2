// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The metadata of a written trace, independent of the version.

use lateralis_model::{EnvValue, EventClass, Trace};

use super::layout::Node;
use super::leaves::Leaf;

/// A field of a header or context that the writer adds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    /// Its name, which gives it its meaning in CTF 1.8.
    pub name: &'static str,
    pub bits: u32,
    /// Its meaning in CTF 2.
    pub role: Option<&'static str>,
    /// Whether it is a reading of the clock.
    pub clock: bool,
}

impl Own {
    pub const fn new(name: &'static str, bits: u32, role: Option<&'static str>) -> Self {
        Self { name, bits, role, clock: false }
    }

    pub const fn time(name: &'static str, bits: u32, role: &'static str) -> Self {
        Self { name, bits, role: Some(role), clock: true }
    }
}

/// A kind of stream as written.
#[derive(Debug)]
pub(super) struct WrittenStream {
    pub id: u64,
    pub name: Option<String>,
    /// Index of the clock.
    pub clock: Option<usize>,
    /// Width of event ids.
    pub id_bits: u32,
    /// Width of time stamps, 0 without a clock.
    pub time_bits: u32,
    /// Packet context: what the writer adds, then what the source has.
    pub own: Vec<Own>,
    pub packet_context: Option<Node>,
    pub common_context: Option<Node>,
    /// Whether process and thread follow the common context.
    pub writers: bool,
    pub events: Vec<WrittenEvent>,
}

/// A kind of event as written.
#[derive(Debug)]
pub(super) struct WrittenEvent {
    pub id: u64,
    /// Index in the source's stream class.
    pub class: usize,
    pub context: Option<Node>,
    /// Whether the context is described as the first field of the payload.
    pub is_context_in_payload: bool,
    pub payload: Option<Node>,
    /// Set where the values of common context, context and payload are all
    /// leaves: then they are written without walking the nodes.
    pub leaves: Option<Vec<Leaf>>,
    pub count: u64,
    /// Guesses of its source class that were wrong.
    pub denied: Vec<usize>,
}

/// Everything metadata is made of.
pub(super) struct Described<'a> {
    pub trace: &'a Trace,
    pub environment: Vec<(String, EnvValue)>,
    /// Names of the clocks as written.
    pub clocks: Vec<String>,
    pub header: Vec<Own>,
    pub streams: &'a [WrittenStream],
}

impl Described<'_> {
    /// The class in the source that an event class was made from.
    pub fn class(&self, stream: usize, event: &WrittenEvent) -> &EventClass {
        &self.trace.stream_classes[stream].event_classes[event.class]
    }
}

/// Names of process and thread as LTTng has them.
pub(super) const WRITER_FIELDS: [&str; 2] = ["vpid", "vtid"];
