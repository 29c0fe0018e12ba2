// SPDX-License-Identifier: Apache-2.0 OR MIT
//! pcapng: sections, their interfaces, their packets.

use std::collections::BTreeMap;

use lateralis_model::{
    DamageReason, EnvValue, Full, Interval, Loss, LossCause, MemoryTrace, StreamIndex,
};
use lateralis_units::Nanos;

use crate::blocks::{self, Block, Fault, Options, Order};
use crate::interface::Resolution;
use crate::sink::{Packet, Sink, Timing};

pub(crate) fn sniff(first: &[u8]) -> bool {
    let magic = Order::Little.u32(first, 8);
    Order::Little.u32(first, 0) == Some(blocks::SECTION)
        && magic.is_some_and(|magic| {
            magic == blocks::BYTE_ORDER_MAGIC || magic.swap_bytes() == blocks::BYTE_ORDER_MAGIC
        })
}

pub(crate) fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> MemoryTrace {
    let mut reader = Reader {
        file: name,
        sink: Sink::new("pcapng", name, limit_bytes),
        order: Order::Little,
        section: 0,
        skip: None,
        interfaces: Vec::new(),
        unread: BTreeMap::new(),
    };
    let mut at = 0;
    while at < bytes.len() {
        at = match Block::at(bytes, at, reader.order) {
            Ok(block) => match reader.block(at, &block) {
                Ok(()) => at + block.total_bytes,
                Err(Full) => {
                    reader.sink.builder.remark(format!(
                        "{name}: the limit of memory is reached at byte {at}; the rest is not read"
                    ));
                    break;
                }
            },
            Err(fault) => reader.skip_damage(bytes, at, fault),
        };
    }
    reader.finish()
}

struct Interface {
    name: String,
    link_type: u16,
    snap_bytes: u32,
    timing: Timing,
    stream: StreamIndex,
    /// Time of its last packet.
    last: Option<Nanos>,
    /// Losses already reported packet by packet.
    told: u64,
    /// Losses of its statistics so far.
    counted: u64,
    /// End of the interval of the statistics before.
    counted_until: Option<Nanos>,
}

struct Reader<'a> {
    file: &'a str,
    sink: Sink,
    order: Order,
    /// Number of the section, from 1.
    section: u32,
    /// Why packets of this section are not read: what took away its interfaces.
    skip: Option<&'static str>,
    interfaces: Vec<Interface>,
    /// Blocks that are not read, by type.
    unread: BTreeMap<u32, u64>,
}

const BODY: &str = "a block is long enough for the fields of its type";

