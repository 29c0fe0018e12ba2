// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets passed between the kernel and its network devices.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_model::{Event, EventClass, Host, StreamIndex, Writer};
use lateralis_units::Nanos;

use super::fields;
use crate::facts::At;

/// Step of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PacketStep {
    /// Put into the queue of a device.
    Queued,
    /// Accepted by the driver.
    Sent,
    /// Not accepted by the driver; it is retried or lost.
    Refused,
    /// Received, and waiting for a CPU to process it.
    Backlogged,
    /// Received, and being processed.
    Received,
}

impl PacketStep {
    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sent => "sent",
            Self::Refused => "refused",
            Self::Backlogged => "backlogged",
            Self::Received => "received",
        }
    }
}

/// One step of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevicePacket {
    /// Stream.
    pub stream: StreamIndex,
    /// Time.
    pub time: Nanos,
    /// CPU.
    pub cpu: Option<u32>,
    /// Thread; for a received packet, the interrupted one.
    pub writer: Option<Writer>,
    /// Index into [`NetworkDevices::names`].
    pub device: u32,
    /// The step.
    pub step: PacketStep,
    /// Its length in the kernel: without the link-layer header for received packets.
    pub bytes: u64,
}

/// Meaning of the events of a class.
#[derive(Debug)]
pub struct PacketRule {
    step: PacketStep,
    host: Host,
    device: usize,
    bytes: usize,
    result: Option<usize>,
}

/// Names of network devices.
#[derive(Debug, Default)]
pub struct NetworkDevices {
    names: Vec<String>,
    numbers: HashMap<(Host, String), u32, RandomState>,
    left_out: u64,
}

/// Rule of a class, if its events concern packets.
pub(super) fn rule(class: &EventClass, host: Host) -> Option<PacketRule> {
    // LTTng writes `net_if_…` instead of the kernel's `netif_…`.
    let last = class.name.rsplit(':').next()?;
    let step = match last {
        "net_dev_queue" => PacketStep::Queued,
        "net_dev_xmit" => PacketStep::Sent,
        "netif_rx" | "net_if_rx" => PacketStep::Backlogged,
        "netif_receive_skb" | "net_if_receive_skb" => PacketStep::Received,
        _ => return None,
    };
    Some(PacketRule {
        step,
        host,
        device: fields::place(class, &["name"])?,
        bytes: fields::place(class, &["len"])?,
        result: fields::place(class, &["rc"]).filter(|_| step == PacketStep::Sent),
    })
}

impl NetworkDevices {
    /// Devices that are counted separately.
    pub const DEVICES_MAX: usize = 1 << 12;

    /// Number of packets of other devices.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Devices by the numbers in [`DevicePacket::device`].
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn packet(
        &mut self,
        rule: &PacketRule,
        event: &Event<'_>,
        at: &At,
    ) -> Option<DevicePacket> {
        let name = fields::field(event, rule.device)?.as_text()?.into_owned();
        let device = self.device(rule.host, name)?;
        // 0 is NETDEV_TX_OK [include/linux/netdevice.h].
        let is_refused =
            fields::number(event, rule.result).is_some_and(|result| result as u32 != 0);
        let step = if is_refused { PacketStep::Refused } else { rule.step };
        let bytes = fields::number(event, Some(rule.bytes))?;
        let At { time, stream, cpu, writer, .. } = *at;
        Some(DevicePacket { stream, time, cpu, writer, device, step, bytes })
    }

    fn device(&mut self, host: Host, name: String) -> Option<u32> {
        let key = (host, name);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        if self.names.len() >= Self::DEVICES_MAX {
            self.left_out += 1;
            return None;
        }
        let number = self.names.len() as u32;
        self.names.push(key.1.clone());
        self.numbers.insert(key, number);
        Some(number)
    }
}
