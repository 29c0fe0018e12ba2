// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Block devices: how many requests and bytes, how long they waited, how long the device took.

use std::collections::BTreeMap;

use lateralis_analysis::{Durations, Gaps};
use lateralis_semantics::kernel::block::{Device, Operation, Request, RequestStatus};
use serde_json::{Value, json};

use super::left_out::LeftOut;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section};
use crate::table::{Align, Table};
use crate::values;

/// Pairs of a device and an operation that are counted separately.
const DEVICES_MAX: usize = 1 << 12;

/// Requests to a device for one thing.
#[derive(Default)]
struct OfDevice {
    count: u64,
    bytes: u64,
    errors: u64,
    requeues: u64,
    queue: Durations,
    service: Durations,
    /// Complete ones whose time in a queue, or at the device, is unknown: they came to none, or that was
    /// not seen.
    not_queued: u64,
    not_timed: u64,
    touched: u64,
    unfinished: u64,
    missing: u64,
}

/// All devices.
#[derive(Default)]
pub struct BlockTotals {
    devices: BTreeMap<(Device, Operation), OfDevice>,
    merges: BTreeMap<Device, u64>,
    left_out: u64,
}

impl BlockTotals {
    /// Bytes were added to a request that was there.
    pub fn merge(&mut self, device: Device) {
        if self.merges.len() < DEVICES_MAX || self.merges.contains_key(&device) {
            *self.merges.entry(device).or_default() += 1;
        } else {
            self.left_out += 1;
        }
    }

    /// One more.
    pub fn add(&mut self, request: &Request, gaps: &Gaps) {
        let key = (request.device, request.operation);
        if self.devices.len() >= DEVICES_MAX && !self.devices.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let of = self.devices.entry(key).or_default();
        match request.status {
            RequestStatus::Complete => {}
            RequestStatus::Unfinished => return of.unfinished += 1,
            RequestStatus::Missing => return of.missing += 1,
        }
        of.count += 1;
        of.bytes = of.bytes.saturating_add(request.bytes);
        of.errors += u64::from(request.error != 0);
        of.requeues += u64::from(request.requeues);
        let end = request.completed.unwrap_or_default();
        let begin = request.inserted.or(request.issued).unwrap_or(end);
        if gaps.touch(begin.min(end), end) {
            of.touched += 1;
            return;
        }
        match request.queue_ns {
            Some(nanos) => of.queue.push(nanos),
            None => of.not_queued += 1,
        }
        match request.service_ns {
            Some(nanos) => of.service.push(nanos),
            None => of.not_timed += 1,
        }
    }

    /// Requests and merges that are left out.
    pub fn left_out(&self) -> LeftOut {
        LeftOut {
            member: "block",
            section: Section::Block,
            what: "requests and merges",
            of: "pairs of device and operation",
            most: DEVICES_MAX as u64,
            count: self.left_out,
        }
    }

    /// The member `block` of the whole, where there is any.
    pub fn json(&self, trust: Trust) -> Option<Value> {
        let row = |((device, operation), of): (&(Device, Operation), &OfDevice)| {
            let trust = trust.at_least(of.missing > 0);
            let mut row = Row::default()
                .plain("device", device.to_string())
                .plain("operation", operation.name())
                .number("requests", of.count, trust.sum)
                .number("bytes", of.bytes, trust.sum)
                .number("errors", of.errors, trust.sum)
                .number("requeues", of.requeues, trust.sum)
                .number(
                    "merges_of_device",
                    self.merges.get(device).copied().unwrap_or(0),
                    trust.sum,
                )
                .plain("not_queued", of.not_queued)
                .plain("not_timed", of.not_timed)
                .number("touched_by_losses", of.touched, trust.value)
                .plain("unfinished", of.unfinished)
                .plain("missing", of.missing);
            for (name, durations, unknown) in [
                ("queue", &of.queue, of.not_queued),
                ("service", &of.service, of.not_timed + of.unfinished),
            ] {
                let trust = trust.at_least(unknown > 0 && name == "service");
                if let Some(d) = durations.distribution() {
                    row = row
                        .number(&format!("{name}_count"), d.count, trust.sum)
                        .number(&format!("{name}_total_ns"), d.total, trust.sum)
                        .number(&format!("{name}_median_ns"), d.median, trust.value)
                        .number(&format!("{name}_p99_ns"), d.p99, trust.value)
                        .number(&format!("{name}_max_ns"), d.max, trust.sum);
                }
            }
            row.value()
        };
        (!self.devices.is_empty()).then(|| json!(self.devices.iter().map(row).collect::<Vec<_>>()))
    }

    /// The table.
    pub fn page(&self, page: &mut Page<'_>) {
        use Align::{Left, Right};
        let mut table = Table::new(&[
            ("device", Left),
            ("for", Left),
            ("requests", Right),
            ("bytes", Right),
            ("in queue: median", Right),
            ("max", Right),
            ("at device: median", Right),
            ("p99", Right),
            ("max", Right),
            ("errors", Right),
            ("unfinished", Right),
        ]);
        for ((device, operation), of) in self.devices.iter().take(page.rows) {
            let trust = page.trust.at_least(of.missing > 0);
            let of_service = trust.at_least(of.not_timed + of.unfinished > 0);
            let some = |number: u64| match number {
                0 => String::new(),
                _ => mark(values::count(number), trust.sum),
            };
            let mut row = vec![
                device.to_string(),
                operation.name().to_owned(),
                mark(values::count(of.count), trust.sum),
                mark(values::bytes(of.bytes), trust.sum),
            ];
            match of.queue.distribution() {
                Some(d) => row.extend([
                    mark(values::time(d.median), trust.value),
                    mark(values::time(d.max), trust.sum),
                ]),
                None => row.extend([String::new(), String::new()]),
            }
            match of.service.distribution() {
                Some(d) => row.extend([
                    mark(values::time(d.median), of_service.value),
                    mark(values::time(d.p99), of_service.value),
                    mark(values::time(d.max), of_service.sum),
                ]),
                None => row.extend([String::new(), String::new(), String::new()]),
            }
            row.extend([some(of.errors), some(of.unfinished + of.missing)]);
            table.row(row);
        }
        page.table(Section::Block, "block devices", &table, self.devices.len());
    }
}
