// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report of a copy: that of the server, without packets that did not arrive.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use lateralis_ring::{PacketHeader, abi};

use super::received_files::Received;
use crate::linux::recording::sum;
use crate::report::{self, ByteOrder, Report};
use crate::walk::RecordPlan;

/// Recomputes streams, totals and events from the files under `root`. Done if packets were
/// dropped; otherwise the server's numbers are correct. So packets dropped without a connection, of
/// which the server counts only packets and bytes, are known in events, too. Cost: reads all files once.
pub(super) fn recount(root: &Path, report: &mut Report, files: &[Received]) {
    let swapped = (report.byte_order == ByteOrder::Big) != cfg!(target_endian = "big");
    let plans = plans(report, swapped);
    let mut names = BTreeMap::new();
    let Report { streams, received, complete, .. } = report;
    for stream in streams {
        let written = stream.events;
        let dropped = files.iter().filter(|file| stream.files.contains(&path_of(file)));
        let dropped = dropped.fold(0, |sum, file| sum + file.dropped.packets);
        stream.lost_packets = stream.lost_packets.saturating_add(dropped);
        (stream.packets, stream.bytes, stream.events, stream.internal_events) = (0, 0, 0, 0);
        for file in &stream.files {
            let Ok(bytes) = std::fs::read(root.join(file)) else { continue };
            let mut at = 0;
            while let Some(first) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
                let header = PacketHeader::decode(first, swapped);
                let end = at.saturating_add((header.packet_bits / 8) as usize);
                // Only complete packets were appended.
                let Some(packet) = bytes.get(at..end).filter(|packet| !packet.is_empty()) else {
                    break;
                };
                at = end;
                stream.packets += 1;
                stream.bytes += packet.len() as u64;
                let Some((plan, of)) = plans.get(&header.stream_id) else { continue };
                let slack = (header.packet_bits - header.content_bits) / 8;
                let records = &packet[abi::PACKET_HEADER_BYTES as usize..];
                let times = header.timestamp_begin..=header.timestamp_end;
                let mut counts = Vec::new();
                let walked = plan.walk(records, slack, times, &mut counts);
                stream.events += walked.events;
                stream.internal_events += walked.internal_events;
                for (id, count) in counts.into_iter().enumerate().filter(|(_, count)| *count != 0) {
                    if let Some(name) = of.get(&(id as u32)) {
                        *names.entry(name.clone()).or_insert(0) += count;
                    }
                }
            }
        }
        // The numbers of a recording in progress are older than its packets.
        if let Some(received) = received.as_mut().filter(|_| *complete) {
            let missing = written.saturating_sub(stream.events);
            know_events(&mut received.dropped_of, &stream.files, missing);
        }
    }
    report.events = names;
    sum(report);
}

/// Assigns the missing events of a stream to the one of its files with dropped packets whose events are
/// unknown. With several such files the distribution stays unknown.
fn know_events(dropped_of: &mut [report::LiveStreamCount], files: &[String], missing: u64) {
    let of_stream = dropped_of.iter_mut().filter(|one| files.contains(&one.file));
    let (known, mut unknown): (Vec<_>, Vec<_>) =
        of_stream.partition(|one| one.count.events.is_some());
    let counted: u64 = known.iter().filter_map(|one| one.count.events).sum();
    if let [one] = &mut unknown[..] {
        one.count.events = Some(missing.saturating_sub(counted));
    }
}

pub(super) fn path_of(file: &Received) -> String {
    match file.folder {
        lateralis_live::Folder::Ctf => format!("ctf/{}", file.name),
        lateralis_live::Folder::Unreadable => format!("unreadable/{}", file.name),
    }
}

/// Layouts and event names of the stream classes.
fn plans(report: &Report, swapped: bool) -> HashMap<u32, (RecordPlan, BTreeMap<u32, String>)> {
    let internal = lateralis_pleco::internal_schema();
    let mut plans = HashMap::new();
    for class in &report.stream_classes {
        let mut plan = RecordPlan::new(swapped);
        let mut names: BTreeMap<u32, String> = BTreeMap::new();
        for event in &internal.events {
            names.insert(event.index, internal.full_name(event));
        }
        for entry in &class.schemas {
            let text = entry.text.as_bytes();
            let Some(schema) = lateralis_pleco::compile("schema.pleco", text).schema else {
                continue;
            };
            plan.add(entry.base_id, &schema);
            for event in &schema.events {
                names.insert(entry.base_id.saturating_add(event.index), schema.full_name(event));
            }
        }
        plans.insert(class.id, (plan, names));
    }
    plans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_file_lost_while_nobody_was_connected_is_what_is_missing() {
        let of = |file: &str, events| report::LiveStreamCount {
            file: file.to_owned(),
            count: report::LiveCount { packets: 1, bytes: 1, events },
        };
        let files = ["a".to_owned(), "b".to_owned()];
        let mut dropped = [of("a", Some(3)), of("b", None), of("c", None)];
        know_events(&mut dropped, &files, 10);
        let events: Vec<_> = dropped.iter().map(|one| one.count.events).collect();
        assert_eq!(events, [Some(3), Some(7), None]);
        let mut dropped = [of("a", None), of("b", None)];
        know_events(&mut dropped, &files, 10);
        assert!(dropped.iter().all(|one| one.count.events.is_none()));
    }
}