impl Reader<'_> {
    fn skip_damage(&mut self, bytes: &[u8], at: usize, fault: Fault) -> usize {
        let begun = blocks::section_order(&bytes[at..]);
        if let (Some(blocks::SECTION), Ok(order)) = (self.order.u32(bytes, at), begun) {
            // Only the frame is bad: a section begins here all the same.
            self.begin_section(order);
        }
        let next = blocks::resync(bytes, at, self.order);
        let reason = match fault {
            Fault::Ends(missing_bytes) if next == bytes.len() => {
                DamageReason::Truncated { missing_bytes }
            }
            Fault::Ends(_) => DamageReason::BadValue { rule: "a block ends before the file" },
            Fault::Rule(rule) => DamageReason::BadValue { rule },
        };
        self.sink.damage(at, next, reason);
        // Numbers of interfaces count from the begin of their section; if that was
        // among the bad bytes, the table here is another section's.
        let section = blocks::SECTION.to_le_bytes();
        let interface = |word: &[u8]| word == [1, 0, 0, 0] || word == [0, 0, 0, 1];
        if bytes[next.min(at + 4)..next].windows(4).any(|word| word == section) {
            self.skip = Some("the interfaces of its section are known");
        } else if interface(&bytes[at..next.min(at + 4)]) && next < bytes.len() {
            self.sink.builder.remark(format!(
                "{}: byte {at}: an interface may be lost: names of interfaces defined later in \
                 section {} are uncertain",
                self.file, self.section
            ));
        }
        next
    }

    fn block(&mut self, at: usize, block: &Block<'_>) -> Result<(), Full> {
        let end = at + block.total_bytes;
        let body = block.body;
        let read = match block.kind {
            blocks::SECTION => self.section(block),
            _ if self.section == 0 => Err("a block lies in a section"),
            blocks::INTERFACE => self.interface(body)?,
            blocks::PACKET => self.packet(body)?,
            blocks::OLD_PACKET => self.old_packet(body)?,
            blocks::SIMPLE_PACKET => self.simple_packet(body)?,
            blocks::STATISTICS => self.statistics(body),
            blocks::NAMES => self.names(body),
            other => {
                *self.unread.entry(other).or_default() += 1;
                Ok(())
            }
        };
        if let Err(rule) = read {
            self.sink.damage(at, end, DamageReason::BadValue { rule });
        }
        Ok(())
    }

    fn begin_section(&mut self, order: Order) {
        self.order = order;
        self.section = self.section.saturating_add(1);
        self.interfaces.clear();
        self.skip = None;
    }

    fn section(&mut self, block: &Block<'_>) -> Result<(), &'static str> {
        self.begin_section(block.order);
        if self.order.u16(block.body, 4) != Some(1) {
            self.skip = Some("the version of its section is 1");
            return Err("the version of a section is 1");
        }
        let mut options = Options::new(self.order, block.body, 16);
        for (code, value) in options.by_ref() {
            let key = match code {
                1 => "comment",
                2 => "hardware",
                3 => "os",
                4 => "application",
                _ => continue,
            };
            // The first section speaks for the file.
            let key = match self.section {
                1 => key.to_owned(),
                section => format!("section.{section}.{key}"),
            };
            self.sink.describe(key, EnvValue::Text(blocks::text(value)));
        }
        check(&options)
    }

    fn interface(&mut self, body: &[u8]) -> Result<Result<(), &'static str>, Full> {
        let (Some(link_type), Some(snap_bytes)) =
            (self.order.u16(body, 0), self.order.u32(body, 4))
        else {
            return Ok(Err(BODY));
        };
        let mut name = None;
        let mut resolution = Resolution::MICROSECONDS;
        let mut offset_seconds = 0i64;
        let mut told: Vec<(&str, String)> = Vec::new();
        let mut options = Options::new(self.order, body, 8);
        for (code, value) in options.by_ref() {
            match (code, value) {
                (2, value) => name = Some(blocks::text(value)).filter(|name| !name.is_empty()),
                (9, [byte, ..]) => resolution = Resolution::from_byte(*byte),
                (14, value) => offset_seconds = self.order.u64(value, 0).unwrap_or(0) as i64,
                (1, value) => told.push(("comment", blocks::text(value))),
                (3, value) => told.push(("description", blocks::text(value))),
                (12, value) => told.push(("os", blocks::text(value))),
                (15, value) => told.push(("hardware", blocks::text(value))),
                _ => {}
            }
        }
        let number = self.interfaces.len();
        let name = name.unwrap_or_else(|| match self.section {
            1 => format!("interface {number}"),
            section => format!("interface {number} of section {section}"),
        });
        let timing = self.sink.timing(resolution, offset_seconds);
        let stream = self.sink.stream(timing, &name).ok_or(Full)?;
        let key = |what: &str| format!("interface.{name}.{what}");
        self.sink.describe(key("link_type"), EnvValue::Integer(link_type.into()));
        for (what, text) in told {
            self.sink.describe(key(what), EnvValue::Text(text));
        }
        self.interfaces.push(Interface {
            name,
            link_type,
            snap_bytes,
            timing,
            stream,
            last: None,
            told: 0,
            counted: 0,
            counted_until: None,
        });
        Ok(check(&options))
    }

    fn packet(&mut self, body: &[u8]) -> Result<Result<(), &'static str>, Full> {
        let order = self.order;
        let fields = || {
            let raw = order.split_u64(body, 4)?;
            Some((order.u32(body, 0)?, raw, order.u32(body, 12)?, order.u32(body, 16)?))
        };
        let Some((interface, raw, captured, original)) = fields() else {
            return Ok(Err(BODY));
        };
        self.timed(body, interface, raw, captured, original, 0)
    }

    fn old_packet(&mut self, body: &[u8]) -> Result<Result<(), &'static str>, Full> {
        let order = self.order;
        let fields = || {
            let (interface, drops) = (order.u16(body, 0)?, order.u16(body, 2)?);
            let raw = order.split_u64(body, 4)?;
            Some((interface.into(), drops, raw, order.u32(body, 12)?, order.u32(body, 16)?))
        };
        let Some((interface, drops, raw, captured, original)) = fields() else {
            return Ok(Err(BODY));
        };
        // All ones says that nothing is known.
        let drops = if drops == u16::MAX { 0 } else { drops.into() };
        self.timed(body, interface, raw, captured, original, drops)
    }

    fn timed(
        &mut self,
        body: &[u8],
        number: u32,
        raw: u64,
        captured: u32,
        original: u32,
        mut drops: u64,
    ) -> Result<Result<(), &'static str>, Full> {
        let captured = captured as usize;
        let Some(data) = body.get(20..).and_then(|data| data.get(..captured)) else {
            return Ok(Err("the bytes of a packet lie in its block"));
        };
        let (mut flags, mut comment) = (0, None::<String>);
        let mut options = Options::new(self.order, body, 20 + captured.next_multiple_of(4));
        for (code, value) in options.by_ref() {
            match code {
                1 => match &mut comment {
                    Some(comment) => {
                        comment.push('\n');
                        comment.push_str(&blocks::text(value));
                    }
                    None => comment = Some(blocks::text(value)),
                },
                2 => flags = self.order.u32(value, 0).unwrap_or(0),
                4 => drops = self.order.u64(value, 0).unwrap_or(0),
                _ => {}
            }
        }
        if let Some(rule) = self.skip {
            return Ok(Err(rule));
        }
        let Some(interface) = self.interfaces.get_mut(number as usize) else {
            return Ok(Err("the interface of a packet is defined before it"));
        };
        let packet = Packet {
            interface: &interface.name,
            link_type: interface.link_type,
            original_bytes: original,
            flags,
            comment: comment.as_deref(),
            data,
        };
        self.sink.packet(interface.stream, Some((interface.timing, raw)), &packet)?;
        let now = self.sink.nanos(interface.timing, raw);
        if drops > 0 {
            interface.told = interface.told.saturating_add(drops);
            self.sink.builder.loss(Loss {
                stream: interface.stream,
                cause: LossCause::Discarded,
                count: Some(drops),
                interval: Interval {
                    begin: interface.last.filter(|&last| last <= now),
                    end: Some(now),
                },
            });
        }
        interface.last = Some(now);
        Ok(check(&options))
    }

    fn simple_packet(&mut self, body: &[u8]) -> Result<Result<(), &'static str>, Full> {
        let Some(original) = self.order.u32(body, 0) else {
            return Ok(Err(BODY));
        };
        if let Some(rule) = self.skip {
            return Ok(Err(rule));
        }
        let Some(interface) = self.interfaces.first() else {
            return Ok(Err("the interface of a packet is defined before it"));
        };
        let limit = if interface.snap_bytes == 0 { u32::MAX } else { interface.snap_bytes };
        let Some(data) = body[4..].get(..original.min(limit) as usize) else {
            return Ok(Err("the bytes of a packet lie in its block"));
        };
        let packet = Packet {
            interface: &interface.name,
            link_type: interface.link_type,
            original_bytes: original,
            data,
            ..Packet::default()
        };
        let stream = self.sink.untimed_stream(&interface.name).ok_or(Full)?;
        self.sink.packet(stream, None, &packet)?;
        Ok(Ok(()))
    }

    /// Counts of lost packets since the capture began; losses already reported by packets are not
    /// reported again.
    fn statistics(&mut self, body: &[u8]) -> Result<(), &'static str> {
        let (Some(number), Some(raw)) = (self.order.u32(body, 0), self.order.split_u64(body, 4))
        else {
            return Err(BODY);
        };
        if let Some(rule) = self.skip {
            return Err(rule);
        }
        let Some(interface) = self.interfaces.get_mut(number as usize) else {
            return Err("the interface of statistics is defined before them");
        };
        let (mut begin, mut end, mut lost) = (None, None, 0u64);
        let mut options = Options::new(self.order, body, 12);
        for (code, value) in options.by_ref() {
            match code {
                2 => begin = self.order.split_u64(value, 0),
                3 => end = self.order.split_u64(value, 0),
                // Dropped by the interface, dropped by the operating system.
                5 | 7 => lost = lost.saturating_add(self.order.u64(value, 0).unwrap_or(0)),
                _ => {}
            }
        }
        let new = lost.saturating_sub(interface.counted).saturating_sub(interface.told);
        let timing = interface.timing;
        let until = self.sink.nanos(timing, end.unwrap_or(raw));
        if new > 0 {
            let begin = begin.map(|raw| self.sink.nanos(timing, raw));
            let begin = interface.counted_until.or(begin).filter(|&begin| begin <= until);
            self.sink.builder.loss(Loss {
                stream: interface.stream,
                cause: LossCause::Discarded,
                count: Some(new),
                interval: Interval { begin, end: Some(until) },
            });
        }
        interface.told = interface.told.saturating_sub(lost.saturating_sub(interface.counted));
        interface.counted = interface.counted.max(lost);
        interface.counted_until = Some(until);
        check(&options)
    }

    /// Names of addresses.
    fn names(&mut self, body: &[u8]) -> Result<(), &'static str> {
        for (kind, value) in Options::new(self.order, body, 0) {
            let address_bytes = match kind {
                1 => 4,
                2 => 16,
                _ => continue,
            };
            let Some((address, names)) = value.split_at_checked(address_bytes) else {
                return Err("a name record holds an address");
            };
            let address = match <[u8; 4]>::try_from(address) {
                Ok(four) => core::net::Ipv4Addr::from(four).to_string(),
                Err(_) => {
                    let mut sixteen = [0; 16];
                    sixteen.copy_from_slice(address);
                    core::net::Ipv6Addr::from(sixteen).to_string()
                }
            };
            let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
            for name in names {
                self.sink.describe(format!("host.{address}"), EnvValue::Text(blocks::text(name)));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> MemoryTrace {
        let mut other = 0;
        for (kind, count) in std::mem::take(&mut self.unread) {
            let what = match kind {
                blocks::SECRETS => "decryption secrets",
                blocks::JOURNAL => "systemd journal entries",
                blocks::CUSTOM | blocks::CUSTOM_NO_COPY => "custom blocks",
                _ => {
                    other += count;
                    continue;
                }
            };
            self.sink
                .builder
                .remark(format!("{}: {count} blocks of {what} are not read", self.file));
        }
        if other > 0 {
            let remark = format!("{}: {other} blocks of unknown types are not read", self.file);
            self.sink.builder.remark(remark);
        }
        self.sink.finish()
    }
}

fn check(options: &Options<'_>) -> Result<(), &'static str> {
    if options.broken() { Err("an option lies in its block") } else { Ok(()) }
}
