// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From FXT to the model.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use lateralis_model::role::{KEY_PROCESS, PHASE};
use lateralis_model::{
    Attribute, Clock, Damage, DamageReason, EnvValue, Interval, Loss, LossCause, MemoryTrace,
    StreamIndex, Writer,
};
use lateralis_units::Nanos;

use super::records::{Provider, Reader, Record, bits};
use super::{MAGIC, PHASES};
use crate::Error;
use crate::dynamic::{ClassText, Dyn, Dynamic, Ends, Lane, Named, Names, Sink, Survey};
use crate::phases::{self, Track};

/// Tags beside the types of events.
const OTHER: u32 = 0x100;
/// A complete event whose end is not before its beginning.
const WHOLE: u32 = 0x200;
/// Records in a row that must be possible for the place to count as found.
const CHAIN: usize = 4;

/// Whether a file is FXT, by its first 8 bytes.
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    first.starts_with(&MAGIC.to_le_bytes())
}

/// Reads a file called `name`, whose events may take `limit_bytes` of memory.
///
/// Time is linear in the length of the file; it is read twice, three times if ends have to be
/// named.
///
/// # Errors
/// If it does not begin as the format says.
pub fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> Result<MemoryTrace, Error> {
    if !sniff(bytes) {
        let help = "expected the magic number of FXT, 10 00 04 46 78 54 16 00";
        return Err(Error { what: "no FXT trace", place: name.to_owned(), help });
    }
    let mut builder = MemoryTrace::builder("FXT", limit_bytes);
    let mut survey = Survey::default();
    let mut walk = Walk::new(name, bytes, Names::default());
    walk.ends = Some(Ends::new(limit_bytes));
    walk.run(&mut survey);
    let mut names = Names::default();
    if let Some(ends) = walk.ends.take().filter(Ends::has_unnamed) {
        survey = Survey::default();
        let mut again = Walk::new(name, bytes, ends.names());
        again.run(&mut survey);
        names = again.names;
        names.rewind();
    }
    builder.names().processes = walk.processes;
    builder.names().threads = walk.threads;
    let mut providers: Vec<_> = walk.providers.into_iter().collect();
    providers.sort_by_key(|(id, _)| *id);
    for (id, provider) in providers.into_iter().filter(|(_, provider)| !provider.name.is_empty()) {
        let entry = (format!("provider.{id}"), EnvValue::Text(provider.name));
        builder.describe().environment.push(entry);
    }
    walk.damage.into_iter().for_each(|damage| builder.damage(damage));
    for (what, count) in walk.unread {
        builder.remark(format!("{count} {what}"));
    }
    if walk.endless > 0 {
        builder.remark(format!(
            "{} complete events end before they begin: their spans are unfinished",
            walk.endless
        ));
    }
    let mut fill = survey.finish(builder, Clock::new("fxt", 1_000_000_000, 0, 0), attributes);
    for mut loss in walk.losses {
        loss.stream = fill.stream(Lane::Thread).unwrap_or(StreamIndex(0));
        fill.builder.loss(loss);
    }
    Walk::new(name, bytes, names).run(&mut fill);
    Ok(fill.finish())
}

struct Walk<'a> {
    file: &'a str,
    bytes: &'a [u8],
    providers: HashMap<u64, Provider>,
    processes: BTreeMap<u32, String>,
    threads: BTreeMap<u32, String>,
    /// Numbers for ids beyond 32 bits.
    ids: HashMap<u64, u32>,
    damage: Vec<Damage>,
    losses: Vec<Loss>,
    unread: BTreeMap<&'static str, u64>,
    endless: u64,
    /// In the first pass: edges of spans, some of which may have no name.
    ends: Option<Ends<Track>>,
    names: Names,
    /// Number of the next event.
    next: u64,
}

impl<'a> Walk<'a> {
    fn new(file: &'a str, bytes: &'a [u8], names: Names) -> Self {
        Self {
            file,
            bytes,
            providers: HashMap::new(),
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            ids: HashMap::new(),
            damage: Vec::new(),
            losses: Vec::new(),
            unread: BTreeMap::new(),
            endless: 0,
            ends: None,
            names,
            next: 0,
        }
    }

