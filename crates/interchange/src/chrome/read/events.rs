// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From an object to an event: what it is, by its own members alone.

use super::*;

impl<'a> Walk<'a> {
    pub(super) fn event(&mut self, raw: Raw<'a>, sink: &mut dyn Sink) {
        self.counts.repaired += u64::from(raw.is_repaired);
        let phase = raw.phase.as_deref().and_then(|phase| phase.bytes().next()).unwrap_or(0);
        let mut context: Named<'a> = Vec::new();
        let pid = self.id("pid", raw.pid, &mut context);
        let has_text_pid = !context.is_empty();
        let tid = self.id("tid", raw.tid, &mut context);
        let has_writer = pid.is_some() || tid.is_some();
        let (pid, tid) = (pid.unwrap_or(0), tid.unwrap_or(0));
        if has_writer && !self.groups.contains_key(&tid) && self.groups.len() < MAX_NOTES {
            self.groups.insert(tid, pid);
        }
        if phase == b'M' {
            return self.metadata(raw.name.unwrap_or_default(), pid, tid, raw.args);
        }
        let number = self.next;
        self.next += 1;
        let mut meaning = Meaning::new(phase, has_text_pid);
        let time = self.time(raw.time, &mut meaning);
        let is_whole = match raw.duration {
            Some(duration) => self.duration(duration, time, &mut meaning, &mut context),
            None => false,
        };
        if phase == b'X' && !is_whole && !meaning.is_timeless() {
            self.counts.endless += 1;
        }
        meaning.of_members(&raw.rest);
        context.extend(raw.rest);
        let mut payload = match raw.args {
            Some(Dyn::Dict(members)) => members,
            None | Some(Dyn::Null) => Vec::new(),
            Some(other) => vec![("args".into(), other)],
        };
        let mut name = raw.name.unwrap_or_default();
        if phase == b'C' {
            self.levels(&mut payload);
            if let Some(id) = meaning::counter_id(&context, &name) {
                name = format!("{name}{id}").into();
            }
        }
        let mut event = Dynamic {
            lane: if has_writer { Lane::Thread } else { Lane::Global },
            tag: meaning.tag(),
            category: raw.category.unwrap_or_default(),
            name,
            time,
            writer: has_writer.then_some(Writer { pid, tid }),
            context,
            payload,
        };
        if let Some((name, category)) = self.known.names.get(number) {
            event.name = Cow::Owned(name.to_owned());
            event.category = Cow::Owned(category.to_owned());
        }
        if let Some(ends) = &mut self.ends
            && let Some(begins) = meaning.begins()
        {
            let track = meaning.track(&event);
            ends.add(number, track, &event, begins);
        }
        sink.event(&event);
    }

    /// Time of an event, in nanoseconds. An event whose time cannot be read gets that of the
    /// previous event, or of the first that has one.
    fn time(&mut self, text: Option<&str>, meaning: &mut Meaning) -> i64 {
        let time = text.and_then(nanos).and_then(|(time, cut)| {
            let time = time.checked_add(self.shift())?;
            self.counts.finer += u64::from(cut);
            Some(time)
        });
        if let Some(time) = time {
            self.time = Some(time);
            return time;
        }
        self.counts.timeless += 1;
        meaning.set_timeless();
        let time = match self.time {
            Some(time) => time,
            None => self.first_time(),
        };
        self.time = Some(time);
        time
    }

    /// The first time of any event. Searched only once.
    fn first_time(&self) -> i64 {
        let mut at = 0;
        while let Some(found) = find(self.bytes, at, b"\"ts\"") {
            at = found + 4;
            let colon = skip_blanks(self.bytes, at);
            if self.bytes.get(colon) != Some(&b':') {
                continue;
            }
            let begin = skip_blanks(self.bytes, colon + 1);
            let ends = |byte: &u8| matches!(byte, b',' | b'}') || *byte <= b' ';
            let rest = &self.bytes[begin..self.bytes.len().min(begin + 64)];
            let length = rest.iter().position(ends).unwrap_or(rest.len());
            let text = std::str::from_utf8(&rest[..length]).ok();
            if let Some((time, _)) = text.and_then(nanos) {
                return time.saturating_add(self.shift());
            }
        }
        0
    }

