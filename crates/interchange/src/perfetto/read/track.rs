// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Track events.

use super::*;

impl Walk {
    pub(super) fn track_event(
        &mut self,
        message: Message<'_>,
        sequence: &mut Sequence,
        time: i64,
        sink: &mut dyn Sink,
    ) {
        let mut event = track_event::parse(message, sequence, self.gathering.is_none());
        for field in &event.unread {
            *self.unread_fields.entry(*field).or_insert(0) += 1;
        }
        let time = self.event_time(&event, sequence, time);
        let uuid = event.track.or(sequence.track);
        let (mut pid, mut tid) = match (uuid, sequence.thread) {
            (Some(uuid), _) => self.tracks.owner(uuid),
            (None, Some((pid, tid))) => (Some(pid), Some(tid)),
            (None, None) => (None, None),
        };
        if let Some(legacy) = &event.legacy {
            pid = legacy.pid.or(pid);
            tid = legacy.tid.or(tid);
        }
        let legacy = event.legacy.take();
        let mut context = std::mem::take(&mut event.context);
        let mut tag = match legacy.as_ref().and_then(|legacy| legacy.phase) {
            Some(phase) => LEGACY | u32::from(phase),
            None => event.kind as u32 & 0xff,
        };
        let number = self.next;
        self.next += 1;
        if tag & LEGACY == 0 && tid.is_none() {
            tag |= OTHER_TRACK;
        }
        if tid.is_none() {
            pid.into_iter().for_each(|pid| {
                tag |= PROCESS;
                context.push(("pid".into(), Dyn::Unsigned(u64::from(pid))));
            });
            if let Some(uuid) = uuid {
                context.push(("track_uuid".into(), Dyn::Hex(uuid)));
                if let Some(track) = self.tracks.get(uuid).filter(|track| !track.name.is_empty()) {
                    context.push(("track".into(), Dyn::Text(track.name.clone().into())));
                }
            }
        }
        if let Some(legacy) = legacy {
            self.endless += u64::from(legacy.phase == Some('X'));
            add_legacy(legacy, time, &mut context, &mut tag);
            self.endless -= u64::from(tag & 0xff == u32::from('X') && tag & WHOLE != 0);
        }
        self.add_flows(&event, number, time, &mut context, &mut tag);
        let mut name = std::mem::take(&mut event.name);
        let mut category = event.categories.join(",");
        let begins = match (tag & LEGACY != 0, event.kind) {
            (true, _) => phases::begins(char::from(tag as u8)),
            (false, BEGIN) => Some(true),
            (false, END) => Some(false),
            _ => None,
        };
        if let Some(begins) = begins
            && let Some(gathering) = &mut self.gathering
        {
            let track = match char::from(tag as u8) {
                'b' | 'e' | 'S' | 'F' if tag & LEGACY != 0 => {
                    let mut id = category.as_bytes().to_vec();
                    let names = legacy_ids(tag);
                    for (name, value) in
                        context.iter().filter(|(name, _)| names.contains(&name.as_ref()))
                    {
                        id.push(0xff);
                        id.extend_from_slice(name.as_bytes());
                        crate::dynamic::to_json(value, &mut id);
                    }
                    Track::Keyed(pid.filter(|_| tag & LOCAL_ID != 0), id)
                }
                _ => match (tid, uuid) {
                    (Some(tid), _) => Track::Thread(pid.unwrap_or(tid), tid),
                    (None, uuid) => Track::Number(uuid.unwrap_or(0)),
                },
            };
            let edge = Dynamic {
                lane: Lane::Global,
                tag,
                category: category.as_str().into(),
                name: name.as_str().into(),
                time,
                writer: None,
                context: Vec::new(),
                payload: Vec::new(),
            };
            gathering.ends.add(number, track, &edge, begins);
        }
        if let Some((own_name, own_category)) = self.names.get(number) {
            own_name.clone_into(&mut name);
            own_category.clone_into(&mut category);
        }
        let mut payload = std::mem::take(&mut event.annotations);
        if event.kind == COUNTER
            && let Some(value) = event.value.take()
        {
            tag |= VALUE;
            let (value, unit, track_name) = self.level(uuid.unwrap_or(0), value);
            payload.insert(0, ("value".into(), value));
            crate::dynamic::make_unique(&mut payload);
            if !unit.is_empty() {
                context.push(("unit".into(), Dyn::Text(unit.into())));
            }
            if name.is_empty() {
                name = track_name;
            }
        }
        let has_thread = tid.is_some();
        let writer = tid.map(|tid| Writer { pid: pid.unwrap_or(tid), tid });
        let lane = if has_thread { Lane::Thread } else { Lane::Global };
        for (track, value) in event.extra_tracks.iter().zip(std::mem::take(&mut event.extra_values))
        {
            let (value, unit, name) = self.level(*track, value);
            let mut context: Named<'_> = vec![("track_uuid".into(), Dyn::Hex(*track))];
            if !unit.is_empty() {
                context.push(("unit".into(), Dyn::Text(unit.into())));
            }
            sink.event(&Dynamic {
                lane,
                tag: COUNTER as u32 | VALUE,
                category: "".into(),
                name: name.into(),
                time,
                writer,
                context,
                payload: vec![("value".into(), value)],
            });
        }
        crate::dynamic::make_unique(&mut context);
        let (name, category) = (name.into(), category.into());
        sink.event(&Dynamic { lane, tag, category, name, time, writer, context, payload });
    }

