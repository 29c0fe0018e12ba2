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
        let mut event = track_event::parse(message, sequence);
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
        if tag & LEGACY == 0 && tid.is_none() {
            tag |= OTHER_TRACK;
        }
        if tid.is_none() {
            pid.into_iter().for_each(|pid| {
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
            add_legacy(legacy, &mut context);
        }
        self.add_flows(&event, &mut context, &mut tag);
        let mut name = std::mem::take(&mut event.name);
        let mut category = event.categories.join(",");
        let place = (uuid.unwrap_or(0), pid.unwrap_or(0), tid.unwrap_or(0));
        let stack = self.open.entry(place).or_default();
        if event.kind == BEGIN && self.open_count < MAX_OPEN {
            stack.push((name.clone(), category.clone()));
            self.open_count += 1;
        } else if event.kind == END
            && let Some((began, began_category)) = stack.pop()
        {
            self.open_count -= 1;
            if name.is_empty() {
                name = began;
            }
            if category.is_empty() {
                category = began_category;
            }
        }
        let mut payload = std::mem::take(&mut event.annotations);
        if event.kind == COUNTER
            && let Some(value) = event.value.take()
        {
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
                tag: COUNTER as u32,
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

    /// Flows as fields: of several in one event all but the first are a list.
    pub(super) fn add_flows(
        &mut self,
        event: &TrackEvent<'_>,
        context: &mut Named<'_>,
        tag: &mut u32,
    ) {
        let (mut out, mut come) = (Vec::new(), Vec::new());
        for &flow in &event.flows {
            if self.flows.contains(&flow) {
                come.push(flow);
            } else if self.flows.len() < MAX_FLOWS {
                self.flows.insert(flow);
            }
            out.push(flow);
        }
        for &flow in &event.ending_flows {
            self.flows.remove(&flow);
            come.push(flow);
        }
        for (flows, name, more, bit) in [
            (out, "flow_out", "more_flows_out", FLOW_OUT),
            (come, "flow_in", "more_flows_in", FLOW_IN),
        ] {
            let Some((first, rest)) = flows.split_first() else { continue };
            *tag |= bit;
            context.push((name.into(), Dyn::Hex(*first)));
            if !rest.is_empty() {
                let rest = rest.iter().map(|&flow| Dyn::Hex(flow)).collect();
                context.push((more.into(), Dyn::List(rest)));
            }
        }
    }
}

fn add_legacy(legacy: track_event::Legacy, context: &mut Named<'_>) {
    if let Some(us) = legacy.duration_us {
        let nanos = u64::try_from(us.saturating_mul(1000)).unwrap_or(0);
        context.push(("dur".into(), Dyn::Unsigned(nanos)));
    }
    if let Some((name, id)) = legacy.id {
        context.push((name.into(), Dyn::Hex(id)));
    }
    if !legacy.scope.is_empty() {
        context.push(("id_scope".into(), Dyn::Text(legacy.scope.into())));
    }
    if let Some(id) = legacy.bind_id {
        context.push(("bind_id".into(), Dyn::Hex(id)));
        context.push(("flow_direction".into(), Dyn::Unsigned(legacy.direction)));
    }
}
