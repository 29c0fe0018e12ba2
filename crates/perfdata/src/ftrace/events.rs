// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decodes the records of pages one by one, in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lateralis_model::{Damage, DamageReason, Event, Events, Interval, StreamIndex, Writer};
use lateralis_units::{Nanos, Ticks};

use super::page::Walk;
use super::pages::{Page, Pages};
use super::trace::{FtraceTrace, Run};
use crate::notes::Notes;
use crate::row::Row;
use crate::wire::unsigned;

/// Names of threads without a known name, and of the idle thread, as in trace-cmd.
const UNKNOWN: &str = "<...>";
const IDLE: &str = "<idle>";

/// An open run: its next record is known.
struct Cursor<'a> {
    run: Run,
    pages: Pages<'a>,
    number: u32,
    page: Page<'a>,
    walk: Walk,
    ticks: u64,
    /// First byte of the record in its page, and the one after its last.
    record: (usize, usize),
}

/// Sort key of records: equal times keep the order of the file.
type Key = (u64, u32, u32);

impl Cursor<'_> {
    fn key(&self) -> Key {
        (self.ticks, self.run.stream, self.number)
    }
}

/// Properties of the current event besides its values.
#[derive(Debug, Clone, Copy, Default)]
struct Head {
    stream: u32,
    class: u32,
    ticks: u64,
    time: Nanos,
    writer: Option<Writer>,
}

/// The events of a [`FtraceTrace`].
pub struct FtraceEvents<'a> {
    trace: &'a FtraceTrace,
    interval: Interval,
    /// Index of the first run that has not been opened.
    waiting: usize,
    open: Vec<Option<Cursor<'a>>>,
    /// Indices into `open` by the keys of their records.
    heap: BinaryHeap<Reverse<(Key, usize)>>,
    free: Vec<usize>,
    current: Option<usize>,
    /// Key up to which the current run may continue before another one must.
    bound: Key,
    thread: Option<(u32, &'a str)>,
    head: Head,
    row: Row,
    notes: Notes,
}

impl<'a> FtraceEvents<'a> {
    /// Events of an interval.
    pub fn new(trace: &'a FtraceTrace, interval: Interval) -> Self {
        Self {
            trace,
            interval,
            waiting: 0,
            open: Vec::new(),
            heap: BinaryHeap::new(),
            free: Vec::new(),
            current: None,
            bound: (0, 0, 0),
            thread: None,
            head: Head::default(),
            row: Row::default(),
            notes: Notes::new(&trace.name),
        }
    }

