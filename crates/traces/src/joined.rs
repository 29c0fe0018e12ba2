// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several traces combined into one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use lateralis_model::{
    Clock, ColumnBatch, ColumnRequest, Damage, Event, Events, Host, Interval, Look, Loss, Names,
    Origin, Packet, PartSummary, Seen, Source, StreamIndex, StreamSummary, Trace,
};
use lateralis_seedformats::genode;
use lateralis_units::Nanos;

mod batch;

use batch::Shifted;

use crate::error::Error;
use crate::repeated;

use crate::clocks::{self, PutOn, Relation, Tie, TimeBase};

/// A trace and the place where it was found.
pub type Placed = (String, Box<dyn Source>);

/// One of the traces.
pub struct Part {
    /// Where it was found.
    pub place: String,
    /// The trace.
    pub source: Box<dyn Source>,
    first_stream: u32,
    first_stream_class: u32,
    /// Its machine.
    host: Host,
    /// Number of its [`Source::parts`], computed on demand.
    parts: OnceLock<usize>,
}

/// Traces on one timeline. Streams, stream classes and clocks are numbered through all of them; the
/// environment is the concatenation of all.
///
/// Events of equal time come in the order of the UUIDs of their traces, as in babeltrace2, otherwise in
/// that of the traces. A single trace is passed through.
pub struct Joined {
    parts: Vec<Part>,
    trace: Trace,
    /// Whether a trace was annotated with information from its path.
    annotated: bool,
    losses: Vec<Loss>,
    damage: Vec<Damage>,
    names: Names,
    format: String,
    /// Clock of each trace.
    bases: Vec<Option<TimeBase>>,
    /// Packets that several of them contain.
    repeated: repeated::Found,
    /// The `report.json` of a recording from an archive.
    pub report: Option<Vec<u8>>,
    /// Paths given among others that contain no trace.
    pub not_traces: Vec<Error>,
}

impl Joined {
    /// Joins traces; each comes with the place where it was found, which distinguishes its files and
    /// streams if there are several.
    #[must_use]
    pub fn new(sources: Vec<Placed>) -> Self {
        let several = sources.len() > 1;
        let mut joined = Self {
            parts: Vec::with_capacity(sources.len()),
            trace: Trace::default(),
            annotated: false,
            losses: Vec::new(),
            damage: Vec::new(),
            names: Names::default(),
            format: String::new(),
            bases: Vec::new(),
            repeated: repeated::Found::default(),
            report: None,
            not_traces: Vec::new(),
        };
        let mut sources = sources;
        joined.repeated = repeated::drop_repeated(&mut sources);
        joined.align(&mut sources);
        let mut first_stream = 0;
        let hosts = joined.hosts();
        for ((place, source), host) in sources.into_iter().zip(hosts) {
            let first_stream_class = joined.trace.stream_classes.len() as u32;
            // A single trace lends its own classes, which may be too many to copy.
            if several || genode::is_genode(source.trace()) {
                joined.take_classes(source.trace(), &source.streams(), host);
            }
            let names = source.names();
            let named = |(number, name): (&u32, &String)| (host.thread(*number), name.clone());
            joined.names.processes.extend(names.processes.iter().map(named));
            joined.names.threads.extend(names.threads.iter().map(named));
            if !joined.format.split(", ").any(|known| known == source.format()) {
                let separator = if joined.format.is_empty() { "" } else { ", " };
                joined.format = format!("{}{separator}{}", joined.format, source.format());
            }
            let streams = source.streams().len() as u32;
            let parts = OnceLock::new();
            let part = Part { place, source, first_stream, first_stream_class, host, parts };
            joined.parts.push(part);
            first_stream += streams;
        }
        if !several {
            joined.trace.origins.clear();
        }
        joined.gather_gaps();
        joined
    }

