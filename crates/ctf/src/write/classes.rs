// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The classes of a written trace: made when their first event comes, or at the
//! end if none did.

use std::collections::BTreeSet;

use lateralis_model::{
    Dropped, EnvValue, FieldClass, Loss, Member, Source, StreamClass, Trace, role,
};

use super::described::{Own, WRITER_FIELDS, WrittenEvent, WrittenStream};
use super::layout::{Maker, Managed, Node};
use super::leaves::{Leaf, leaves};
use super::stream::LOST_FIELDS;
use super::{Version, is_lateralis, names, roles};
use crate::packets::LOSS_CAUSES;

/// Events looked at before the first is written, to see whether they know their
/// thread and CPU.
const LOOK_AHEAD: usize = 4096;

/// Names of fields that contain a thread.
const THREAD_FIELDS: [&str; 6] = ["pid", "tid", "vpid", "vtid", "_vpid", "_vtid"];

/// Numbers left for classes that need a second layout.
const SPARE_IDS: u64 = 4096;

/// All classes, and which layout events of each source class get now.
pub(super) struct Classes<'a> {
    trace: &'a Trace,
    version: Version,
    pub streams: Vec<WrittenStream>,
    pub clocks: Vec<String>,
    /// By stream class: whether threads of events are nowhere.
    pub lacks_writers: Vec<bool>,
    current: Vec<Vec<Option<usize>>>,
    ids: Vec<Vec<u64>>,
    next_id: Vec<u64>,
}

impl<'a> Classes<'a> {
    /// The stream classes; event classes come one by one.
    ///
    /// Cost: linear in the classes; looks at a bounded number of events.
    pub fn new(source: &'a dyn Source, version: Version, dropped: &mut Dropped) -> Self {
        let trace = source.trace();
        let count = trace.stream_classes.len();
        let lateralis = is_lateralis(source);
        let (mut cpus, mut writers) = (vec![false; count], vec![false; count]);
        for summary in source.streams() {
            if let Some(cpu) = cpus.get_mut(summary.class as usize) {
                *cpu |= summary.cpu.is_some();
            }
        }
        let mut events = source.events();
        for _ in 0..LOOK_AHEAD {
            let Some(event) = events.next_event() else { break };
            let class = event.stream_class_index as usize;
            if class < count {
                cpus[class] |= event.packet.cpu.is_some();
                writers[class] |= event.writer.is_some();
            }
        }
        drop(events);
        let stream_ids = unique(trace.stream_classes.iter().map(|class| class.id));
        let causes = by_cause(source.losses());
        let mut out = Self {
            trace,
            version,
            streams: Vec::with_capacity(count),
            clocks: clock_names(trace, dropped),
            lacks_writers: Vec::with_capacity(count),
            current: Vec::with_capacity(count),
            ids: Vec::with_capacity(count),
            next_id: Vec::with_capacity(count),
        };
        for (index, class) in trace.stream_classes.iter().enumerate() {
            let ids = unique(class.event_classes.iter().map(|class| class.id));
            let next = ids.iter().max().map_or(0, |most| most.saturating_add(1));
            let room = next.saturating_add(SPARE_IDS);
            let id_bits = match room {
                ..=0xffff => 16,
                0x1_0000..=0xffff_ffff => 32,
                _ => 64,
            };
            let tells = class.common_context.as_ref().is_some_and(|context| {
                let named = |member: &Member| THREAD_FIELDS.contains(&member.name.as_str());
                context.members().iter().any(named)
            });
            let lacking = !tells && !lateralis;
            let clock = class.clock.filter(|&clock| clock < trace.clocks.len());
            let time_bits = match (clock, id_bits) {
                (None, _) => 0,
                (Some(_), 16) => 48,
                (Some(_), _) => 64,
            };
            let own = own_context(class, clock.is_some(), cpus[index], causes);
            let taken: Vec<&str> =
                RESERVED.iter().copied().chain(own.iter().map(|o| o.name)).collect();
            let manage = |member: &Member| managed(lateralis, member);
            let mut maker = Maker::plain(version, dropped);
            let context = class.packet_context.as_ref();
            let packet_context = context.map(|class| maker.scope(class, &taken, &manage));
            let added: &[&str] = if lacking && writers[index] { &WRITER_FIELDS } else { &[] };
            let common = class.common_context.as_ref();
            let common_context = common.map(|class| maker.scope(class, added, &|_| None));
            if version == Version::V1 && class.name.is_some() {
                dropped.note("names of stream classes");
            }
            out.streams.push(WrittenStream {
                id: stream_ids[index],
                name: class.name.clone(),
                clock,
                id_bits,
                time_bits,
                own,
                packet_context,
                common_context,
                writers: lacking && writers[index],
                events: Vec::new(),
            });
            out.lacks_writers.push(lacking);
            out.current.push(vec![None; class.event_classes.len()]);
            out.ids.push(ids);
            out.next_id.push(next);
        }
        out
    }

