// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks that `docs/reference/report-json.md` names every field of `report.json`.

use std::collections::BTreeMap;
use std::path::Path;

use lateralis_recorder::clock::{ClockSample, FrequencySource};
use lateralis_recorder::report::*;

fn full_report() -> Report {
    let text = String::new;
    let sample = ClockSample::default();
    let interval = LossInterval { from_ns: 0, to_ns: 1, lost: Losses::default() };
    let damage = Damage { packet_sequence: 1, dropped_bytes: 2, reason: text() };
    let count = LiveCount { packets: 1, bytes: 2, events: None };
    let schema = ClassSchema { base_id: 16, text: text() };
    Report {
        report_version: REPORT_VERSION,
        tool_version: text(),
        complete: true,
        origin: Origin::Recorded,
        trace_uuid: text(),
        command: Some(Command { arguments: vec![], exit_status: Some(0), signal: None }),
        processes: vec![Process {
            pid: 1,
            parent_pid: 0,
            pid_in_namespace: Some(2),
            area_id: text(),
            exe: text(),
            name: text(),
            arguments: vec![],
            build_id: None,
            seen_ns: 0,
            ended_ns: None,
        }],
        clock: Some(Clock {
            kind: text(),
            frequency_hz: 1,
            frequency_source: FrequencySource::Cpuid,
            offset_s: 0,
            offset_ticks: 0,
            error_ns: 0,
            start: Some(sample),
            end: Some(sample),
            cores: vec![CoreOffset { cpu: 1, reference_cpu: 0, offset_ticks: -1, error_ticks: 2 }],
        }),
        streams: vec![Stream {
            files: vec![],
            area_id: text(),
            ring: 0,
            cpu: None,
            packets: 0,
            bytes: 0,
            events: 0,
            internal_events: 0,
            lost: Losses::default(),
            intervals: vec![interval],
            lost_packets: 0,
            not_written: 0,
            damaged_packets: 0,
            damages: vec![damage],
            backward_steps: 0,
            unreadable: false,
        }],
        areas: vec![Area {
            area_id: text(),
            ring_kind: text(),
            mode: text(),
            packet_bytes: 0,
            packets_per_ring: 0,
            lost_no_ring: 0,
            lost_schemas: 0,
            schemas: vec![],
            filters: vec![],
            left_out: 0,
            left_out_of_threads: 0,
            disabled: vec![],
            disabled_in_part: vec![],
            output: Some(text()),
        }],
        sources: vec![Source {
            name: text(),
            area_id: text(),
            schemas: vec![],
            details: BTreeMap::new(),
            lost: BTreeMap::new(),
        }],
        totals: Totals::default(),
        events: BTreeMap::new(),
        problems: vec![],
        throughput: Throughput::default(),
        stream_classes: vec![StreamClass { id: 0, ring_kind: text(), schemas: vec![schema] }],
        byte_order: ByteOrder::Little,
        live: Some(Live {
            address: Some(text()),
            fingerprint: Some(text()),
            window_bytes: 1,
            refused: 0,
            clients: vec![LiveClient {
                peer: text(),
                stayed: true,
                sent: count,
                dropped: count,
                dropped_of: vec![LiveStreamCount { file: text(), count }],
            }],
        }),
        received: Some(Received {
            from: text(),
            connections: 1,
            dropped_of: vec![],
            clock: Some(ReceivedClock { offset_ns: -1, error_ns: 2 }),
            exchanges: Some(Exchanges {
                their_clock: text(),
                our_clock: text(),
                our_clock_uuid: None,
                our_frequency_hz: 1,
                our_offset_s: 0,
                our_offset_ticks: 0,
                made: 1,
                listed: vec![[0; 4]],
            }),
        }),
        kept: Some(KeptWindow {
            reasons: vec![KeptReason { value: Some(7.into()), ..KeptReason::default() }],
            ..KeptWindow::default()
        }),
        switched: vec![Switched::default()],
        triggers: Some(Triggers {
            rules: vec![TriggerRule::default()],
            firings: vec![Fired {
                done: vec![Done {
                    action: text(),
                    outcome: Outcome::Done,
                    begun_ns: 0,
                    took_ns: Some(1),
                    exit_status: Some(0),
                    cause: Some(text()),
                }],
                ..Fired::default()
            }],
            ..Triggers::default()
        }),
        outputs: vec![PolicyOutput { path: text(), complete: true, totals: Totals::default() }],
        flushes: Some(Flushes::default()),
        unrecorded: vec![Unrecorded {
            cause: UnrecordedCause::Stopped,
            from_ns: 0,
            to_ns: Some(1),
            reason: Some(text()),
        }],
        not_recorded: vec![NotRecorded {
            program: text(),
            pid: None,
            reason: NotRecordedReason::NeverRegistered,
            detail: text(),
            count: 2,
        }],
        not_recorded_total: 2,
        made_chunks: 2,
        removed_chunks: 1,
    }
}

fn fields(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (name, inner) in map {
                found.push(name.clone());
                fields(inner, found);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        _ => {}
    }
}

#[test]
fn every_field_is_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/report-json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let report = full_report();
    assert_eq!(Report::from_json(&report.to_json()).unwrap(), report);
    let mut found = Vec::new();
    fields(&serde_json::from_str(&report.to_json()).unwrap(), &mut found);
    assert!(found.len() > 60);
    for name in found {
        assert!(page.contains(&format!("`{name}`")), "report-json.md does not name `{name}`");
    }
}

#[test]
fn every_field_of_the_list_of_windows_is_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/report-json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let list = KeptList { windows: vec![KeptWindow::default()], ..KeptList::default() };
    assert_eq!(KeptList::from_json(&list.to_json()).unwrap(), list);
    let mut found = Vec::new();
    fields(&serde_json::from_str(&list.to_json()).unwrap(), &mut found);
    for name in found {
        assert!(page.contains(&format!("`{name}`")), "report-json.md does not name `{name}`");
    }
}
