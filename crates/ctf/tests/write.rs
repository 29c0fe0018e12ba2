// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is written reads as what was written: random classes and values, losses,
//! and single cases worth a name.

use crate::written;

use lateralis_ctf::write::{self, Files, Options, Version};
use lateralis_model::{
    Attribute, Base, Builder, Clock, Encoding, EnvValue, EventClass, FieldClass, FieldKind,
    IntegerClass, Interval, Label, Loss, LossCause, Member, MemoryTrace, Pending, Range, Source,
    StreamClass, StreamIndex, Uuid, Writer,
};
use lateralis_units::{CpuId, Nanos};
use proptest::prelude::*;
use written::{classes, copy, events, losses};

/// Xorshift: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    fn name(&mut self, index: usize) -> String {
        let words = ["a", "event", "_x", "struct", "len", "B9", "cpu_id", "long_name_of_a_field"];
        format!("{}{index}", words[self.below(words.len() as u64) as usize])
    }

    fn labels(&mut self, low: i128, high: i128) -> Vec<Label> {
        let count = if self.below(3) == 0 { 1 + self.below(3) } else { 0 };
        let clamp = |value: i128| value.clamp(low, high);
        let label = |index| {
            let first = clamp(i128::from(self.below(40)) - 10);
            let ranges = vec![Range { low: first, high: clamp(first + i128::from(self.below(3))) }];
            Label { name: format!("label \"{index}\""), ranges }
        };
        (0..count).map(label).collect()
    }

    fn integer(&mut self, signed: bool) -> IntegerClass {
        let bits = match self.below(3) {
            0 => 1 + self.below(64) as u32,
            _ => [8, 16, 32, 64][self.below(4) as usize],
        };
        let bases = [Base::Binary, Base::Octal, Base::Decimal, Base::Hexadecimal];
        let base = bases[self.below(4) as usize];
        let (low, high) = match signed {
            true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            false => (0, (1i128 << bits) - 1),
        };
        IntegerClass { bits, base, labels: self.labels(low, high) }
    }

    fn members(&mut self, version: Version, depth: u32) -> Vec<(String, FieldClass)> {
        let count = self.below(5) as usize;
        (0..count).map(|index| (self.name(index), self.class(version, depth, true))).collect()
    }

    /// A class; `lonely` ones need no field beside them.
    fn class(&mut self, version: Version, depth: u32, member: bool) -> FieldClass {
        let most = if depth == 0 { 8 } else { 13 };
        let kind = match self.below(most) {
            0 => FieldKind::Unsigned(self.integer(false)),
            1 => FieldKind::Signed(self.integer(true)),
            2 => FieldKind::Real(32),
            3 => FieldKind::Real(64),
            4 => FieldKind::Text(Encoding::Utf8),
            5 if version == Version::V2 => FieldKind::Bool,
            6 if version == Version::V2 => {
                let bits = 1 + self.below(64) as u32;
                FieldKind::Bits { bits, flags: self.labels(0, i128::from(bits) - 1) }
            }
            7 if version == Version::V2 => FieldKind::Text(
                [Encoding::Utf16Be, Encoding::Utf16Le, Encoding::Utf32Be, Encoding::Utf32Le]
                    [self.below(4) as usize],
            ),
            8 if version == Version::V2 && member => FieldKind::Bytes("image/x-test".into()),
            9 => FieldClass::structure(self.members(version, depth - 1)).kind,
            10 => {
                let length = (!member || self.below(2) == 0).then(|| self.below(4));
                FieldClass::array(self.class(version, depth - 1, false), length).kind
            }
            11 if member => {
                let options = (0..1 + self.below(3) as usize).map(|index| Member {
                    name: format!("option{index}"),
                    class: self.class(version, depth - 1, false),
                });
                FieldKind::Variant(options.collect())
            }
            12 if member => FieldClass::optional(self.class(version, depth - 1, false)).kind,
            _ => FieldKind::Unsigned(self.integer(false)),
        };
        FieldClass::new(kind)
    }

    fn scope(&mut self, version: Version) -> Option<FieldClass> {
        (self.below(3) > 0).then(|| FieldClass::structure(self.members(version, 3)))
    }

    fn value<'b>(&mut self, pending: Pending<'b>, class: &FieldClass) -> Pending<'b> {
        match &class.kind {
            FieldKind::Bool => pending.u64(self.below(2)),
            FieldKind::Unsigned(class) => pending.u64(self.next() >> (64 - class.bits)),
            FieldKind::Signed(class) => pending.i64(self.next() as i64 >> (64 - class.bits)),
            FieldKind::Bits { bits, .. } => pending.u64(self.next() >> (64 - bits)),
            FieldKind::Real(32) => pending.real(f64::from(self.below(1 << 20) as f32 / 3.0)),
            FieldKind::Real(_) => pending.real(self.next() as f64 / 3.0),
            FieldKind::Text(encoding) => {
                let units = self.below(6) as usize * encoding.unit_bytes();
                let bytes: Vec<u8> = (0..units).map(|_| 1 + self.below(100) as u8).collect();
                pending.bytes(&bytes)
            }
            FieldKind::Bytes(_) => {
                let bytes: Vec<u8> = (0..self.below(6)).map(|_| self.next() as u8).collect();
                pending.bytes(&bytes)
            }
            FieldKind::Struct(members) => {
                members.iter().fold(pending, |pending, m| self.value(pending, &m.class))
            }
            FieldKind::Array { element, length, .. } => {
                let count = length.unwrap_or_else(|| self.below(4));
                pending.array(count as u32, |pending| {
                    (0..count).fold(pending, |pending, _| self.value(pending, element))
                })
            }
            FieldKind::Variant(options) => {
                let option = self.below(options.len() as u64) as usize;
                self.value(pending.option(option as u32), &options[option].class)
            }
            FieldKind::Optional(inner) => match self.below(2) {
                0 => pending.option(0),
                _ => self.value(pending.option(1), inner),
            },
        }
    }

    /// A trace with everything that the version can say.
    fn trace(&mut self, version: Version) -> MemoryTrace {
        let mut builder = MemoryTrace::builder("random", 64 << 20);
        builder.describe().uuid = (self.below(2) == 0).then(|| Uuid([self.below(256) as u8; 16]));
        builder.describe().environment = vec![
            ("a_number".into(), EnvValue::Integer(-5)),
            ("hostname".into(), EnvValue::Text("with \"quotes\"\n\\ and ü".into())),
        ];
        let hertz = [1_000_000_000, 1_000, 2_694_000_123][self.below(3) as usize];
        let mut clock = Clock::new("monotonic", hertz, 1_700_000_000, 12);
        clock.precision = 17;
        clock.unix_epoch = self.below(2) == 0;
        clock.uuid = Some(Uuid([9; 16]));
        clock.description = "ticks".into();
        let clock = builder.clock(clock);
        let mut streams = Vec::new();
        for _ in 0..1 + self.below(2) {
            let clock = (self.below(4) > 0).then_some(clock);
            let common_context = self.scope(version);
            let class =
                StreamClass { clock, common_context: common_context.clone(), ..Default::default() };
            let index = builder.stream_class(class);
            let mut classes = Vec::new();
            for number in 0..1 + self.below(4) {
                let (context, payload) = (self.scope(version), self.scope(version));
                let attributes = vec![
                    Attribute { name: "log-level".into(), value: number.to_string() },
                    Attribute { name: "emf-uri".into(), value: "http://example.org/a".into() },
                    Attribute { name: "lateralis.role".into(), value: "begin x key y".into() },
                    Attribute { name: "lateralis.role".into(), value: "counter y".into() },
                    Attribute { name: "other".into(), value: "thing=\"7\"".into() },
                ];
                let name = format!("system:event {number}");
                let class = EventClass { name, context, payload, attributes, ..Default::default() };
                let id = builder.event_class(index, class.clone());
                let scopes = [common_context.clone(), class.context, class.payload];
                classes.push((id, scopes));
            }
            for number in 0..1 + self.below(3) {
                let cpu = (clock.is_some()).then_some(CpuId(number as u32));
                let name = format!("s{index}_{number}");
                streams.push((builder.stream(index, &name, cpu), classes.clone(), clock));
            }
        }
        for (stream, classes, clock) in streams {
            // Beyond the range of 48 bits, unless time would end before.
            let far = if hertz < 1_000_000 { 1 << 28 } else { 1 << 52 };
            let mut ticks = self.below(far / 4);
            for _ in 0..self.below(200) {
                if clock.is_some() {
                    let step = if self.below(50) == 0 { far } else { 1000 };
                    ticks += self.below(step);
                    if self.below(20) == 0 {
                        ticks = self.lose(&mut builder, stream, ticks, hertz);
                    }
                }
                let (class, scopes) = &classes[self.below(classes.len() as u64) as usize];
                let mut pending = builder.event(stream, *class, ticks, None);
                for class in scopes.iter().flatten() {
                    pending = self.value(pending, class);
                }
                pending.end().unwrap();
            }
        }
        builder.finish()
    }

    /// A loss after `ticks`; returns its end.
    fn lose(&mut self, builder: &mut Builder, stream: StreamIndex, ticks: u64, hz: u64) -> u64 {
        let clock = Clock::new("", hz, 1_700_000_000, 12);
        let begin = ticks + 1 + hz / 1_000_000;
        let end = begin + 1 + hz / 1_000_000 + self.below(1000);
        let nanos = |ticks| Some(clock.nanos(lateralis_units::Ticks(ticks)));
        let causes = [LossCause::Full, LossCause::NoRing, LossCause::Discarded, LossCause::Packets];
        let cause = causes[self.below(4) as usize];
        let interval = Interval { begin: nanos(begin), end: nanos(end) };
        builder.loss(Loss { stream, cause, count: Some(1 + self.below(9)), interval });
        end + 1 + hz / 1_000_000
    }
}

