// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams of a live recording. Each round numbers only streams with new data; here a stream keeps
//! its number, and each of its losses is reported once.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use lateralis_model::{Interval, Loss, LossCause, Source, StreamIndex, StreamSummary};
use lateralis_units::Nanos;

/// Streams with permanent numbers; see the module's description.
#[derive(Default)]
pub struct Streams {
    ids: HashMap<String, u32>,
    all: Vec<Stream>,
}

#[derive(Default)]
struct Stream {
    name: String,
    cpu: Option<u32>,
    /// Number of all reported lost events by cause.
    lost: BTreeMap<LossCause, u64>,
    /// Sequence number of the next packet, if packets are numbered.
    next: Option<u64>,
    /// End time of the last packet.
    end: Option<Nanos>,
}

impl Streams {
    /// Permanent numbers of the streams of a round.
    pub fn of(&self, streams: &[StreamSummary]) -> Vec<StreamIndex> {
        let id = |stream: &StreamSummary| self.ids.get(&stream.name).copied().unwrap_or(0);
        streams.iter().map(|stream| StreamIndex(id(stream))).collect()
    }

    /// Converts flags of the streams of a round to flags by permanent number; false for other streams.
    pub fn by_kept_number(&self, streams: &[StreamSummary], of_round: &[bool]) -> Vec<bool> {
        let mut all = vec![false; self.all.len()];
        for (id, is) in self.of(streams).into_iter().zip(of_round) {
            if let Some(place) = all.get_mut(id.0 as usize) {
                *place = *is;
            }
        }
        all
    }

    /// Names of all streams.
    pub fn names(&self) -> Vec<String> {
        self.all.iter().map(|stream| stream.name.clone()).collect()
    }

    /// The CPU of all events of a stream.
    pub fn cpu(&self, stream: StreamIndex) -> Option<u32> {
        self.all.get(stream.0 as usize)?.cpu
    }

    /// Returns losses that no earlier round reported; streams have their permanent numbers.
    pub fn round(&mut self, source: &dyn Source, streams: &[StreamSummary]) -> Vec<Loss> {
        for stream in streams {
            let next = self.all.len() as u32;
            let id = *self.ids.entry(stream.name.clone()).or_insert(next);
            if id == next {
                let (name, cpu) = (stream.name.clone(), stream.cpu.map(|cpu| cpu.0));
                self.all.push(Stream { name, cpu, ..Stream::default() });
            }
        }
        let ids = self.of(streams);
        let mut found = Vec::new();
        self.counted(source, &ids, &mut found);
        self.numbered(source, &ids, &mut found);
        found
    }

    /// Finds losses by the packets' counters, which count from the start of the stream.
    fn counted(&mut self, source: &dyn Source, ids: &[StreamIndex], found: &mut Vec<Loss>) {
        let mut sums: BTreeMap<(u32, LossCause), u64> = BTreeMap::new();
        for loss in source.losses().iter().filter(|loss| loss.cause != LossCause::Packets) {
            let (Some(id), Some(count)) = (ids.get(loss.stream.0 as usize), loss.count) else {
                continue;
            };
            let Some(stream) = self.all.get_mut(id.0 as usize) else { continue };
            let sum = sums.entry((id.0, loss.cause)).or_default();
            let is_first = *sum == 0;
            *sum = sum.saturating_add(count);
            let known = stream.lost.entry(loss.cause).or_default();
            let new = sum.saturating_sub(*known);
            if new > 0 {
                *known = *sum;
                // The first packet of the round counts losses since the last packet of the previous round.
                let begin = stream.end.filter(|_| is_first).or(loss.interval.begin);
                let interval = Interval { begin, ..loss.interval }.ordered();
                found.push(Loss { stream: *id, cause: loss.cause, count: Some(new), interval });
            }
        }
    }

    /// Finds losses by gaps in the sequence numbers of packets.
    fn numbered(&mut self, source: &dyn Source, ids: &[StreamIndex], found: &mut Vec<Loss>) {
        let all = &mut self.all;
        let _ = source.packets(&mut |stream, _, packet, interval| {
            let id = ids.get(stream.0 as usize).copied().unwrap_or_default();
            let Some(stream) = all.get_mut(id.0 as usize) else { return ControlFlow::Continue(()) };
            if let Some(number) = packet.sequence {
                let next = stream.next.unwrap_or(0);
                if number > next {
                    let interval = Interval { begin: stream.end, end: interval.begin }.ordered();
                    let (cause, count) = (LossCause::Packets, Some(number - next));
                    found.push(Loss { stream: id, cause, count, interval });
                }
                stream.next = Some(next.max(number.saturating_add(1)));
            }
            stream.end = stream.end.max(interval.end);
            ControlFlow::Continue(())
        });
    }
}