    fn run(&mut self, sink: &mut dyn Sink) {
        let mut at = 0;
        let mut current = 0;
        while at < self.bytes.len() {
            let reason = match Record::first(&self.bytes[at..]) {
                Ok((record, length)) => {
                    // Taken out, so that it can be read while the rest changes.
                    let mut provider = self.providers.remove(&current).unwrap_or_default();
                    let mut next = current;
                    let done = self.record(record, &mut provider, &mut next, sink);
                    self.providers.entry(current).or_insert(provider);
                    current = next;
                    at += length;
                    if done.is_some() {
                        continue;
                    }
                    at -= length;
                    let rule = "the parts of a record must fit into it";
                    if self.is_chain(at + length) {
                        self.damaged(at, at + length, DamageReason::BadValue { rule });
                        at += length;
                        continue;
                    }
                    DamageReason::BadValue { rule }
                }
                Err(Some(missing)) => DamageReason::Truncated { missing_bytes: Some(missing) },
                Err(None) => {
                    DamageReason::BadValue { rule: "a record must have a type and a size" }
                }
            };
            // Records begin at words.
            let mut next = (at + 8).min(self.bytes.len());
            while next < self.bytes.len() && !self.is_chain(next) {
                next = (next + 8).min(self.bytes.len());
            }
            self.damaged(at, next, reason);
            at = next;
        }
    }

    fn is_chain(&self, at: usize) -> bool {
        let mut at = at;
        for seen in 0..CHAIN {
            if at == self.bytes.len() {
                return seen > 0;
            }
            let Ok((record, length)) = Record::first(self.bytes.get(at..).unwrap_or(&[])) else {
                return false;
            };
            let header = record.header;
            let possible = match bits(header, 0, 3) {
                0 => (1..=4).contains(&bits(header, 16, 19)),
                1 => length >= 16,
                2 => bits(header, 32, 46).next_multiple_of(8) + 8 == length as u64,
                3 => length == 24,
                4 => bits(header, 16, 19) <= 10 && length >= 16,
                _ => length >= 16,
            };
            if !possible {
                return false;
            }
            at += length;
        }
        true
    }

    fn damaged(&mut self, begin: usize, end: usize, reason: DamageReason) {
        if self.damage.len() < 10_000 {
            self.damage.push(Damage {
                file: self.file.to_owned(),
                begin_bytes: begin as u64,
                end_bytes: end as u64,
                reason,
                interval: Interval::default(),
            });
        }
    }

    /// An id of the kernel as one of 32 bits.
    fn id(&mut self, koid: u64) -> u32 {
        if let Ok(id) = u32::try_from(koid) {
            return id;
        }
        let next = 0x4000_0000u32.saturating_add(self.ids.len() as u32);
        *self.ids.entry(koid).or_insert(next)
    }

    fn writer(&mut self, (pid, tid): (u64, u64)) -> Writer {
        Writer { pid: self.id(pid), tid: self.id(tid) }
    }

    /// Takes a record; `None` if its parts do not fit into it.
    fn record(
        &mut self,
        record: Record<'_>,
        provider: &mut Provider,
        next: &mut u64,
        sink: &mut dyn Sink,
    ) -> Option<()> {
        let header = record.header;
        match bits(header, 0, 3) {
            0 => self.metadata(record, provider, next)?,
            1 => {
                let mut reader = Reader { rest: record.body, provider };
                provider.frequency = reader.word()?;
            }
            2 => {
                let mut reader = Reader { rest: record.body, provider };
                let text = reader.text(bits(header, 32, 46))?.into_owned();
                provider.strings.insert(bits(header, 16, 30), text);
            }
            3 => {
                let mut reader = Reader { rest: record.body, provider };
                let ids = (reader.word()?, reader.word()?);
                provider.threads.insert(bits(header, 16, 23), ids);
            }
            4 => self.event(record, provider, sink)?,
            5 | 6 | 15 => self.object(record, provider, sink)?,
            7 => self.kernel_object(record, provider)?,
            8 => self.scheduling(record, provider, sink)?,
            9 => {
                let mut reader = Reader { rest: record.body, provider };
                let time = provider.nanos(reader.word()?);
                let thread = reader.thread(bits(header, 32, 39))?;
                let text = reader.text(bits(header, 16, 30))?;
                let payload = vec![("message".into(), Dyn::Text(text))];
                let writer = Some(self.writer(thread));
                give(sink, (Lane::Thread, OTHER), "log", time, writer, Vec::new(), payload);
            }
            _ => return None,
        }
        Some(())
    }

