// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recorded bytes by kind of packet, and the number of instructions.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::ops::ControlFlow;

use lateralis_intelpt::Block;
use lateralis_intelpt::flow::Event;
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::packet::Packet;

use super::{Follow, Moment, Recorded, Traced};
use crate::places::Places;

/// Packets of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Its name, as in the table of packets; `None`: bytes that are not packets.
    pub name: Option<String>,
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Contents and sizes of packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// By size in bytes, largest first.
    pub kinds: Vec<Kind>,
    /// Bytes of all packets, including those before the first PSB.
    pub bytes: u64,
    /// Executed instructions, as far as they are known.
    pub instructions: u64,
    /// Gaps, with an unknown number of instructions.
    pub gaps: u64,
    /// Nanoseconds from the first to the last known time, of all threads and CPUs together.
    pub nanos: Option<u64>,
}

#[derive(Default)]
struct Executed {
    instructions: u64,
    gaps: u64,
    times: Option<(u64, u64)>,
}

/// Reads all packets, and follows them.
///
/// Cost: proportional to packets and blocks. Memory: proportional to kinds.
pub fn sizes(recorded: &mut Recorded<'_>) -> Sizes {
    let mut kinds: HashMap<Option<Discriminant<Packet>>, Kind> = HashMap::new();
    recorded.packets(&mut |found| {
        let name = |packet: Packet| packet.to_string().split(' ').next().map(str::to_owned);
        let kind = kinds.entry(found.packet.as_ref().map(discriminant)).or_insert_with(|| Kind {
            name: found.packet.and_then(name),
            packets: 0,
            bytes: 0,
        });
        kind.packets += 1;
        kind.bytes += found.size_bytes as u64;
        ControlFlow::Continue(())
    });
    let mut kinds: Vec<Kind> = kinds.into_values().collect();
    kinds.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    let mut executed = Executed::default();
    recorded.follow(&mut executed);
    Sizes {
        kinds,
        bytes: recorded.byte_count(),
        instructions: executed.instructions,
        gaps: executed.gaps,
        nanos: executed.times.map(|(first, last)| last - first),
    }
}

impl Follow for Executed {
    fn begins(&mut self, _: &mut Places<'_>, _: &Traced) {}

    fn block(&mut self, _: &mut Places<'_>, _: &Sections<'_>, block: &Block, time: Moment) {
        self.instructions += u64::from(block.count);
        if let Some(moment) = time {
            let (first, last) = self.times.unwrap_or((moment.nanos, moment.nanos));
            self.times = Some((first.min(moment.nanos), last.max(moment.nanos)));
        }
    }

    fn event(&mut self, _: &mut Places<'_>, _: u64, event: Event, _: Moment) {
        self.gaps += u64::from(matches!(event, Event::Gap(_)));
    }
}