fn same(source: &dyn Source, version: Version) -> lateralis_ctf::Reader {
    let (copy, report) = copy(source, version);
    assert_eq!(copy.diagnostics(), [], "{version:?}");
    assert_eq!(copy.damage(), []);
    assert_eq!(report.dropped.iter().collect::<Vec<_>>(), []);
    assert_eq!(classes(&copy), classes(source));
    let (ours, theirs) = (events(&copy), events(source));
    for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "event {index}, {version:?}");
    }
    assert_eq!(ours.len(), theirs.len());
    assert_eq!(report.events, theirs.len() as u64);
    let (ours, theirs) = (losses(&copy), losses(source));
    let lacking: Vec<_> = theirs.iter().filter(|loss| !ours.contains(loss)).collect();
    let invented: Vec<_> = ours.iter().filter(|loss| !theirs.contains(loss)).collect();
    assert!(lacking.is_empty() && invented.is_empty(), "lacking {lacking:?}, new {invented:?}");
    copy
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96, failure_persistence: None, ..Default::default()
    })]

    #[test]
    fn ctf_1_reads_as_it_was_written_and_so_does_its_copy_in_ctf_2(seed in 1u64..u64::MAX) {
        let source = Random(seed).trace(Version::V1);
        let first = same(&source, Version::V1);
        let second = same(&first, Version::V2);
        same(&second, Version::V1);
    }

    #[test]
    fn ctf_2_reads_as_it_was_written(seed in 1u64..u64::MAX) {
        let source = Random(seed).trace(Version::V2);
        let copy = same(&source, Version::V2);
        same(&copy, Version::V2);
    }

    #[test]
    fn what_ctf_1_cannot_say_is_said_to_be_dropped(seed in 1u64..u64::MAX) {
        let source = Random(seed).trace(Version::V2);
        let (copy, report) = copy(&source, Version::V1);
        prop_assert_eq!(copy.diagnostics(), &[]);
        let copied = events(&copy).len();
        let damage = copy.events().damage().cloned().collect::<Vec<_>>();
        prop_assert_eq!(copied, source.len(), "{:?} {:?} {:?}", damage, copy.damage(), report);
        let alike = classes(&copy) == classes(&source);
        prop_assert_eq!(alike, report.dropped.is_empty());
    }
}