    /// Events of old writers carry their times themselves, in microseconds of MONOTONIC.
    pub(super) fn event_time(
        &mut self,
        event: &TrackEvent<'_>,
        sequence: &mut Sequence,
        time: i64,
    ) -> i64 {
        let us = match (event.delta_us, event.absolute_us) {
            (Some(delta), _) => {
                sequence.reference_us = sequence.reference_us.saturating_add(delta);
                sequence.reference_us
            }
            (None, Some(us)) => us,
            (None, None) => return time,
        };
        let nanos = u64::try_from(us.saturating_mul(1000)).unwrap_or(0);
        self.clocks.boottime(MONOTONIC, 0, nanos)
    }

    pub(super) fn level<'a>(&mut self, uuid: u64, value: Dyn<'a>) -> (Dyn<'a>, String, String) {
        let (counter, name) = match self.tracks.get(uuid) {
            Some(track) => (track.counter.clone().unwrap_or_default(), track.name.clone()),
            None => (state::Counter::default(), String::new()),
        };
        let value = match value {
            Dyn::Signed(value) => {
                let multiplier = if counter.multiplier == 0 { 1 } else { counter.multiplier };
                let mut value = value.saturating_mul(multiplier);
                if counter.incremental {
                    let sum = self.counters.entry(uuid).or_insert(0);
                    *sum = sum.saturating_add(value);
                    value = *sum;
                }
                Dyn::Signed(value)
            }
            other => other,
        };
        let name = if name.is_empty() { format!("counter_{uuid:x}") } else { name };
        (value, counter.unit, name)
    }

    /// Flows as fields. One that passes an event arrives and leaves again, but for the first.
    pub(super) fn add_flows(
        &mut self,
        event: &TrackEvent<'_>,
        number: u64,
        time: i64,
        context: &mut Named<'_>,
        tag: &mut u32,
    ) {
        if let Some(gathering) = &mut self.gathering {
            event.flows.iter().for_each(|flow| gathering.flow(*flow, time, number, false));
            event.ending_flows.iter().for_each(|flow| gathering.flow(*flow, time, number, true));
            return;
        }
        let (mut out, mut come) = (Vec::new(), Vec::new());
        for &flow in &event.flows {
            if !self.first_flows.contains(&(number, flow)) {
                come.push(flow);
            }
            out.push(flow);
        }
        come.extend(&event.ending_flows);
        for (flows, name, more, bits) in [
            (out, "flow_out", "more_flows_out", FLOWS_OUT),
            (come, "flow_in", "more_flows_in", FLOWS_IN),
        ] {
            let (first, rest) = flows.split_at(flows.len().min(FLOWS_MAX));
            *tag |= (first.len() as u32) << bits;
            for (number, flow) in (0..).zip(first) {
                context.push((numbered(name, number).into(), Dyn::Hex(*flow)));
            }
            if !rest.is_empty() {
                let rest = rest.iter().map(|&flow| Dyn::Hex(flow)).collect();
                context.push((more.into(), Dyn::List(rest)));
            }
        }
    }
}

/// Properties of a legacy event, as fields and as bits of its tag.
fn add_legacy(legacy: track_event::Legacy, time: i64, context: &mut Named<'_>, tag: &mut u32) {
    if let Some(us) = legacy.duration_us {
        let nanos = us.saturating_mul(1000);
        let is_whole =
            nanos >= 0 && us.checked_mul(1000).is_some() && time.checked_add(nanos).is_some();
        let value = if is_whole { Dyn::Unsigned(nanos as u64) } else { Dyn::Signed(nanos) };
        context.push(("dur".into(), value));
        *tag |= if is_whole { WHOLE } else { 0 };
    }
    if let Some((name, id)) = legacy.id {
        context.push((name.into(), Dyn::Hex(id)));
        *tag |= match name {
            "local_id" => LOCAL_ID,
            "global_id" => GLOBAL_ID,
            _ => ID,
        };
    }
    if !legacy.scope.is_empty() {
        context.push(("id_scope".into(), Dyn::Text(legacy.scope.into())));
        *tag |= SCOPE;
    }
    if let Some(id) = legacy.bind_id {
        context.push(("bind_id".into(), Dyn::Hex(id)));
        context.push(("flow_direction".into(), Dyn::Unsigned(legacy.direction)));
        *tag |= if legacy.direction & 1 != 0 { BIND_IN } else { 0 };
        *tag |= if legacy.direction & 2 != 0 { BIND_OUT } else { 0 };
    }
}