    /// The layout for events of a source class; `None` if it has no number.
    #[inline]
    pub fn plan(&mut self, stream: usize, class: usize, dropped: &mut Dropped) -> Option<usize> {
        match self.current.get(stream)?.get(class)? {
            Some(plan) => Some(*plan),
            None => {
                let id = self.ids[stream][class];
                Some(self.make(stream, class, id, Vec::new(), dropped))
            }
        }
    }

    fn make(
        &mut self,
        stream: usize,
        class: usize,
        id: u64,
        denied: Vec<usize>,
        dropped: &mut Dropped,
    ) -> usize {
        let (context, payload) = self.nodes(stream, class, &denied, dropped);
        let leaves = self.leaves(stream, &context, &payload);
        let is_context_in_payload = self.is_moved(&context);
        let event = WrittenEvent {
            id,
            class,
            context,
            is_context_in_payload,
            payload,
            leaves,
            count: 0,
            denied,
        };
        self.streams[stream].events.push(event);
        let plan = self.streams[stream].events.len() - 1;
        self.current[stream][class] = Some(plan);
        plan
    }

    fn nodes(
        &self,
        stream: usize,
        class: usize,
        denied: &[usize],
        dropped: &mut Dropped,
    ) -> (Option<Node>, Option<Node>) {
        let source = &self.trace.stream_classes[stream].event_classes[class];
        let mut maker = Maker { version: self.version, dropped, denied: Some(denied), sites: 0 };
        let taken: &[&str] =
            if self.version == Version::V1 { &[names::CONTEXT, names::CONTEXT_ALONE] } else { &[] };
        let mut scope = |class: &Option<FieldClass>, taken: &[&str]| {
            class.as_ref().map(|class| maker.scope(class, taken, &|_| None))
        };
        (scope(&source.context, &[]), scope(&source.payload, taken))
    }

    /// Whether a context is described in the payload. The bytes are the same.
    fn is_moved(&self, context: &Option<Node>) -> bool {
        self.version == Version::V1 && context.as_ref().is_some_and(Node::looks_back)
    }

    fn leaves(
        &self,
        stream: usize,
        context: &Option<Node>,
        payload: &Option<Node>,
    ) -> Option<Vec<Leaf>> {
        let stream = &self.streams[stream];
        let all = [&stream.common_context, context, payload];
        if stream.writers { None } else { leaves(all.into_iter().flatten()) }
    }

    /// A guess was wrong: further events of the class get a layout without it.
    /// Where none has the old one, it is replaced.
    pub fn deny(&mut self, stream: usize, class: usize, plan: usize, site: usize) {
        let old = &self.streams[stream].events[plan];
        let mut denied = old.denied.clone();
        denied.push(site);
        // Said before about the same class.
        let mut again = Dropped::default();
        if old.count == 0 {
            let (context, payload) = self.nodes(stream, class, &denied, &mut again);
            let leaves = self.leaves(stream, &context, &payload);
            let is_moved = self.is_moved(&context);
            let event = &mut self.streams[stream].events[plan];
            (event.context, event.payload, event.denied) = (context, payload, denied);
            (event.leaves, event.is_context_in_payload) = (leaves, is_moved);
            return;
        }
        let id = self.next_id[stream];
        self.next_id[stream] = id.saturating_add(1);
        self.make(stream, class, id, denied, &mut again);
    }

    /// Makes the classes of which there was no event.
    pub fn complete(&mut self, dropped: &mut Dropped) {
        for stream in 0..self.streams.len() {
            for class in 0..self.current[stream].len() {
                self.plan(stream, class, dropped);
            }
        }
    }

    /// The packet header.
    pub fn header(&self, stream_id_bytes: usize) -> Vec<Own> {
        let mut header = vec![Own::new("magic", 32, Some("packet-magic-number"))];
        if self.trace.uuid.is_some() {
            header.push(Own::new("uuid", 128, Some("metadata-stream-uuid")));
        }
        let bits = stream_id_bytes as u32 * 8;
        header.push(Own::new("stream_id", bits, Some("data-stream-class-id")));
        header.push(Own::new("stream_instance_id", 64, Some("data-stream-id")));
        header
    }