    /// Opens a run at the first record that may be needed.
    fn cursor(&self, run: Run) -> Option<Cursor<'a>> {
        let trace = self.trace;
        let stream = &trace.streams[run.stream as usize];
        let is_before = |ticks: u64| {
            self.interval.begin.is_some_and(|begin| trace.nanos(stream, ticks) < begin)
        };
        if is_before(run.last) {
            return None;
        }
        let file = (*trace.files[stream.file]).as_ref();
        let mut pages = Pages::new(file, &stream.content, stream.page_bytes);
        let layout = trace.data.layout;
        // Pages of a run are in time order: the last one that begins before the interval may reach into
        // it.
        let (mut number, mut end) = (run.begin, run.end);
        while is_before(run.first) && end - number > 1 {
            let middle = number + (end - number) / 2;
            let page = pages.page(middle)?;
            let begin = unsigned(page.bytes().get(..8)?, layout.order)?;
            let begins_before = is_before(trace.ticks(stream, begin));
            *(if begins_before { &mut number } else { &mut end }) = middle;
        }
        let page = pages.page(number)?;
        let walk = Walk::new(page.bytes(), layout);
        let mut cursor = Cursor { run, pages, number, page, walk, ticks: 0, record: (0, 0) };
        self.step(&mut cursor).then_some(cursor)
    }

    /// Steps to the next record of a run.
    #[inline]
    fn step(&self, cursor: &mut Cursor<'a>) -> bool {
        let trace = self.trace;
        loop {
            let next = cursor.walk.next(cursor.page.bytes(), trace.data.order);
            if let Some((stamp, begin, end)) = next {
                let stream = &trace.streams[cursor.run.stream as usize];
                cursor.ticks = trace.ticks(stream, stamp);
                cursor.record = (begin, end);
                return true;
            }
            cursor.number += 1;
            if cursor.number >= cursor.run.end {
                return false;
            }
            let Some(page) = cursor.pages.page(cursor.number) else { return false };
            cursor.walk = Walk::new(page.bytes(), trace.data.layout);
            cursor.page = page;
        }
    }

    fn waiting_key(&self) -> Option<Key> {
        self.trace.runs.get(self.waiting).map(|run| (run.first, run.stream, run.begin))
    }

    /// Steps to the next record of all runs; false after the last.
    fn next(&mut self) -> bool {
        if let Some(index) = self.current
            && let Some(mut cursor) = self.open[index].take()
        {
            if self.step(&mut cursor) {
                let key = cursor.key();
                self.open[index] = Some(cursor);
                if key <= self.bound {
                    return true;
                }
                self.heap.push(Reverse((key, index)));
            } else {
                self.free.push(index);
            }
            self.current = None;
        }
        // Runs that begin before the first open one must be opened.
        loop {
            let opened = self.heap.peek().map(|Reverse((key, _))| *key);
            match (self.waiting_key(), opened) {
                (Some(waits), key) if key.is_none_or(|key| waits < key) => {
                    let run = self.trace.runs[self.waiting];
                    self.waiting += 1;
                    let Some(cursor) = self.cursor(run) else { continue };
                    let key = cursor.key();
                    let index = self.free.pop().unwrap_or(self.open.len());
                    if index == self.open.len() {
                        self.open.push(None);
                    }
                    self.open[index] = Some(cursor);
                    self.heap.push(Reverse((key, index)));
                }
                (_, None) => return false,
                _ => break,
            }
        }
        let Some(Reverse((_, index))) = self.heap.pop() else { return false };
        self.current = Some(index);
        let opened = self.heap.peek().map(|Reverse((key, _))| *key);
        let bounds = self.waiting_key().into_iter().chain(opened);
        self.bound = bounds.min().unwrap_or((u64::MAX, u32::MAX, u32::MAX));
        true
    }

    /// Decodes the current record; false if it is not an event.
    fn decode(&mut self, index: usize) -> bool {
        let Self { trace, open, row, notes, head, thread, .. } = self;
        let Some(cursor) = &open[index] else { return false };
        let stream = &trace.streams[cursor.run.stream as usize];
        let order = trace.data.order;
        let (begin, end) = cursor.record;
        let Some(record) = cursor.page.bytes().get(begin..end) else { return false };
        let id = record.get(..2).and_then(|bytes| unsigned(bytes, order));
        let group = &trace.groups[stream.group];
        let class = id.and_then(|id| group.event(id as u16));
        // Records that are not events were reported on opening.
        let Some((class, format)) = class else { return false };
        let tid = format.thread_offset.and_then(|offset| {
            let bytes = record.get(offset..)?.first_chunk::<4>()?;
            unsigned(bytes, order).map(|tid| tid as u32)
        });
        let comm = match (tid, &*thread) {
            (Some(0), _) => IDLE,
            (None, _) => UNKNOWN,
            (Some(tid), Some((known, comm))) if tid == *known => comm,
            (Some(tid), _) => {
                let comm = trace.data.cmdlines.get(&tid).map_or(UNKNOWN, String::as_str);
                *thread = Some((tid, comm));
                comm
            }
        };
        row.clear();
        row.u64(u64::from(stream.cpu));
        row.i64(tid.map_or(-1, |tid| i64::from(tid as i32)));
        row.bytes(comm.as_bytes());
        let decoded = format
            .decode_common(record, order, row)
            .and_then(|()| format.decode(record, order, row));
        let (ticks, time) = (cursor.ticks, trace.nanos(stream, cursor.ticks));
        if decoded.is_err() {
            let page = u64::from(cursor.number) * u64::from(stream.page_bytes);
            let (from, to) = stream.content.in_file(page + begin as u64);
            let to = if from == to { to + record.len() as u64 } else { to };
            notes.damage(from, to, DamageReason::FieldBeyondContent, Some(time));
            return false;
        }
        let writer = tid.map(|tid| Writer { pid: tid, tid });
        *head = Head { stream: cursor.run.stream, class: *class, ticks, time, writer };
        true
    }
}

impl Events for FtraceEvents<'_> {
    fn advance(&mut self) -> bool {
        while self.next() {
            let Some(index) = self.current else { return false };
            if !self.decode(index) {
                continue;
            }
            if self.interval.begin.is_some_and(|begin| self.head.time < begin) {
                continue;
            }
            if self.interval.end.is_some_and(|end| self.head.time > end) {
                // Nothing earlier follows, except in damaged data.
                if self.trace.is_ordered() {
                    return false;
                }
                continue;
            }
            return true;
        }
        false
    }

    fn event(&self) -> Event<'_> {
        let stream = &self.trace.streams[self.head.stream as usize];
        let class_index = self.trace.groups[stream.group].class;
        let class = &self.trace.trace.stream_classes[class_index as usize];
        Event {
            stream: StreamIndex(self.head.stream),
            stream_class_index: class_index,
            stream_class: class,
            class_index: self.head.class,
            class: &class.event_classes[self.head.class as usize],
            ticks: Some(Ticks(self.head.ticks)),
            time: self.head.time,
            writer: self.head.writer,
            packet: &stream.packet,
            bytes: &self.row.bytes,
            packet_slots: &[],
            slots: &self.row.slots,
        }
    }

    fn time(&self) -> Nanos {
        self.head.time
    }

    fn damage(&self) -> Vec<Damage> {
        self.notes.damage_list().to_vec()
    }
}
