// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets and bytes by network device.

use std::collections::BTreeMap;

use lateralis_semantics::kernel::network::{DevicePacket, NetworkDevices, PacketStep};
use serde_json::{Value, json};

use super::left_out::LeftOut;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section};
use crate::table::{Align, Table};
use crate::values;

/// What happens to packets, in the order of the table.
const STEPS: [PacketStep; 5] = [
    PacketStep::Queued,
    PacketStep::Sent,
    PacketStep::Refused,
    PacketStep::Backlogged,
    PacketStep::Received,
];

/// All packets: how many, and how many bytes, by device and step.
#[derive(Debug, Default)]
pub struct NetworkTotals {
    devices: BTreeMap<u32, BTreeMap<PacketStep, (u64, u64)>>,
}

impl NetworkTotals {
    /// One more.
    pub fn add(&mut self, packet: &DevicePacket) {
        let of = self.devices.entry(packet.device).or_default().entry(packet.step).or_default();
        of.0 += 1;
        of.1 = of.1.saturating_add(packet.bytes);
    }

    /// Packets that are left out.
    pub fn left_out(devices: &NetworkDevices) -> LeftOut {
        LeftOut {
            member: "network",
            section: Section::Network,
            what: "packets",
            of: "devices",
            most: NetworkDevices::DEVICES_MAX as u64,
            count: devices.left_out(),
        }
    }

    fn of(of: &BTreeMap<PacketStep, (u64, u64)>, step: PacketStep) -> (u64, u64) {
        of.get(&step).copied().unwrap_or_default()
    }

    /// The member `network` of the whole, where there is any.
    pub fn json(&self, names: &[String], trust: Trust) -> Option<Value> {
        let row = |(device, of): (&u32, &BTreeMap<PacketStep, (u64, u64)>)| {
            let name = names.get(*device as usize).map(String::as_str);
            let mut row = Row::default().plain("device", name);
            for step in STEPS {
                let (count, bytes) = Self::of(of, step);
                row = row.number(step.name(), count, trust.sum).number(
                    &format!("{}_bytes", step.name()),
                    bytes,
                    trust.sum,
                );
            }
            row.value()
        };
        (!self.devices.is_empty()).then(|| json!(self.devices.iter().map(row).collect::<Vec<_>>()))
    }

    /// The table.
    pub fn page(&self, names: &[String], page: &mut Page<'_>) {
        use Align::{Left, Right};
        let mut table = Table::new(&[
            ("device", Left),
            ("queued", Right),
            ("sent", Right),
            ("bytes", Right),
            ("refused", Right),
            ("received", Right),
            ("bytes", Right),
        ]);
        for (device, of) in self.devices.iter().take(page.rows) {
            let of = |step| Self::of(of, step);
            let some = |number: u64, text: fn(u64) -> String| match number {
                0 => String::new(),
                _ => mark(text(number), page.trust.sum),
            };
            table.row([
                names.get(*device as usize).cloned().unwrap_or_default(),
                some(of(PacketStep::Queued).0, values::count),
                some(of(PacketStep::Sent).0, values::count),
                some(of(PacketStep::Sent).1, values::bytes),
                some(of(PacketStep::Refused).0, values::count),
                some(of(PacketStep::Received).0, values::count),
                some(of(PacketStep::Received).1, values::bytes),
            ]);
        }
        page.table(Section::Network, "network devices", &table, self.devices.len());
    }
}
