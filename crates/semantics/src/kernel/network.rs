// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets as the kernel hands them to network devices and takes them from there.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_model::{Event, EventClass, Host, StreamIndex, Writer};
use lateralis_units::Nanos;

use super::fields;
use crate::facts::At;

/// What happened to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PacketStep {
    /// It is given to the queue of a device.
    Queued,
    /// The driver has taken it.
    Sent,
    /// The driver has not taken it; it is tried again, or lost.
    Refused,
    /// It came, and waits for a processor to handle it.
    Backlogged,
    /// It came, and is handled.
    Received,
}

impl PacketStep {
    /// The word used in tables.
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

/// One packet at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevicePacket {
    /// In which stream.
    pub stream: StreamIndex,
    /// When.
    pub time: Nanos,
    /// On which processor.
    pub cpu: Option<u32>,
    /// In which thread; of one that came, whichever was interrupted.
    pub writer: Option<Writer>,
    /// Index into [`NetworkDevices::names`].
    pub device: u32,
    /// What happened.
    pub step: PacketStep,
    /// Its length as the kernel has it: without the header of the link where it came.
    pub bytes: u64,
}

/// What events of a class say of packets.
#[derive(Debug)]
pub struct PacketRule {
    step: PacketStep,
    host: Host,
    device: usize,
    bytes: usize,
    result: Option<usize>,
}

/// Names of devices.
#[derive(Debug, Default)]
pub struct NetworkDevices {
    names: Vec<String>,
    numbers: HashMap<(Host, String), u32, RandomState>,
    left_out: u64,
}

/// What events of a class say, if anything.
pub(super) fn rule(class: &EventClass, host: Host) -> Option<PacketRule> {
    // LTTng writes `net_if_…` where the kernel has `netif_…`.
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

    /// Devices by the numbers of [`DevicePacket::device`].
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