    fn metadata(
        &mut self,
        record: Record<'_>,
        provider: &mut Provider,
        next: &mut u64,
    ) -> Option<()> {
        let header = record.header;
        let id = bits(header, 20, 51);
        match bits(header, 16, 19) {
            1 => {
                let name = Reader { rest: record.body, provider }.text(bits(header, 52, 59))?;
                // The record's own provider is put back after it.
                if id == *next {
                    provider.name = name.into_owned();
                } else {
                    let name = name.into_owned();
                    self.providers.entry(id).or_default().name = name;
                }
                *next = id;
            }
            2 => *next = id,
            3 if bits(header, 52, 55) == 0 => self.losses.push(Loss {
                stream: StreamIndex(0),
                cause: LossCause::Full,
                count: None,
                interval: Interval { begin: None, end: Some(Nanos(provider.last)) },
            }),
            3 => *self.unread.entry("events of providers of unknown type").or_insert(0) += 1,
            4 => (),
            _ => return None,
        }
        Some(())
    }

    fn event(
        &mut self,
        record: Record<'_>,
        provider: &mut Provider,
        sink: &mut dyn Sink,
    ) -> Option<()> {
        let header = record.header;
        let kind = bits(header, 16, 19);
        let phase = *PHASES.get(kind as usize)?;
        let mut reader = Reader { rest: record.body, provider };
        let time = provider.nanos(reader.word()?);
        let thread = reader.thread(bits(header, 24, 31))?;
        let category = reader.string(bits(header, 32, 47))?;
        let name = reader.string(bits(header, 48, 63))?;
        let payload = reader.arguments(bits(header, 20, 23))?;
        let mut context: Named<'_> = Vec::new();
        let mut tag = u32::from(phase);
        let mut id = 0;
        match kind {
            1 => context.push(("counter_id".into(), Dyn::Hex(reader.word()?))),
            4 => {
                let nanos = provider.nanos(reader.word()?).saturating_sub(time);
                match u64::try_from(nanos) {
                    Ok(nanos) => {
                        tag |= WHOLE;
                        context.push(("dur".into(), Dyn::Unsigned(nanos)));
                    }
                    Err(_) => {
                        self.endless += 1;
                        context.push(("dur".into(), Dyn::Signed(nanos)));
                    }
                }
            }
            5..=10 => {
                id = reader.word()?;
                context.push(("id".into(), Dyn::Hex(id)));
            }
            _ => (),
        }
        provider.last = time;
        let writer = self.writer(thread);
        let lane = Lane::Thread;
        let number = self.next;
        self.next += 1;
        let mut event =
            Dynamic { lane, tag, category, name, time, writer: Some(writer), context, payload };
        if let Some((name, category)) = self.names.get(number) {
            event.name = Cow::Owned(name.to_owned());
            event.category = Cow::Owned(category.to_owned());
        }
        if let Some(ends) = &mut self.ends
            && let Some(begins) = phases::begins(char::from(phase))
        {
            let track = match phase {
                b'B' | b'E' => Track::Thread(writer.pid, writer.tid),
                _ => Track::Keyed(Some(writer.pid), id.to_le_bytes().to_vec()),
            };
            ends.add(number, track, &event, begins);
        }
        sink.event(&event);
        Some(())
    }

    /// Blobs and objects of programs. They have no time of their own except large blobs: they get
    /// the time of the last event.
    fn object(
        &mut self,
        record: Record<'_>,
        provider: &Provider,
        sink: &mut dyn Sink,
    ) -> Option<()> {
        let header = record.header;
        let mut reader = Reader { rest: record.body, provider };
        let (mut time, mut writer) = (provider.last, None);
        let mut context: Named<'_> = Vec::new();
        let mut payload: Named<'_> = Vec::new();
        let name;
        match bits(header, 0, 3) {
            5 => {
                name = reader.string(bits(header, 16, 31))?;
                context.push(("blob_type".into(), Dyn::Unsigned(bits(header, 48, 55))));
                let blob = reader.padded(bits(header, 32, 46))?;
                payload.push(("blob".into(), Dyn::Bytes(blob.into())));
            }
            6 => {
                let pointer = reader.word()?;
                let process = match bits(header, 16, 23) {
                    0 => reader.word()?,
                    thread => provider.threads.get(&thread).map_or(0, |(process, _)| *process),
                };
                name = reader.string(bits(header, 24, 39))?;
                context.push(("pointer".into(), Dyn::Hex(pointer)));
                context.push(("pid".into(), Dyn::Unsigned(process)));
                payload = reader.arguments(bits(header, 40, 43))?;
            }
            _ if bits(header, 36, 39) == 0 => {
                let format = reader.word()?;
                let category = reader.string(bits(format, 0, 15))?;
                name = reader.string(bits(format, 16, 31))?;
                context.push(("category".into(), Dyn::Text(category)));
                if bits(header, 40, 43) == 0 {
                    time = provider.nanos(reader.word()?);
                    writer = Some(reader.thread(bits(format, 36, 43))?);
                    payload = reader.arguments(bits(format, 32, 35))?;
                }
                let size = reader.word()?;
                payload.push(("blob".into(), Dyn::Bytes(reader.padded(size)?.into())));
                crate::dynamic::make_unique(&mut payload);
            }
            _ => {
                *self.unread.entry("large records of unknown type").or_insert(0) += 1;
                return Some(());
            }
        }
        let writer = writer.map(|thread| self.writer(thread));
        let lane = if writer.is_some() { Lane::Thread } else { Lane::Global };
        give(sink, (lane, OTHER), &name, time, writer, context, payload);
        Some(())
    }