    /// Adds the field of a duration. Whether it is one that can be.
    fn duration(
        &mut self,
        text: &'a str,
        time: i64,
        meaning: &mut Meaning,
        context: &mut Named<'a>,
    ) -> bool {
        let Some((nanos, cut)) = nanos(text) else {
            context.push(("dur".into(), Dyn::Text(text.trim_matches('"').into())));
            return false;
        };
        self.counts.finer += u64::from(cut);
        let is_whole = (0..=MAX_NANOS).contains(&nanos) && time.checked_add(nanos).is_some();
        let value = match u64::try_from(nanos).ok().filter(|_| is_whole) {
            Some(nanos) => Dyn::Unsigned(nanos),
            None => Dyn::Signed(nanos),
        };
        context.push(("dur".into(), value));
        if is_whole {
            meaning.set_whole();
        }
        is_whole
    }

    /// Samples of counters: numbers in quotes are numbers, and other values are stored separately
    /// under another name, so that they cost no other sample.
    fn levels(&mut self, payload: &mut Named<'a>) {
        for (name, value) in payload {
            let number = match value {
                Dyn::Unsigned(_) | Dyn::Signed(_) => continue,
                Dyn::Real(number) if number.is_finite() => continue,
                Dyn::Text(text) => meaning::level(text),
                _ => None,
            };
            match number {
                Some(number) => *value = number,
                None => {
                    self.counts.levelless += 1;
                    *name = format!("{name}.other").into();
                }
            }
        }
    }

    /// A process or thread id. What is no number of 32 bits gets one, and stays in
    /// the context as it was.
    fn id(
        &mut self,
        name: &'static str,
        value: Option<Dyn<'a>>,
        context: &mut Named<'a>,
    ) -> Option<u32> {
        let value = value?;
        if let Dyn::Unsigned(number) = value
            && let Ok(number) = u32::try_from(number)
        {
            return Some(number);
        }
        let mut text = Vec::new();
        crate::dynamic::to_json(&value, &mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let next = 0x4000_0000 + self.ids.len() as u32;
        let label = if let Dyn::Text(label) = &value { Some(label.to_string()) } else { None };
        context.push((name.into(), value));
        let number = *self.ids.entry(text).or_insert(next);
        if let Some(label) = label
            && number == next
        {
            let names = if name == "pid" { &mut self.processes } else { &mut self.threads };
            names.insert(number, label);
        }
        Some(number)
    }

    fn metadata(&mut self, name: Cow<'_, str>, pid: u32, tid: u32, args: Option<Dyn<'_>>) {
        let args = args.unwrap_or(Dyn::Dict(Vec::new()));
        let named = match &args {
            Dyn::Dict(members) => members.iter().find(|(key, _)| key == "name").map(|(_, v)| v),
            _ => None,
        };
        match (name.as_ref(), named) {
            ("process_name", Some(Dyn::Text(text))) => {
                self.processes.insert(pid, text.to_string());
            }
            ("thread_name", Some(Dyn::Text(text))) => {
                self.threads.insert(tid, text.to_string());
            }
            _ if self.notes.len() < MAX_NOTES => {
                let mut text = Vec::new();
                crate::dynamic::to_json(&args, &mut text);
                text.truncate(MAX_NOTE_BYTES);
                let text = String::from_utf8_lossy(&text).into_owned();
                self.notes.push((format!("{}{name}.{pid}.{tid}", super::super::METADATA), text));
            }
            _ => (),
        }
    }
}

/// Position of a text at or after `at`.
fn find(bytes: &[u8], at: usize, text: &[u8]) -> Option<usize> {
    let rest = bytes.get(at..)?;
    rest.windows(text.len()).position(|window| window == text).map(|place| at + place)
}
