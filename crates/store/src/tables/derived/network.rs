// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Network packets, with the threads and spans that sent and read them.
//!
//! A pass over the events in time order: spans of each thread are opened and closed, and kernel events
//! about buffers are joined with captured packets ([`lateralis_analysis::Network`]).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use foldhash::fast::RandomState;
use lateralis_analysis::{Network, Passage, Tied, Touch};
use lateralis_model::{Damage, Event, Quality, Source, StreamIndex, Trace, Writer};

use super::super::opened::Opened;
use super::super::small::{Cell, Rows};
use crate::facts::{About, At, Fact, Facts, Kinds, field_text};

/// Ethernet header, which the length of received packets does not include.
const ETHERNET_HEADER_BYTES: u32 = 14;
/// `LINKTYPE_ETHERNET` of pcap.
const ETHERNET: u64 = 1;
/// Largest number of interfaces, spans of a thread and threads with spans: no program intends more.
const INTERFACES_MAX: usize = 1 << 16;
const DEPTH_MAX: usize = 256;
const THREADS_MAX: usize = 1 << 20;

/// Meaning of an event for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Nothing,
    Packet,
    Queued,
    Started,
    /// It was received and waits; it is reported again when it is processed.
    Came,
    Arrived,
    Read,
    Interrupts,
    Returns,
}

impl Says {
    fn of(class: &str) -> Self {
        // `net:netif_rx` of tracefs and perf, `net_if_rx` of LTTng, which has different fields.
        match class.rsplit(':').next().unwrap_or(class) {
            "packet" if class == "packets:packet" => Self::Packet,
            "net_dev_queue" => Self::Queued,
            "net_dev_start_xmit" => Self::Started,
            "netif_rx" => Self::Came,
            "netif_receive_skb" => Self::Arrived,
            "skb_copy_datagram_iovec" => Self::Read,
            "softirq_entry" => Self::Interrupts,
            "softirq_exit" => Self::Returns,
            _ => Self::Nothing,
        }
    }
}

/// A thread with the spans that it is inside of, outermost first.
type Who = Rc<(Writer, String)>;

/// Columns of a packet.
struct Shown {
    stream: StreamIndex,
    interface: u32,
    direction: String,
    bytes: u64,
    captured: u64,
}

/// Adds the rows of one recording; `trace` carries the roles of its classes.
pub fn rows(
    opened: &Opened,
    trace: &Trace,
    rows: &mut Rows<'_>,
    damage: &mut Vec<Damage>,
) -> ControlFlow<()> {
    let says: Vec<Vec<Says>> = trace
        .stream_classes
        .iter()
        .map(|class| class.event_classes.iter().map(|event| Says::of(&event.name)).collect())
        .collect();
    let has = |what: Says| says.iter().flatten().any(|says| *says == what);
    if !has(Says::Packet) {
        damage.extend(opened.inner_damage());
        return ControlFlow::Continue(());
    }
    let mut facts = Facts::new(trace, &opened.recording.streams);
    facts.only(About::Spans);
    let mut pass = Pass {
        network: Network::default(),
        spans: HashMap::default(),
        interfaces: Vec::new(),
        numbers: HashMap::default(),
        interrupted: Vec::new(),
        // Without them, an interrupted thread would be mistaken for the sender.
        knows_interrupts: has(Says::Interrupts) && has(Says::Returns),
    };
    let mut events = opened.recording.source.events();
    while let Some(event) = events.next_event() {
        let at = facts.tell(&event, |_, at, fact| pass.span(at, fact));
        let class = says.get(event.stream_class_index as usize);
        match class.and_then(|class| class.get(event.class_index as usize)) {
            None | Some(Says::Nothing) => continue,
            Some(says) => pass.see(*says, &event, &at, facts.kinds()),
        }
        let done: Vec<_> = pass.network.done().collect();
        for tied in done {
            row(opened, &pass.interfaces, pass.knows_interrupts, rows, &tied)?;
        }
    }
    damage.extend(events.damage());
    for tied in pass.network.end() {
        row(opened, &pass.interfaces, pass.knows_interrupts, rows, &tied)?;
    }
    rows.flush()
}