    fn kernel_object(&mut self, record: Record<'_>, provider: &Provider) -> Option<()> {
        let header = record.header;
        let mut reader = Reader { rest: record.body, provider };
        let koid = reader.word()?;
        let name = reader.string(bits(header, 24, 39))?.into_owned();
        reader.arguments(bits(header, 40, 43))?;
        let id = self.id(koid);
        match bits(header, 16, 23) {
            1 => drop(self.processes.insert(id, name)),
            2 => drop(self.threads.insert(id, name)),
            _ => {
                *self
                    .unread
                    .entry("objects of the kernel are neither process nor thread")
                    .or_insert(0) += 1
            }
        }
        Some(())
    }

    fn scheduling(
        &mut self,
        record: Record<'_>,
        provider: &mut Provider,
        sink: &mut dyn Sink,
    ) -> Option<()> {
        let header = record.header;
        let mut reader = Reader { rest: record.body, provider };
        let time = provider.nanos(reader.word()?);
        let mut payload: Named<'_> = Vec::new();
        let number = |value: u64| Dyn::Unsigned(value);
        let (name, cpu, tid, pid);
        match bits(header, 60, 63) {
            0 => {
                let out = reader.thread(bits(header, 28, 35))?;
                let come = reader.thread(bits(header, 36, 43))?;
                payload.push(("outgoing_thread".into(), number(out.1)));
                payload.push(("outgoing_state".into(), number(bits(header, 24, 27))));
                payload.push(("outgoing_priority".into(), number(bits(header, 44, 51))));
                payload.push(("incoming_thread".into(), number(come.1)));
                payload.push(("incoming_priority".into(), number(bits(header, 52, 59))));
                (name, cpu, pid, tid) = ("context_switch", bits(header, 16, 23), out.0, out.1);
            }
            1 => {
                let (out, come) = (reader.word()?, reader.word()?);
                payload.push(("outgoing_thread".into(), number(out)));
                payload.push(("outgoing_state".into(), number(bits(header, 36, 39))));
                payload.push(("incoming_thread".into(), number(come)));
                (name, cpu, pid, tid) = ("context_switch", bits(header, 20, 35), out, out);
            }
            2 => {
                let woken = reader.word()?;
                payload.push(("thread".into(), number(woken)));
                (name, cpu, pid, tid) = ("thread_wakeup", bits(header, 20, 35), woken, woken);
            }
            _ => {
                *self.unread.entry("scheduling records of unknown type").or_insert(0) += 1;
                return Some(());
            }
        }
        if bits(header, 60, 63) != 0 {
            payload.extend(reader.arguments(bits(header, 16, 19))?);
            crate::dynamic::make_unique(&mut payload);
        }
        provider.last = time;
        let writer = Some(self.writer((pid, tid)));
        give(sink, (Lane::Cpu(cpu as u32), OTHER), name, time, writer, Vec::new(), payload);
        Some(())
    }
}

fn give(
    sink: &mut dyn Sink,
    (lane, tag): (Lane, u32),
    name: &str,
    time: i64,
    writer: Option<Writer>,
    context: Named<'_>,
    payload: Named<'_>,
) {
    let (name, category) = (Cow::Borrowed(name), Cow::Borrowed("fxt"));
    sink.event(&Dynamic { lane, tag, category, name, time, writer, context, payload });
}

/// What a type of event means.
fn attributes(class: &ClassText<'_>) -> Vec<Attribute> {
    if class.tag == OTHER {
        return Vec::new();
    }
    let phase = class.tag as u8 as char;
    let id = || phases::context(class, "id").into_iter();
    let keys = phases::Keys {
        span: id().chain([KEY_PROCESS.to_owned()]).collect(),
        flow: id().collect(),
        fans_out: false,
        is_whole: class.tag & WHOLE != 0,
    };
    let word = phases::word(phase).map(|word| Attribute { name: PHASE.into(), value: word.into() });
    word.into_iter().chain(phases::attributes(&phases::roles(phase, class, &keys))).collect()
}
