// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of kernel activity for threads and devices.
//!
//! A pass over the events in time order, for traces that have any.

use std::ops::ControlFlow;

use lateralis_analysis::Gaps;
use lateralis_model::{Damage, Quality, Source, StreamIndex, Trace, Writer};
use lateralis_semantics::kernel::block::{Request, RequestStatus};
use lateralis_semantics::kernel::calls::{Call, CallName, Moves};
use lateralis_semantics::kernel::faults::Fault;
use lateralis_semantics::kernel::idle::IdleStay;
use lateralis_semantics::kernel::memory::Allocation;
use lateralis_semantics::kernel::network::DevicePacket;
use lateralis_semantics::kernel::{Activity, KernelEvents, Topics};
use lateralis_units::Nanos;

use super::super::opened::Opened;
use super::super::small::{Cell, Rows, Small};
use super::rows::fixed;
use crate::facts::{At, Doubts, Facts};

/// Topics of a table; `None` for tables of other contents.
pub fn topics(small: Small) -> Option<Topics> {
    match small {
        Small::Calls => Some(Topics { calls: true, ..Topics::default() }),
        Small::BlockRequests => Some(Topics { block: true, ..Topics::default() }),
        Small::PageFaults => Some(Topics { faults: true, ..Topics::default() }),
        Small::DevicePackets => Some(Topics { network: true, ..Topics::default() }),
        Small::IdleStates => Some(Topics { idle: true, ..Topics::default() }),
        Small::Allocations => Some(Topics { memory: true, ..Topics::default() }),
        _ => None,
    }
}

/// Adds the rows of one recording; `trace` carries the roles of its classes.
pub fn rows(
    topics: Topics,
    opened: &Opened,
    trace: &Trace,
    rows: &mut Rows<'_>,
    damage: &mut Vec<Damage>,
) -> ControlFlow<()> {
    let mut kernel = KernelEvents::new(trace, topics, opened.recording.successions());
    if !kernel.has_any() {
        damage.extend(opened.inner_damage());
        return ControlFlow::Continue(());
    }
    let mut facts = Facts::new(trace, &opened.recording.streams);
    let gaps = opened.gaps();
    let mut doubts = Doubts::new(&facts, Nanos(i64::MIN));
    let mut events = opened.recording.source.events();
    let mut activities = Vec::new();
    let mut ended = None;
    while let Some(event) = events.next_event() {
        ended = ended.max(Some(event.time));
        let at = facts.of(&event, |at, fact| {
            ended = ended.max(Some(fact.lasts_until(at)));
            doubts.see(at, &fact, gaps);
        });
        if !kernel.wants(event.stream_class_index, event.class_index) {
            continue;
        }
        let writer = at.writer.filter(|_| !doubts.is_in_doubt(&at, gaps));
        kernel.event(&event, &At { writer, ..at }, &mut |activity| activities.push(*activity));
        for activity in activities.drain(..) {
            row(opened, &kernel, &activity, rows)?;
        }
    }
    damage.extend(events.damage());
    kernel.finish(ended, &mut |activity| activities.push(*activity));
    for activity in &activities {
        row(opened, &kernel, activity, rows)?;
    }
    // The next recording has its own numbering of names.
    rows.flush()
}

fn row(
    opened: &Opened,
    kernel: &KernelEvents,
    activity: &Activity,
    rows: &mut Rows<'_>,
) -> ControlFlow<()> {
    match activity {
        Activity::Call(call) => call_row(opened, kernel.calls().names(), call, rows),
        Activity::Request(request) => request_row(opened, request, rows),
        Activity::Merge(_) => ControlFlow::Continue(()),
        Activity::Fault(fault) => fault_row(opened, fault, rows),
        Activity::Packet(packet) => {
            packet_row(opened, kernel.network_devices().names(), packet, rows)
        }
        Activity::Idle(stay) => idle_row(opened, stay, rows),
        Activity::Memory(allocation) => allocation_row(opened, allocation, rows),
    }
}

fn recording(opened: &Opened, stream: StreamIndex) -> Cell<'_> {
    let label = opened.label_of(stream);
    Cell::Word(label.as_ptr() as u64, Some(label))
}

/// Process, thread, name of the thread.
fn who(opened: &Opened, writer: Option<Writer>) -> [Cell<'_>; 3] {
    let Some(Writer { pid, tid }) = writer else { return [Cell::Null; 3] };
    let name = opened.owners().thread(tid);
    [Some(pid).into(), Some(tid).into(), Cell::Word(tid.into(), name)]
}

/// Quality of values that depend on the thread of an event.
fn of_thread(writer: Option<Writer>) -> Quality {
    if writer.is_some() { Quality::Exact } else { Quality::Unknown }
}

/// Quality of a duration between two events, if both exist.
fn quality(gaps: &Gaps, begin: Option<Nanos>, end: Option<Nanos>) -> Quality {
    match (begin, end) {
        (Some(begin), Some(end)) if !gaps.touch(begin.min(end), end) => Quality::Exact,
        _ => Quality::Unknown,
    }
}