    /// Machine of each trace. A trace without information about its machine counts as the machine of the
    /// first.
    ///
    /// Cost: each trace against the first of each machine.
    fn hosts(&self) -> Vec<Host> {
        let mut first: Vec<&TimeBase> = Vec::new();
        let mut hosts = Vec::with_capacity(self.bases.len());
        for base in &self.bases {
            let number = base.as_ref().map_or(0, |base| {
                let known = first.iter().position(|other| base.is_of_machine(other));
                known.unwrap_or_else(|| {
                    first.push(base);
                    first.len() - 1
                })
            });
            hosts.push(Host::new(number as u32));
        }
        hosts
    }

    /// Makes traces of one counter use the conversion of the first of them.
    fn align(&mut self, sources: &mut [Placed]) {
        for (place, source) in sources {
            let mut own = TimeBase::of(source.as_ref(), place);
            if let Some(base) = &own {
                // Clocks without an identity need not be searched among many traces.
                let mut known = self.bases.iter().flatten().filter(|_| base.clock.has_identity());
                let first = known.find(|known| known.is_same(base));
                if first.is_some_and(|first| clocks::take(source.as_mut(), base, first)) {
                    own = TimeBase::of(source.as_ref(), place);
                }
            }
            self.bases.push(own);
        }
    }

    /// Makes traces that read the counter of one of `known` use the conversion of that.
    ///
    /// Cost: proportional to packets, losses and damage of those that change.
    pub fn align_to(&mut self, known: &[TimeBase]) {
        let mut changed = false;
        for (part, base) in self.parts.iter_mut().zip(&mut self.bases) {
            let Some(own) = base else { continue };
            let Some(first) = known.iter().find(|known| known.is_same(own)) else { continue };
            if clocks::take(part.source.as_mut(), own, first) {
                *base = TimeBase::of(part.source.as_ref(), &part.place);
                part.parts = OnceLock::new();
                changed = true;
            }
        }
        if changed {
            self.retimed();
        }
    }

    /// Puts the times of all traces with a clock on another timeline, by a clock that converts their
    /// ticks to that.
    ///
    /// Cost: proportional to their packets, losses and damage.
    pub fn place(&mut self, of: &TimeBase, clock: &Clock, placed: &PutOn) {
        let line = of.own_line().to_owned();
        for (part, base) in self.parts.iter_mut().zip(&mut self.bases) {
            let Some(own) = base.as_ref().filter(|base| base.own_line() == line) else { continue };
            if clocks::put(part.source.as_mut(), own, clock) {
                let new = TimeBase::of(part.source.as_ref(), &part.place);
                *base = new.map(|new| new.placed_at(line.clone(), placed.clone()));
                part.parts = OnceLock::new();
            }
        }
        self.retimed();
    }

    /// Updates derived data after a clock has changed.
    fn retimed(&mut self) {
        let has_classes = !self.trace.stream_classes.is_empty();
        let clocks = self.parts.iter().flat_map(|part| part.source.trace().clocks.clone());
        self.trace.clocks = clocks.filter(|_| has_classes).collect();
        self.gather_gaps();
    }

    fn gather_gaps(&mut self) {
        let several = self.parts.len() > 1;
        self.losses.clear();
        self.damage.clear();
        for part in &self.parts {
            for loss in part.source.losses() {
                let stream = StreamIndex(loss.stream.0 + part.first_stream);
                self.losses.push(Loss { stream, ..loss.clone() });
            }
            for damage in part.source.damage() {
                self.damage.push(named(damage.clone(), several.then_some(&part.place)));
            }
        }
    }

    /// Clock of each trace; `None` if it has none, or several.
    #[must_use]
    pub fn bases(&self) -> &[Option<TimeBase>] {
        &self.bases
    }

    /// Relation of the times of the traces of two streams.
    ///
    /// Cost: two binary searches; for different traces some divisions.
    #[must_use]
    pub fn tie(&self, a: StreamIndex, b: StreamIndex) -> Tie {
        let of = |stream: StreamIndex| {
            self.parts.partition_point(|part| part.first_stream <= stream.0).saturating_sub(1)
        };
        let (a, b) = (of(a), of(b));
        if a == b {
            return Tie::SELF;
        }
        match (self.bases.get(a).and_then(Option::as_ref), self.bases.get(b)) {
            (Some(a), Some(Some(b))) => a.tie(b),
            _ => Tie { relation: Relation::Unrelated, error_ns: None },
        }
    }