    /// The environment: what the source said, and what the version has no
    /// other place for.
    pub fn environment(
        &self,
        source: &dyn Source,
        said: Vec<(String, EnvValue)>,
        dropped: &mut Dropped,
    ) -> Vec<(String, EnvValue)> {
        let mut taken = BTreeSet::new();
        let mut out = Vec::with_capacity(said.len());
        let mut put = |name: &str, value: EnvValue, dropped: &mut Dropped| {
            let (name, changed) = match self.version {
                Version::V1 => names::word(name),
                Version::V2 => (name.to_owned(), false),
            };
            if changed {
                dropped.note("names of the environment that this version of CTF cannot have");
            }
            if !taken.insert(name.clone()) {
                dropped.note("entries of the environment of the same name");
                return;
            }
            let wide =
                |number: i128| i64::try_from(number).is_err() && u64::try_from(number).is_err();
            let value = match value {
                EnvValue::Integer(number) if wide(number) => {
                    dropped.note("numbers of the environment over 64 bits: as text");
                    EnvValue::Text(number.to_string())
                }
                value => value,
            };
            out.push((name, value));
        };
        for (name, value) in said {
            put(&name, value, dropped);
        }
        for (pid, name) in &source.names().processes {
            put(&format!("{}{pid}", names::PROCESS), EnvValue::Text(name.clone()), dropped);
        }
        for (tid, name) in &source.names().threads {
            put(&format!("{}{tid}", names::THREAD), EnvValue::Text(name.clone()), dropped);
        }
        if self.version == Version::V2 {
            return out;
        }
        if let Some(name) = &self.trace.name {
            put(names::TRACE_NAME, EnvValue::Text(name.clone()), dropped);
        }
        for (index, stream) in self.streams.iter().enumerate() {
            for event in &stream.events {
                let class = &self.trace.stream_classes[index].event_classes[event.class];
                let said = roles::attributes(class);
                let clauses = said.clauses.iter().map(|clause| (role::ATTRIBUTE, *clause));
                let level = said.level.filter(|_| said.level_number.is_none());
                let level = level.map(|level| ("log-level", level));
                let others = said.others.iter().map(|o| (o.name.as_str(), o.value.as_str()));
                for (number, (name, value)) in clauses.chain(level).chain(others).enumerate() {
                    let key = format!("{}{}_{}_{number}", names::ATTRIBUTE, stream.id, event.id);
                    put(&key, EnvValue::Text(format!("{name}={value}")), dropped);
                }
            }
        }
        out
    }
}

/// Names of the packet context that mean something to readers.
const RESERVED: [&str; 6] = [
    "timestamp_begin",
    "timestamp_end",
    "content_size",
    "packet_size",
    "packet_seq_num",
    "events_discarded",
];

fn own_context(class: &StreamClass, clocked: bool, cpu: bool, causes: bool) -> Vec<Own> {
    let mut own = Vec::new();
    if clocked {
        own.push(Own::time("timestamp_begin", 64, "default-clock-timestamp"));
        own.push(Own::time("timestamp_end", 64, "packet-end-default-clock-timestamp"));
    }
    own.push(Own::new("content_size", 64, Some("packet-content-length")));
    own.push(Own::new("packet_size", 64, Some("packet-total-length")));
    own.push(Own::new("packet_seq_num", 64, Some("packet-sequence-number")));
    let discarded = Some("discarded-event-record-counter-snapshot");
    own.push(Own::new("events_discarded", 64, discarded));
    let has = |name: &str| {
        let members = class.packet_context.iter().flat_map(|context| context.members());
        members.into_iter().any(|member| member.name == name && !member.class.structural)
    };
    if causes && !LOST_FIELDS.iter().any(|name| has(name)) {
        own.extend(LOST_FIELDS.iter().map(|name| Own::new(name, 64, None)));
    }
    if cpu && !has("cpu_id") {
        own.push(Own::new("cpu_id", 32, None));
    }
    own
}

fn by_cause(losses: &[Loss]) -> bool {
    losses.iter().any(|loss| LOSS_CAUSES.contains(&loss.cause))
}

fn managed(lateralis: bool, member: &Member) -> Option<Managed> {
    if let Some(cause) = LOST_FIELDS.iter().position(|name| *name == member.name) {
        return Some(Managed::Lost(cause));
    }
    match member.name.as_str() {
        "checksum" if lateralis => Some(Managed::Checksum),
        "ring_flags" if lateralis => Some(Managed::RingFlags),
        _ => None,
    }
}

/// The numbers, or those from 0 on if one is there twice.
fn unique(ids: impl Iterator<Item = u64>) -> Vec<u64> {
    let ids: Vec<u64> = ids.collect();
    let different: BTreeSet<u64> = ids.iter().copied().collect();
    if different.len() == ids.len() { ids } else { (0..ids.len() as u64).collect() }
}

/// Names of clocks that are valid in a path.
fn clock_names(trace: &Trace, dropped: &mut Dropped) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut name = |clock: &lateralis_model::Clock| {
        let given = if clock.name.is_empty() { "clock" } else { clock.name.as_str() };
        let (base, mut changed) = names::word(given);
        let mut name = base.clone();
        let mut number = 2u32;
        while !taken.insert(name.clone()) {
            name = format!("{base}_{number}");
            number = number.saturating_add(1);
            changed = true;
        }
        if changed || clock.name.is_empty() {
            dropped.note("names of clocks that CTF cannot have");
        }
        name
    };
    trace.clocks.iter().map(&mut name).collect()
}