struct Pass {
    network: Network<Shown, Who>,
    /// Open spans of threads: kind and key.
    spans: HashMap<u32, Vec<(u32, Option<u64>)>, RandomState>,
    interfaces: Vec<String>,
    numbers: HashMap<String, u32, RandomState>,
    /// By CPU: whether it handles a soft interrupt.
    interrupted: Vec<bool>,
    knows_interrupts: bool,
}

impl Pass {
    fn span(&mut self, at: &At, fact: Fact) {
        let Some(writer) = at.writer else { return };
        match fact {
            Fact::Begin { span, key } => {
                if self.spans.len() >= THREADS_MAX && !self.spans.contains_key(&writer.tid) {
                    return;
                }
                let open = self.spans.entry(writer.tid).or_default();
                if open.len() < DEPTH_MAX {
                    open.push((span, key));
                }
            }
            Fact::End { span, key } => {
                let of_thread = self.spans.get_mut(&writer.tid);
                if of_thread.is_some_and(|open| close(open, (span, key))) || key.is_none() {
                    return;
                }
                // Another thread than the one that began it may end it.
                let mut all = self.spans.values_mut();
                all.find_map(|open| close(open, (span, key)).then_some(()));
            }
            _ => {}
        }
    }

    /// The thread of an event and its current spans, if the thread itself acts.
    fn who(&self, at: &At, kinds: &Kinds) -> Option<Touch<Who>> {
        let writer = at.writer.filter(|writer| writer.tid != 0)?;
        let is_interrupted = at.cpu.and_then(|cpu| self.interrupted.get(cpu as usize));
        if is_interrupted == Some(&true) {
            return None;
        }
        let mut path = String::new();
        for (span, _) in self.spans.get(&writer.tid).into_iter().flatten() {
            let Some(kind) = kinds.spans.get(*span as usize) else { continue };
            if !path.is_empty() {
                path.push_str(" > ");
            }
            path.push_str(&kind.name);
        }
        Some(Touch { time: at.time, who: Rc::new((writer, path)) })
    }

    fn see(&mut self, says: Says, event: &Event<'_>, at: &At, kinds: &Kinds) {
        let Some(payload) = event.payload() else { return };
        let number = |name: &str| payload.get(name).and_then(|field| field.as_u64());
        let text = |name: &str| payload.get(name).map(field_text);
        match says {
            Says::Nothing => {}
            Says::Interrupts | Says::Returns => {
                let Some(cpu) = at.cpu.filter(|cpu| *cpu < 1 << 16) else { return };
                if self.interrupted.len() <= cpu as usize {
                    self.interrupted.resize(cpu as usize + 1, false);
                }
                self.interrupted[cpu as usize] = says == Says::Interrupts;
            }
            Says::Packet => self.packet(at, kinds, &number, &text),
            _ => {
                let Some(buffer) = number("skbaddr") else { return };
                if says == Says::Queued {
                    self.network.queued(buffer, self.who(at, kinds));
                    return;
                }
                if says == Says::Read {
                    if let Some(touch) = self.who(at, kinds) {
                        self.network.read(buffer, &touch);
                    }
                    return;
                }
                let (Some(bytes), Some(name)) = (number("len"), text("name")) else { return };
                let Some(interface) = self.interface(name) else { return };
                let is_inbound = says != Says::Started;
                let bytes = bytes as u32;
                let passage = Passage { interface, is_inbound, bytes };
                match says {
                    Says::Started => self.network.started(buffer, passage, at.time),
                    _ => self.network.arrived(buffer, passage, at.time, says == Says::Came),
                }
            }
        }
    }