    fn take_classes(&mut self, trace: &Trace, streams: &[StreamSummary], host: Host) {
        let mut annotated;
        let mut trace = trace;
        if genode::is_genode(trace) {
            // Its label and thread are the path of a stream (seed 004).
            annotated = trace.clone();
            let path = streams.first().map_or("", |stream| stream.name.as_str());
            genode::annotate(&mut annotated, path);
            if streams.len() > 1 {
                annotated.environment.retain(|(name, _)| !name.starts_with("genode."));
            }
            self.annotated = true;
            trace = &annotated;
        }
        let first_clock = self.trace.clocks.len();
        if self.parts.is_empty() {
            self.trace.name.clone_from(&trace.name);
            self.trace.uuid = trace.uuid;
        }
        self.trace.origins.push(Origin {
            first_stream_class: self.trace.stream_classes.len() as u32,
            uuid: trace.uuid,
            environment: trace.environment.clone(),
        });
        self.trace.environment.extend(trace.environment.iter().cloned());
        self.trace.clocks.extend(trace.clocks.iter().cloned());
        for class in &trace.stream_classes {
            let mut class = class.clone();
            class.clock = class.clock.map(|clock| clock + first_clock);
            class.host = host;
            self.trace.stream_classes.push(class);
        }
    }

    fn sentences(&self, of: impl Fn(&dyn Source) -> Vec<String>) -> Vec<String> {
        let several = self.parts.len() > 1;
        let of_part = |part: &Part| {
            let place = if several { format!("{}: ", part.place) } else { String::new() };
            let named = move |sentence| format!("{place}{sentence}");
            of(&*part.source).into_iter().map(named).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(of_part).collect()
    }

    /// The traces.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

fn named(mut damage: Damage, place: Option<&String>) -> Damage {
    if let Some(place) = place {
        damage.file = format!("{place}/{}", damage.file);
    }
    damage
}

impl Source for Joined {
    fn format(&self) -> &str {
        &self.format
    }

    fn trace(&self) -> &Trace {
        match self.parts.as_slice() {
            // Its events lend its own classes, not copies of them.
            [part] if !self.annotated => part.source.trace(),
            _ => &self.trace,
        }
    }

    fn streams(&self) -> Vec<StreamSummary> {
        let several = self.parts.len() > 1;
        let of_part = |part: &Part| {
            let class = part.first_stream_class;
            let place = if several { format!("{}/", part.place) } else { String::new() };
            let host = part.host;
            let renamed = move |mut stream: StreamSummary| {
                stream.class += class;
                stream.cpu = stream.cpu.map(|cpu| host.cpu_id(cpu));
                stream.name = format!("{place}{}", stream.name);
                stream
            };
            part.source.streams().into_iter().map(renamed).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(of_part).collect()
    }

    fn interval(&self) -> Interval {
        let intervals = || self.parts.iter().map(|part| part.source.interval());
        Interval {
            begin: intervals().filter_map(|interval| interval.begin).min(),
            end: intervals().filter_map(|interval| interval.end).max(),
        }
    }

    fn losses(&self) -> &[Loss] {
        &self.losses
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = self.sentences(|source| source.faults());
        let count = self.repeated.overlapping;
        if count > 0 {
            faults.push(format!(
                "{count} packets hold in part what another recording holds as well: events are there \
                 twice"
            ));
        }
        faults
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = self.sentences(|source| source.remarks());
        let count = self.repeated.dropped;
        if count > 0 {
            let packets = if count == 1 { "packet is" } else { "packets are" };
            remarks.push(format!(
                "{count} {packets} in several of these recordings: each event is counted once"
            ));
        }
        remarks
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn events_in(&self, interval: Interval) -> Box<dyn Events + '_> {
        if let [part] = self.parts.as_slice() {
            return part.source.events_in(interval);
        }
        let mut parts: Vec<&Part> = self.parts.iter().collect();
        parts.sort_by_key(|part| {
            let uuid = part.source.trace().uuid;
            (uuid.is_none(), uuid)
        });
        let events: Vec<_> = parts.iter().map(|part| part.source.events_in(interval)).collect();
        let waiting = BinaryHeap::with_capacity(events.len());
        let (current, packet) = (None, None);
        Box::new(Merged { joined: self, parts, events, waiting, current, packet, started: false })
    }

    fn visit(&self, see: &mut dyn FnMut(&Event<'_>)) -> Vec<Damage> {
        let mut damage = Vec::new();
        let several = self.parts.len() > 1;
        for part in &self.parts {
            let found = part.source.visit(&mut |event| {
                let packet = part.packet(event.packet);
                let mut event = shifted(*event, part, self.trace());
                event.packet = packet.as_ref().unwrap_or(event.packet);
                see(&event);
            });
            let place = several.then_some(&part.place);
            damage.extend(found.into_iter().map(|damage| named(damage, place)));
        }
        damage
    }

    fn survey(
        &self,
        look: &dyn Fn(u32, u32) -> Look,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Vec<Damage> {
        let mut damage = Vec::new();
        let several = self.parts.len() > 1;
        for part in &self.parts {
            let first = part.first_stream_class;
            let look = |stream_class, class| look(stream_class + first, class);
            let mut see = |seen: Seen<'_>| match seen {
                Seen::Event(event) if several || self.annotated => {
                    let packet = part.packet(event.packet);
                    let mut event = shifted(*event, part, &self.trace);
                    event.packet = packet.as_ref().unwrap_or(event.packet);
                    see(Seen::Event(&event));
                }
                Seen::Event(event) => see(Seen::Event(event)),
                Seen::Times { stream, stream_class, class, times } => {
                    let stream = StreamIndex(stream.0 + part.first_stream);
                    see(Seen::Times { stream, stream_class: stream_class + first, class, times });
                }
                Seen::Ends { stream, stream_class, class, count, first: begin, last } => {
                    let stream = StreamIndex(stream.0 + part.first_stream);
                    let stream_class = stream_class + first;
                    see(Seen::Ends { stream, stream_class, class, count, first: begin, last });
                }
                Seen::Written { stream_class, class, writer, count } => {
                    let (stream_class, writer) = (stream_class + first, part.host.writer(writer));
                    see(Seen::Written { stream_class, class, writer, count });
                }
            };
            let found = part.source.survey(&look, &mut see);
            let place = several.then_some(&part.place);
            damage.extend(found.into_iter().map(|damage| named(damage, place)));
        }
        damage
    }

    fn has_columns(&self) -> bool {
        // With several traces, events of equal time come in a different order.
        matches!(self.parts.as_slice(), [part] if part.source.has_columns())
    }

    fn parts(&self) -> Vec<PartSummary> {
        let of_part = |part: &Part| {
            let (stream, class) = (part.first_stream, part.first_stream_class);
            let host = part.host;
            let shifted = move |mut summary: PartSummary| {
                summary.stream = summary.stream.map(|index| StreamIndex(index.0 + stream));
                summary.stream_class = summary.stream_class.map(|index| index + class);
                summary.cpu = summary.cpu.map(|cpu| host.cpu_id(cpu));
                summary
            };
            part.source.parts().into_iter().map(shifted).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(of_part).collect()
    }

    fn packets(
        &self,
        see: &mut dyn FnMut(StreamIndex, u64, &Packet, Interval) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for part in &self.parts {
            let first = part.first_stream;
            part.source.packets(&mut |stream, number, packet, interval| {
                let of_machine = part.packet(packet);
                let packet = of_machine.as_ref().unwrap_or(packet);
                see(StreamIndex(stream.0 + first), number, packet, interval)
            })?;
        }
        ControlFlow::Continue(())
    }

    fn columns(
        &self,
        request: &ColumnRequest<'_>,
        see: &mut dyn FnMut(&dyn ColumnBatch) -> ControlFlow<()>,
    ) -> Vec<Damage> {
        if let ([part], false) = (self.parts.as_slice(), self.annotated) {
            return part.source.columns(request, see);
        }
        let several = self.parts.len() > 1;
        let (mut damage, mut stopped) = (Vec::new(), false);
        let mut asked = request.parts;
        while let (Some(&first), false) = (asked.first(), stopped) {
            // Consecutive ones of the same trace are read together.
            let mut before = 0;
            let found = self.parts.iter().find(|part| {
                before += part.count();
                first < before
            });
            let Some(part) = found else {
                asked = &asked[1..];
                continue;
            };
            let range = before - part.count()..before;
            let run = asked.iter().take_while(|index| range.contains(index)).count();
            let parts: Vec<usize> = asked[..run].iter().map(|index| index - range.start).collect();
            asked = &asked[run..];
            let classes = part.first_stream_class as usize;
            let classes = classes..classes + part.source.trace().stream_classes.len();
            let wanted = request.wanted.of_stream_classes(classes);
            let request =
                ColumnRequest { parts: &parts, interval: request.interval, wanted: &wanted };
            let mut see = |batch: &dyn ColumnBatch| {
                let flow = see(&Shifted::new(batch, part, &self.trace));
                stopped |= flow.is_break();
                flow
            };
            let found = part.source.columns(&request, &mut see);
            let place = several.then_some(&part.place);
            damage.extend(found.into_iter().map(|damage| named(damage, place)));
        }
        damage
    }
}

impl Part {
    /// Number of its [`Source::parts`]: finding them walks over its packets.
    fn count(&self) -> usize {
        *self.parts.get_or_init(|| self.source.parts().len())
    }

    /// A packet with the CPU's number among those of all hosts; `None` if unchanged.
    fn packet(&self, packet: &Packet) -> Option<Packet> {
        let cpu = packet.cpu.filter(|_| !self.host.is_first())?;
        Some(Packet { cpu: Some(self.host.cpu_id(cpu)), ..packet.clone() })
    }
}

/// The event with the numbers and classes of the joined trace, except for its packet: a class refers to
/// the clock of its trace by index.
fn shifted<'a>(mut event: Event<'a>, part: &Part, trace: &'a Trace) -> Event<'a> {
    event.stream.0 += part.first_stream;
    event.writer = event.writer.map(|writer| part.host.writer(writer));
    event.stream_class_index += part.first_stream_class;
    event.stream_class = &trace.stream_classes[event.stream_class_index as usize];
    event.class = &event.stream_class.event_classes[event.class_index as usize];
    event
}

/// The events of all traces, merged by time.
struct Merged<'a> {
    joined: &'a Joined,
    /// In the order in which events of equal time come.
    parts: Vec<&'a Part>,
    /// Events of each part.
    events: Vec<Box<dyn Events + 'a>>,
    waiting: BinaryHeap<Reverse<(Nanos, usize)>>,
    current: Option<usize>,
    /// Packet of the current event, if its number differs among those of all.
    packet: Option<Packet>,
    started: bool,
}

impl Merged<'_> {
    fn wait(&mut self, index: usize) {
        if self.events[index].advance() {
            self.waiting.push(Reverse((self.events[index].time(), index)));
        }
    }
}

impl Events for Merged<'_> {
    fn advance(&mut self) -> bool {
        if !self.started {
            self.started = true;
            (0..self.events.len()).for_each(|index| self.wait(index));
        }
        if let Some(index) = self.current.take() {
            self.wait(index);
        }
        self.current = self.waiting.pop().map(|Reverse((_, index))| index);
        self.packet = self
            .current
            .filter(|index| !self.parts[*index].host.is_first())
            .and_then(|index| self.parts[index].packet(self.events[index].event().packet));
        self.current.is_some()
    }

    fn event(&self) -> Event<'_> {
        let index = self.current.expect("joined:no-event: stepped to one before");
        let mut event = shifted(self.events[index].event(), self.parts[index], &self.joined.trace);
        event.packet = self.packet.as_ref().unwrap_or(event.packet);
        event
    }

    fn time(&self) -> Nanos {
        let index = self.current.expect("joined:no-event: stepped to one before");
        self.events[index].time()
    }

    fn damage(&self) -> Vec<Damage> {
        let mut all = Vec::new();
        for (part, events) in self.parts.iter().zip(&self.events) {
            all.extend(events.damage().into_iter().map(|d| named(d, Some(&part.place))));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::text::Babeltrace;
    use lateralis_model::{EnvValue, EventClass, FieldClass, MemoryTrace, StreamClass, Uuid};

    fn trace(name: &str, times: &[u64]) -> Box<dyn Source> {
        let mut builder = MemoryTrace::builder(name, u64::MAX);
        let clock = builder.clock(Clock::default());
        let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
        let payload = Some(FieldClass::structure([("n", FieldClass::u64())]));
        let event = EventClass { name: name.to_owned(), payload, ..Default::default() };
        let event = builder.event_class(class, event);
        let stream = builder.stream(class, "s", None);
        for time in times {
            builder.event(stream, event, *time, None).u64(*time).end().unwrap();
        }
        Box::new(builder.finish())
    }

    #[test]
    fn events_of_all_come_by_time_with_numbers_of_their_own() {
        let sources = vec![
            ("first".to_owned(), trace("a", &[1, 5, 9])),
            ("second".to_owned(), trace("b", &[2, 5, 6])),
            ("third".to_owned(), trace("c", &[])),
        ];
        let joined = Joined::new(sources);
        assert_eq!(joined.format(), "a, b, c");
        let mut seen = Vec::new();
        let mut events = joined.events();
        while let Some(event) = events.next_event() {
            assert_eq!(event.stream.0, event.stream_class_index);
            let class = &joined.trace().stream_classes[event.stream_class_index as usize];
            assert_eq!(class.event_classes[event.class_index as usize].name, event.class.name);
            seen.push((event.time.0, event.class.name.clone(), event.stream.0));
        }
        let expected =
            [(1, "a", 0), (2, "b", 1), (5, "a", 0), (5, "b", 1), (6, "b", 1), (9, "a", 0)];
        let expected: Vec<_> = expected.map(|(time, name, s)| (time, name.to_owned(), s)).into();
        assert_eq!(seen, expected);
        let mut count = 0;
        joined.visit(&mut |_| count += 1);
        assert_eq!(count, 6);
        let names: Vec<_> = joined.streams().into_iter().map(|stream| stream.name).collect();
        assert_eq!(names, ["first/s", "second/s", "third/s"]);
        assert_eq!(joined.interval().begin, Some(Nanos(1)));
    }

    #[test]
    fn each_event_has_the_clock_and_the_environment_of_its_own_trace() {
        let trace = |host: &str, uuid, offset_seconds| {
            let mut builder = MemoryTrace::builder("x", u64::MAX);
            let host = EnvValue::Text(host.to_owned());
            builder.describe().environment = vec![("hostname".to_owned(), host)];
            builder.describe().uuid = Some(Uuid([uuid; 16]));
            let clock = builder.clock(Clock::new("c", 1_000_000_000, offset_seconds, 0));
            let class = StreamClass { clock: Some(clock), ..Default::default() };
            let class = builder.stream_class(class);
            let event = EventClass { name: "e".to_owned(), ..Default::default() };
            let event = builder.event_class(class, event);
            let stream = builder.stream(class, "s", None);
            builder.event(stream, event, 7, None).end().unwrap();
            Box::new(builder.finish()) as Box<dyn Source>
        };
        let joined = Joined::new(vec![
            ("a".into(), trace("here", 9, 20)),
            ("b".into(), trace("there", 5, 10)),
            ("c".into(), trace("also", 2, 20)),
        ]);
        let printer = Babeltrace::new(joined.trace());
        let mut text = Vec::new();
        let mut events = joined.events();
        while let Some(event) = events.next_event() {
            printer.line(&mut text, &event);
        }
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<_> = text.lines().map(|line| line.trim_end_matches(", ")).collect();
        assert_eq!(
            lines,
            [
                "timestamp = 10.000000007, trace:hostname = there, name = e",
                "timestamp = 20.000000007, trace:hostname = also, name = e",
                "timestamp = 20.000000007, trace:hostname = here, name = e",
            ]
        );
    }
}
