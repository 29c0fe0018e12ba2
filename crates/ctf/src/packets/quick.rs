// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets without irregularities, in traces whose packet headers have a constant layout. All
//! others are left to the [`Scanner`](super::Scanner), which also reports errors.

use lateralis_model::{FieldKind, Member, Packet, Trace, Uuid};
use lateralis_units::{CpuId, Ticks};

use super::{Found, LOSS_FIELDS, MAGIC};
use crate::metadata::{Role, TraceClass};
use crate::plan::{Head, Load, Plan};

/// Packet headers of a trace, if they are constant.
pub(super) struct Quick {
    header: Head,
    /// Of each stream class its id, and header with context.
    streams: Vec<(u64, Option<Stream>)>,
}

struct Stream {
    head: Head,
    cpu: Option<Load>,
    lost: Option<[Load; 4]>,
}

impl Quick {
    pub fn of(trace: &TraceClass, model: &Trace, plan: &Plan) -> Option<Self> {
        let header = Head::of(&plan.packet_header)?;
        let classes = plan.streams.iter().zip(&model.stream_classes).zip(&trace.streams);
        let stream = |((plan, class), stream): ((&crate::plan::StreamPlan, &_), &_)| {
            let class: &lateralis_model::StreamClass = class;
            let stream: &crate::metadata::StreamClass = stream;
            let members =
                class.packet_context.as_ref().map_or(&[][..], |context| context.members());
            let head = Head::of(&plan.packet).filter(|_| plan.readable);
            (stream.id, head.and_then(|head| Stream::of(head, header.fields.len(), members)))
        };
        let streams = classes.map(stream).collect();
        Some(Self { header, streams })
    }

    /// The packet at the start of `rest`, which may be followed by more: `length` bytes in total.
    pub fn packet(
        &self,
        (file, offset_bytes): (u32, u64),
        rest: &[u8],
        length: u64,
        expected: Option<Uuid>,
    ) -> Option<Found> {
        if !self.header.is_in(rest) {
            return None;
        }
        let is_magic = |magic| magic == u64::from(MAGIC);
        let id = self.header.role(Role::StreamClassId, rest);
        let class = match (id, self.streams.as_slice()) {
            (None, [_]) => 0,
            (id, streams) => streams.iter().position(|(of, _)| *of == id.unwrap_or(0))?,
        };
        let stream = self.streams[class].1.as_ref()?;
        let head = &stream.head;
        let role = |role| head.role(role, rest);
        let uuid = head.uuid(rest).map(Uuid);
        let is_foreign = uuid.is_some() && expected.is_some() && uuid != expected;
        if !head.is_in(rest) || is_foreign || !role(Role::Magic).is_none_or(is_magic) {
            return None;
        }
        let (content, size) = (role(Role::ContentSize), role(Role::PacketSize));
        let packet_bits = size.or(content)?;
        let content_bits = content.unwrap_or(packet_bits);
        let is_possible = packet_bits.is_multiple_of(8)
            && packet_bits / 8 <= length
            && packet_bits > 0
            && (head.bits..=packet_bits).contains(&content_bits);
        let cpu = stream.cpu.map(|load| u32::try_from(load.value(rest, 0)));
        is_possible.then(|| Found {
            packet: Packet {
                file,
                offset_bytes,
                size_bytes: packet_bits / 8,
                content_bits,
                events_offset_bits: head.bits,
                begin: role(Role::Clock).map(Ticks),
                end: role(Role::PacketEnd).map(Ticks),
                sequence: role(Role::Sequence),
                discarded: role(Role::Discarded),
                cpu: cpu.and_then(Result::ok).map(CpuId),
            },
            class: class as u32,
            stream_id: role(Role::StreamId),
            lost: stream.lost.map(|lost| lost.map(|load| load.value(rest, 0))),
            place: None,
            header_slots: self.header.fields.len() as u32,
        })
    }
}

impl Stream {
    /// `None` if more has to be followed, or looked at, than numbers at their places.
    fn of(head: Head, header_fields: usize, context: &[Member]) -> Option<Self> {
        let fields = head.fields.get(header_fields..)?;
        let is_plain = |member: &Member| {
            use FieldKind::{Array, Optional, Struct, Variant};
            !matches!(member.class.kind, Struct(_) | Array { .. } | Variant(_) | Optional(_))
        };
        if head.tells_clocks() || head.has(Role::Checksum) || fields.len() != context.len() {
            return None;
        }
        // The last of that name, as who goes through all of them has it.
        let named = |name: &str| -> Option<Option<Load>> {
            match context.iter().rposition(|member| member.name == name) {
                None => Some(None),
                Some(at) => match context[at].class.kind {
                    FieldKind::Unsigned(_) => Some(Some(fields[at]?)),
                    _ => None,
                },
            }
        };
        let cpu = named("cpu_id")?;
        let lost = match LOSS_FIELDS.map(named) {
            [Some(None), Some(None), Some(None), Some(None)] => None,
            [Some(Some(a)), Some(Some(b)), Some(Some(c)), Some(Some(d))] => Some([a, b, c, d]),
            _ => return None,
        };
        context.iter().all(is_plain).then_some(Self { head, cpu, lost })
    }
}