fn one(payload: FieldClass, put: impl FnOnce(Pending<'_>) -> Pending<'_>) -> MemoryTrace {
    let mut builder = MemoryTrace::builder("one", 1 << 20);
    let class = builder.stream_class(StreamClass::default());
    let stream = builder.stream(class, "s", None);
    let payload = Some(payload);
    let event = EventClass { name: "e".into(), payload, ..Default::default() };
    let event = builder.event_class(class, event);
    put(builder.event(stream, event, 0, None)).end().unwrap();
    builder.finish()
}

#[test]
fn arrays_directly_inside_arrays_keep_their_values() {
    let inner = FieldClass::array(FieldClass::u64(), None);
    let class = FieldClass::structure([("a", FieldClass::array(inner, None))]);
    let source = one(class, |p| p.array(2, |p| p.array(1, |p| p.u64(7)).array(0, |p| p)));
    for version in [Version::V1, Version::V2] {
        let (copy, report) = copy(&source, version);
        assert_eq!(report.dropped.iter().count(), 1, "{:?}", report.dropped);
        let text = &events(&copy)[0];
        assert!(text.ends_with("{a=[ {value=[7]}, {value=[]}]}"), "{text}");
    }
}

#[test]
fn the_sources_own_length_is_used_and_a_field_that_is_none_is_not() {
    let class = FieldClass::structure([
        ("_list_length", FieldClass::unsigned(32, Base::Decimal)),
        ("list", FieldClass::array(FieldClass::u64(), None)),
    ]);
    let good = one(class.clone(), |p| p.u64(2).array(2, |p| p.u64(5).u64(6)));
    let wrong = one(class, |p| p.u64(9).array(1, |p| p.u64(5)));
    for (source, added) in [(good, false), (wrong, true)] {
        for version in [Version::V1, Version::V2] {
            let mut files = Files::default();
            let options = Options { version, ..Options::default() };
            write::write(&source, &mut files, &options).unwrap();
            assert_eq!(files.metadata.contains("list_lat_len"), added, "{}", files.metadata);
            same(&source, version);
        }
    }
}

/// Found by fuzzing: in CTF 1.8 labels may overlap and the first one counts; CTF 2 forbids it.
#[test]
fn the_sources_own_tag_is_used_unless_a_value_of_it_chooses_two_options_in_ctf_2() {
    let label =
        |name: &str, low, high| Label { name: name.into(), ranges: vec![Range { low, high }] };
    for (first_of_two, is_twice) in [(1, false), (0, true)] {
        let labels = vec![label("one", 0, 0), label("two", first_of_two, 9)];
        let tag = IntegerClass { bits: 8, labels, ..IntegerClass::default() };
        let options =
            ["one", "two"].map(|name| Member { name: name.into(), class: FieldClass::u64() });
        let class = FieldClass::structure([
            ("tag", FieldClass::new(FieldKind::Unsigned(tag))),
            ("v", FieldClass::new(FieldKind::Variant(options.into()))),
        ]);
        let source = one(class, |p| p.u64(5).option(1).u64(7));
        for version in [Version::V1, Version::V2] {
            let mut files = Files::default();
            let options = Options { version, ..Options::default() };
            write::write(&source, &mut files, &options).unwrap();
            let is_added = files.metadata.contains("v_lat_tag");
            assert_eq!(is_added, is_twice && version == Version::V2, "{}", files.metadata);
            same(&source, version);
        }
    }
}

/// Found by fuzzing: neither version has such variants, but what is read may.
#[test]
fn a_variant_without_options_is_written_as_an_empty_structure() {
    let nothing = FieldClass::new(FieldKind::Variant([].into()));
    let class = FieldClass::structure([
        ("none", FieldClass::array(nothing, None)),
        ("n", FieldClass::u64()),
    ]);
    let source = one(class, |p| p.array(0, |p| p).u64(7));
    for version in [Version::V1, Version::V2] {
        let (copy, report) = copy(&source, version);
        assert_eq!(copy.diagnostics(), [], "{version:?}");
        assert_eq!(report.dropped.iter().count(), 1, "{:?}", report.dropped);
        assert_eq!(events(&copy), events(&source));
    }
}

#[test]
fn threads_are_kept_as_lttng_names_them() {
    let mut builder = MemoryTrace::builder("threads", 1 << 20);
    let class = builder.stream_class(StreamClass::default());
    let stream = builder.stream(class, "s", None);
    let event = builder.event_class(class, EventClass::default());
    builder.event(stream, event, 0, Some(Writer { pid: 7, tid: 8 })).end().unwrap();
    builder.event(stream, event, 0, None).end().unwrap();
    builder.names().threads.insert(8, "worker".into());
    builder.names().processes.insert(7, "server".into());
    let source = builder.finish();
    for version in [Version::V1, Version::V2] {
        let (copy, _) = copy(&source, version);
        assert_eq!(copy.names(), source.names());
        assert!(copy.trace().environment.is_empty());
        let text = events(&copy).join("\n");
        assert!(text.contains("{vpid=+7,vtid=+8}"), "{text}");
        assert!(text.contains("{vpid=-1,vtid=-1}"), "{text}");
    }
}

#[test]
fn names_that_ctf_1_cannot_have_are_changed_and_said_so() {
    let class = FieldClass::structure([("a b", FieldClass::u64()), ("a_b", FieldClass::u64())]);
    let source = one(class, |p| p.u64(1).u64(2));
    let (first, report) = copy(&source, Version::V1);
    assert!(events(&first)[0].ends_with("{a_b=1,a_b_2=2}"), "{:?}", events(&first));
    assert_eq!(report.dropped.iter().next().unwrap().1, 2);
    same(&source, Version::V2);
}

#[test]
fn what_does_not_fit_its_class_costs_its_event_only() {
    let class = FieldClass::structure([("a", FieldClass::array(FieldClass::u64(), Some(2)))]);
    let source = one(class, |p| p.array(1, |p| p.u64(1)));
    let (copy, report) = copy(&source, Version::V2);
    assert_eq!(events(&copy).len(), 0);
    assert_eq!(report.dropped.iter().count(), 1);
    assert_eq!(copy.streams().len(), 1, "the empty stream is there");
}

#[test]
fn losses_without_count_or_time_are_not_invented() {
    let mut builder = MemoryTrace::builder("lost", 1 << 20);
    let clock = builder.clock(Clock::new("c", 1_000, 0, 0));
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
    let stream = builder.stream(class, "s", None);
    let event = builder.event_class(class, EventClass::default());
    builder.event(stream, event, 5, None).end().unwrap();
    let cause = LossCause::Discarded;
    let interval = Interval { begin: Some(Nanos(7_000_000)), end: None };
    builder.loss(Loss { stream, cause, count: None, interval });
    builder.loss(Loss { stream, cause, count: Some(3), interval });
    let (copy, report) = copy(&builder.finish(), Version::V1);
    assert_eq!(report.dropped.iter().count(), 1);
    let counts: Vec<_> =
        copy.losses().iter().map(|loss| (loss.count, loss.interval.begin)).collect();
    assert_eq!(counts, [(Some(3), Some(Nanos(7_000_000)))]);
}

/// A stream whose second packet is overwritten: the copy is whole, has all
/// other events, and says what happened.
#[test]
fn what_is_recovered_is_whole_and_says_what_is_missing() {
    let mut builder = MemoryTrace::builder("whole", 1 << 20);
    let clock = builder.clock(Clock::new("c", 1_000_000_000, 0, 0));
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
    let stream = builder.stream(class, "s", None);
    builder.describe().uuid = Some(Uuid([3; 16]));
    let event = builder.event_class(class, EventClass::default());
    for ticks in 0..100 {
        builder.event(stream, event, ticks, None).end().unwrap();
    }
    let mut files = Files::default();
    let options = Options { packet_bytes: 200, ..Options::default() };
    let report = write::write(&builder.finish(), &mut files, &options).unwrap();
    assert!(report.packets > 5, "{report:?}");
    let bytes = &mut files.streams[0].1;
    let magic = bytes[..4].to_vec();
    let packet = 4 + bytes[4..].windows(4).position(|word| word == magic).unwrap();
    bytes[packet..packet + 60].fill(0xff);
    let damaged = files.into_reader();
    let left = events(&damaged);
    assert!(left.len() < 100 && left.len() > 80, "{}", left.len());

    let mut files = Files::default();
    let report = write::recover(&damaged, &mut files, &Options::default()).unwrap();
    assert_eq!(report.damage.len(), 1);
    let copy = files.into_reader();
    assert_eq!((copy.damage(), copy.diagnostics()), (&[][..], &[][..]));
    assert_eq!(events(&copy), left);
    let said = |name| copy.trace().env(name).and_then(EnvValue::as_text).unwrap();
    assert!(said("damage_1").contains(&format!("s: bytes {packet}..")), "{}", said("damage_1"));
    assert_eq!(said("recovered_from"), "CTF 1.8");
    let lost: Vec<_> = copy.losses().iter().map(|loss| (loss.cause, loss.count)).collect();
    assert_eq!(lost, [(LossCause::Packets, Some(1))], "the packet is missing, and counted");
}

/// Found by fuzzing: a source may say that as many packets are missing as there are numbers for.
#[test]
fn as_many_packets_as_can_be_counted_may_be_missing() {
    let mut builder = MemoryTrace::builder("gaps", 1 << 20);
    let clock = builder.clock(Clock::new("c", 1_000_000_000, 0, 0));
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
    let stream = builder.stream(class, "s", None);
    let event = builder.event_class(class, EventClass::default());
    for ticks in [1, 100, 200] {
        builder.event(stream, event, ticks, None).end().unwrap();
    }
    let interval = Interval { begin: Some(Nanos(1)), end: Some(Nanos(100)) };
    let (cause, count) = (LossCause::Packets, Some(u64::MAX));
    builder.loss(Loss { stream, cause, count, interval });
    let source = builder.finish();
    for version in [Version::V1, Version::V2] {
        let (copy, _) = copy(&source, version);
        assert_eq!(events(&copy), events(&source));
        // The first packet has a number, too.
        let lost: Vec<_> = copy.losses().iter().map(|loss| (loss.cause, loss.count)).collect();
        assert_eq!(lost, [(LossCause::Packets, Some(u64::MAX - 1))]);
    }
}

/// An empty array aligns all the same, so the bits before it are content.
#[test]
fn nothing_behind_a_number_of_odd_width_is_still_there() {
    let empty = FieldClass::structure([("none", FieldClass::array(FieldClass::u64(), Some(0)))]);
    for last in [FieldClass::array(FieldClass::u64(), Some(0)), empty] {
        let odd = FieldClass::unsigned(35, Base::Decimal);
        let class = FieldClass::structure([("odd", odd), ("last", last.clone())]);
        let source = one(class, |p| p.u64(5).array(0, |p| p));
        for version in [Version::V1, Version::V2] {
            same(&source, version);
        }
    }
}
