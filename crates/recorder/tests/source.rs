// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records of sources become packets that can be read alone, with every loss in its interval; and
//! a session writes them in addition to those of programs.

use std::time::Duration;

use lateralis_recorder::source::{
    MemorySink, PacketBuilder, Refused, Sink, Source, SourceReport, StreamPlan, Thread, register,
};
use lateralis_recorder::stream::checksum_holds;
use lateralis_recorder::walk::RecordPlan;
use lateralis_ring::{LossCounts, PacketHeader, abi};

const TEXT: &[u8] = b"schema test; subsystem s { event E (n: u32, text: string, list: [u64]) };";

fn stream() -> StreamPlan {
    StreamPlan { name: "test_0".to_owned(), number: 3, is_cpu: true }
}

/// Delivers a number each time that it is drained.
#[derive(Default)]
struct Numbers {
    next: u32,
    lost: u64,
    /// Called once, when this many numbers have been delivered.
    after: Option<(u32, fn())>,
}

impl Numbers {
    fn give(&mut self, sink: &mut dyn Sink, count: u32) {
        for _ in 0..count {
            let n = self.next;
            self.next += 1;
            let at = (sink.now(), Some(Thread { pid: 10, tid: 10 + n % 2 }));
            sink.record(0, at, 16, &mut |payload| {
                payload.put(4, &n.to_ne_bytes());
                payload.text(&b"seventeen letters"[..n as usize % 17]);
                payload.sequence(8, &[7; 16]);
            });
        }
    }
}

impl Source for Numbers {
    fn name(&self) -> &str {
        "numbers"
    }

    fn schemas(&self) -> Vec<lateralis_recorder::classes::RegisteredSchema> {
        register(lateralis_pleco::compile("test.pleco", TEXT).schema)
    }

    fn streams(&self) -> Vec<StreamPlan> {
        vec![stream()]
    }

    fn begin(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.give(sink, 1);
        Ok(())
    }

    fn period(&self) -> Duration {
        Duration::from_millis(2)
    }

    fn drain(&mut self, sink: &mut dyn Sink) -> f64 {
        self.give(sink, 100);
        self.lost += 5;
        let now = sink.now();
        sink.lose(0, LossCounts { full: 5, ..LossCounts::default() }, now);
        if let Some((_, act)) = self.after.take_if(|(count, _)| self.next >= *count) {
            act();
        }
        0.0
    }

    fn pause(&mut self, _paused: bool) {}

    fn finish(&mut self, sink: &mut dyn Sink) -> SourceReport {
        self.give(sink, 1);
        let lost = [("too fast".to_owned(), self.lost)].into();
        SourceReport { lost, ..SourceReport::default() }
    }
}

#[test]
fn every_packet_can_be_read_alone_and_losses_have_their_place() {
    let mut source = Numbers::default();
    let mut sink = MemorySink::new(&source, 4096, 1 << 40);
    source.begin(&mut sink).unwrap();
    for _ in 0..3 {
        source.drain(&mut sink);
    }
    source.finish(&mut sink);
    sink.close(0);
    let mut plan = RecordPlan::new(false);
    for entry in source.schemas() {
        plan.add(entry.base_id, &entry.schema);
    }
    let (mut events, mut lost, mut counts) = (0, 0, Vec::new());
    for (sequence, packet) in sink.packets[0].iter_mut().enumerate() {
        assert!(packet.len() <= 4096 && checksum_holds(packet, false));
        let header = PacketHeader::decode(packet[..128].try_into().unwrap(), false);
        assert_eq!((header.sequence, header.cpu_id), (sequence as u64, 3));
        let slack = (header.packet_bits - header.content_bits) / 8;
        let times = header.timestamp_begin..=header.timestamp_end;
        let walked = plan.walk(&packet[128..], slack, times, &mut counts);
        assert_eq!(walked.fault, None);
        if walked.events > 0 {
            assert_eq!(plan.header(&packet[128..], 0).unwrap().0, abi::ID_WRITER);
        } else {
            // It contains only the losses.
            assert_eq!(header.lost.full, lost + 5);
        }
        events += walked.events;
        lost = header.lost.full;
    }
    assert_eq!((events, lost), (302, 15));
    // The thread changes with every record.
    assert!(counts[usize::from(abi::ID_WRITER)] >= 302);
    let intervals = sink.streams[0].ring.intervals();
    assert_eq!(intervals.iter().map(|one| one.lost.full).collect::<Vec<_>>(), [5, 5, 5]);
}

#[test]
fn what_does_not_fit_is_refused_and_counted() {
    let mut builder = PacketBuilder::new(4096, 100);
    let thread = Some(Thread { pid: 1, tid: 2 });
    let big = builder.record(200, thread, 16, |payload| payload.put(1, &[0; 5000]));
    assert_eq!(big, Err(Refused::TooBig));
    assert!(builder.is_empty());
    assert_eq!(builder.record(200, thread, 16, |payload| payload.put(1, &[0; 3900])), Ok(()));
    let more = builder.record(201, thread, 16, |payload| payload.put(1, &[0; 500]));
    assert_eq!(more, Err(Refused::Full));
    // Time does not go back, and a gap that readers could not follow ends the packet.
    assert_eq!(builder.record(150, thread, 16, |_| {}), Ok(()));
    assert_eq!((builder.last_time(), builder.clamped()), (200, 1));
    let late = builder.record(200 + (1 << abi::TIME_BITS), thread, 16, |_| {});
    assert_eq!(late, Err(Refused::Full));

    let schemas = register(lateralis_pleco::compile("test.pleco", TEXT).schema);
    let mut sink = MemorySink::with(vec![stream()], &schemas, 4096, 1 << 40);
    let sink_ref: &mut dyn Sink = &mut sink;
    sink_ref.record(0, (5, thread), 16, &mut |payload| payload.sequence(1, &[0; 9000]));
    assert_eq!(sink.streams[0].ring.losses().too_big, 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_records_a_source_without_any_program() {
    use lateralis_recorder::RecordOptions;
    use lateralis_recorder::linux::Session;
    use rustix::process::Signal;

    let root = std::env::temp_dir().join(format!("lateralis-source-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    let mut options = RecordOptions::new(root.join("out"));
    options.area_dir = Some(root.join("areas"));
    let mut session = Session::new(options).unwrap();
    // The session ends when the source has delivered enough, however long that takes. It catches this
    // signal before it drains anything.
    let stop = || rustix::process::kill_process(rustix::process::getpid(), Signal::TERM).unwrap();
    let source = Numbers { after: Some((300, stop)), ..Numbers::default() };
    session.add_source(Box::new(source)).unwrap();
    let summary = session.run(&mut |_| {}).unwrap();
    let report = summary.report;
    assert!(report.complete && report.problems.is_empty(), "{:?}", report.problems);
    let [source] = &report.sources[..] else { panic!("{:?}", report.sources) };
    assert_eq!(source.name, "numbers");
    assert_eq!(source.lost["too fast"], report.totals.lost.full);
    assert_eq!(report.totals.events % 100, 2);
    assert!(report.totals.events > 300);
    assert_eq!(report.events["s:E"], report.totals.events);
    let [stream] = &report.streams[..] else { panic!("{:?}", report.streams) };
    assert_eq!((stream.cpu, stream.area_id.as_str()), (Some(3), source.area_id.as_str()));
    assert_eq!(stream.files, ["ctf/test_0"]);
    let bytes = std::fs::read(root.join("out").join(&stream.files[0])).unwrap();
    assert_eq!(bytes.len() as u64, stream.bytes);
    std::fs::remove_dir_all(&root).unwrap();
}