    fn packet(
        &mut self,
        at: &At,
        kinds: &Kinds,
        number: &impl Fn(&str) -> Option<u64>,
        text: &impl Fn(&str) -> Option<String>,
    ) {
        let Some(interface) = text("interface").and_then(|name| self.interface(name)) else {
            return;
        };
        let direction = text("direction").unwrap_or_default();
        let bytes = number("original_bytes").unwrap_or(0);
        let captured = number("captured_bytes").unwrap_or(0);
        let is_inbound = direction == "inbound";
        let shown = Shown { stream: at.stream, interface, direction, bytes, captured };
        if at.is_told
            && let Some(Touch { time, who }) = self.who(at, kinds)
        {
            self.network.known(is_inbound, time, shown, who);
            return;
        }
        let has_header = is_inbound && number("link_type") == Some(ETHERNET);
        let header = if has_header { ETHERNET_HEADER_BYTES } else { 0 };
        let bytes = (bytes as u32).saturating_sub(header);
        self.network.captured(Passage { interface, is_inbound, bytes }, at.time, shown);
    }

    fn interface(&mut self, name: String) -> Option<u32> {
        if let Some(number) = self.numbers.get(&name) {
            return Some(*number);
        }
        if self.interfaces.len() >= INTERFACES_MAX {
            return None;
        }
        let number = self.interfaces.len() as u32;
        self.interfaces.push(name.clone());
        self.numbers.insert(name, number);
        Some(number)
    }
}

/// Closes the youngest span of its kind and key, if there is one.
fn close(open: &mut Vec<(u32, Option<u64>)>, span: (u32, Option<u64>)) -> bool {
    let place = open.iter().rposition(|one| *one == span);
    place.map(|place| open.remove(place)).is_some()
}

fn row(
    opened: &Opened,
    interfaces: &[String],
    knows_interrupts: bool,
    rows: &mut Rows<'_>,
    tied: &Tied<Shown, Who>,
) -> ControlFlow<()> {
    let shown = &tied.packet;
    let is_missing = |touch: &Option<Touch<Who>>| {
        let time = touch.as_ref().map_or(tied.time, |touch| touch.time);
        opened.gaps().between(time.min(tied.time), time.max(tied.time))
    };
    let is_known = tied.sent.is_some() || tied.read.is_some();
    let is_sure = tied.is_certain && knows_interrupts | tied.sent.is_none();
    let is_exact = is_known && is_sure && !is_missing(&tied.sent) && !is_missing(&tied.read);
    let label = opened.label_of(shown.stream);
    let [sent_ts, sent_pid, sent_tid, sent_thread, sent_in] = cells(opened, tied.sent.as_ref());
    let [read_ts, read_pid, read_tid, read_thread, read_in] = cells(opened, tied.read.as_ref());
    rows.row(&[
        Cell::Word(label.as_ptr() as u64, Some(label)),
        Cell::Int(tied.time.0),
        interfaces.get(shown.interface as usize).map(String::as_str).into(),
        Cell::Text(&shown.direction),
        Cell::Int(shown.bytes as i64),
        Cell::Int(shown.captured as i64),
        sent_ts,
        sent_pid,
        sent_tid,
        sent_thread,
        sent_in,
        read_ts,
        read_pid,
        read_tid,
        read_thread,
        read_in,
        Cell::Text(if is_exact { Quality::Exact.name() } else { Quality::Unknown.name() }),
    ])
}

fn cells<'a>(opened: &'a Opened, touch: Option<&'a Touch<Who>>) -> [Cell<'a>; 5] {
    let Some(Touch { time, who }) = touch else { return [Cell::Null; 5] };
    let (writer, path) = &**who;
    let thread = opened.owners().thread(writer.tid);
    let path = Some(path.as_str()).filter(|path| !path.is_empty());
    let number = |number: u32| Cell::Int(number.into());
    [Cell::Int(time.0), number(writer.pid), number(writer.tid), thread.into(), path.into()]
}