fn call_row(
    opened: &Opened,
    names: &[CallName],
    call: &Call,
    rows: &mut Rows<'_>,
) -> ControlFlow<()> {
    let Some(name) = names.get(call.name as usize) else {
        return ControlFlow::Continue(());
    };
    let [pid, tid, thread] = who(opened, call.writer);
    let duration = call.begin.zip(call.end).map(|(begin, end)| end.since(begin).max(0));
    let error = call.error_name();
    let status = match (call.begin, call.end) {
        (Some(_), Some(_)) => "complete",
        (None, _) => "no_begin",
        (Some(_), None) if call.is_overtaken => "no_end",
        (Some(_), None) => "unfinished",
    };
    rows.row(&[
        recording(opened, call.stream),
        call.begin.or(call.end).into(),
        call.end.into(),
        duration.map_or(Cell::Null, Cell::Int),
        Cell::Word(call.name.into(), Some(&name.name)),
        fixed(name.layer.name()),
        pid,
        tid,
        thread,
        call.value.map_or(Cell::Null, Cell::Int),
        error.as_deref().into(),
        call.bytes().into(),
        name.moves.map(Moves::name).map_or(Cell::Null, fixed),
        fixed(status),
        fixed(quality(opened.gaps(), call.begin, call.end).name()),
    ])
}

fn request_row(opened: &Opened, request: &Request, rows: &mut Rows<'_>) -> ControlFlow<()> {
    let [pid, tid, thread] = who(opened, request.writer);
    let Request { inserted, issued, completed, .. } = *request;
    let is_complete = request.status == RequestStatus::Complete;
    let of_times = match request.service_ns.or(request.queue_ns) {
        Some(_) if is_complete => quality(opened.gaps(), inserted.or(issued), completed),
        _ => Quality::Unknown,
    };
    rows.row(&[
        recording(opened, request.stream),
        inserted.or(issued).or(completed).into(),
        completed.into(),
        Cell::Text(&request.device.to_string()),
        fixed(request.operation.name()),
        Cell::Int(request.sector.cast_signed()),
        Cell::Int(request.bytes.cast_signed()),
        issued.into(),
        request.queue_ns.into(),
        request.service_ns.into(),
        Cell::Int(request.requeues.into()),
        Cell::Int(request.error),
        pid,
        tid,
        thread,
        fixed(request.status.name()),
        fixed(of_times.name()),
    ])
}

fn fault_row(opened: &Opened, fault: &Fault, rows: &mut Rows<'_>) -> ControlFlow<()> {
    let [pid, tid, thread] = who(opened, fault.writer);
    rows.row(&[
        recording(opened, fault.stream),
        Cell::Int(fault.time.0),
        fixed(fault.kind.name()),
        fault.address.into(),
        fault.ip.into(),
        fault.cpu.into(),
        pid,
        tid,
        thread,
        fixed(of_thread(fault.writer).name()),
    ])
}

fn packet_row(
    opened: &Opened,
    names: &[String],
    packet: &DevicePacket,
    rows: &mut Rows<'_>,
) -> ControlFlow<()> {
    let [pid, tid, thread] = who(opened, packet.writer);
    let name = names.get(packet.device as usize).map(String::as_str);
    rows.row(&[
        recording(opened, packet.stream),
        Cell::Int(packet.time.0),
        Cell::Word(packet.device.into(), name),
        fixed(packet.step.name()),
        Some(packet.bytes).into(),
        packet.cpu.into(),
        pid,
        tid,
        thread,
        fixed(of_thread(packet.writer).name()),
    ])
}

fn idle_row(opened: &Opened, stay: &IdleStay, rows: &mut Rows<'_>) -> ControlFlow<()> {
    let end = stay.end.or(stay.seen_until);
    let duration = stay.begin.zip(end).map(|(begin, end)| end.since(begin).max(0));
    let (status, at_most) = match (stay.begin, stay.end, stay.seen_until) {
        (Some(_), Some(_), _) => ("complete", Quality::Exact),
        (None, ..) => ("no_begin", Quality::Unknown),
        (Some(_), None, Some(_)) => ("unfinished", Quality::LowerBound),
        (Some(_), None, None) => ("no_end", Quality::Unknown),
    };
    rows.row(&[
        recording(opened, stay.stream),
        stay.begin.or(end).into(),
        end.into(),
        duration.map_or(Cell::Null, Cell::Int),
        Cell::Int(stay.cpu.into()),
        stay.state.into(),
        fixed(status),
        fixed(quality(opened.gaps(), stay.begin, end).and(at_most).name()),
    ])
}

fn allocation_row(opened: &Opened, of: &Allocation, rows: &mut Rows<'_>) -> ControlFlow<()> {
    // Events that freed this address and allocated it again may be missing.
    let is_whole = !opened.gaps().touch(Nanos(i64::MIN), of.time);
    let of_freed = match (of.is_free, of.owner) {
        (false, _) => Quality::Exact,
        (true, Some(_)) if is_whole => Quality::Exact,
        (true, _) => Quality::Unknown,
    };
    let [pid, tid, thread] = who(opened, of.writer);
    rows.row(&[
        recording(opened, of.stream),
        Cell::Int(of.time.0),
        fixed(of.allocator.name()),
        Cell::Int(of.is_free.into()),
        Some(of.address).into(),
        of.size.into(),
        of.cpu.into(),
        pid,
        tid,
        thread,
        of.owner.map(|owner| owner.tid).into(),
        fixed(of_thread(of.writer).and(of_freed).name()),
    ])
}
