// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of the kernel, of Android's log and of graphics processors.

use lateralis_units::Nanos;

use super::*;

impl Walk {
    pub(super) fn ftrace(&mut self, message: Message<'_>, sink: &mut dyn Sink) {
        let (mut cpu, mut clock, mut own, mut boot) = (0u32, 0, 0i64, 0i64);
        let mut lost = false;
        for (number, value) in message {
            match number {
                1 => cpu = value.number() as u32,
                3 => lost = value.number() != 0,
                5 => clock = value.number(),
                6 => own = value.number() as i64,
                7 => boot = value.number() as i64,
                _ => (),
            }
        }
        // Other clocks than BOOTTIME come with a reading of both.
        let shift = if clock == 0 { 0 } else { boot.saturating_sub(own) };
        let at = |time: u64| Nanos::nearest(time.into()).later(shift).0;
        let lane = Lane::Cpu(cpu);
        let mut first = None;
        for (number, value) in message {
            match number {
                2 => {
                    let event = value.message();
                    let time = event.into_iter().find(|(number, _)| *number == 1);
                    let time = at(time.map_or(0, |(_, value)| value.number()));
                    first.get_or_insert(time);
                    self.kernel_event(event, lane, time, sink);
                }
                4 => {
                    for event in ftrace::compact(value.message()) {
                        first.get_or_insert(at(event.time));
                        self.compact(event, lane, cpu, at, sink);
                    }
                }
                _ => (),
            }
        }
        if lost {
            let end = first.map(lateralis_units::Nanos);
            self.lose(lane, LossCause::Full, None, Interval { begin: None, end });
        }
    }

    pub(super) fn kernel_event(
        &mut self,
        message: Message<'_>,
        lane: Lane,
        time: i64,
        sink: &mut dyn Sink,
    ) {
        let mut tid = 0;
        let mut context: Named<'_> = Vec::new();
        let mut found = None;
        for (number, value) in message {
            match number {
                1 => (),
                2 => tid = value.number() as u32,
                5 => context.push(("common_flags".into(), Dyn::Unsigned(value.number()))),
                other => found = Some((other, value)),
            }
        }
        let Some((number, value)) = found else { return };
        let kind = ftrace::kinds().get(&number);
        let (name, payload) = if number == 327 {
            ftrace::generic(value.message())
        } else {
            let name = match kind {
                Some(kind) => Cow::Borrowed(kind.name),
                None => format!("ftrace_event_{number}").into(),
            };
            (name, ftrace::fields(kind, value.message()))
        };
        for (pid, comm) in [("prev_pid", "prev_comm"), ("next_pid", "next_comm")] {
            let find = |name: &str| payload.iter().find(|(key, _)| key == name).map(|(_, v)| v);
            if let (Some(Dyn::Signed(pid)), Some(Dyn::Text(comm))) = (find(pid), find(comm)) {
                self.comm(*pid, comm);
            }
        }
        let text = |value: &Dyn<'_>| match value {
            Dyn::Text(text) => Some(text.to_string()),
            _ => None,
        };
        if matches!(name.as_ref(), "print" | "tracing_mark_write")
            && let Some(buf) = payload.iter().find(|(key, _)| key == "buf").map(|(_, v)| v)
            && let Some(buf) = text(buf)
            && let Some(mark) = crate::marks::Mark::parse(&buf)
        {
            return self.mark(&mark, (lane, time, tid), payload, sink);
        }
        let writer = Some(self.writer_of(tid));
        let category = Cow::Borrowed("ftrace");
        sink.event(&Dynamic { lane, tag: FTRACE, category, name, time, writer, context, payload });
    }

    pub(super) fn comm(&mut self, tid: i64, comm: &str) {
        if let Ok(tid) = u32::try_from(tid)
            && tid != 0
            && self.comms.get(&tid).is_none_or(|known| known != comm)
        {
            self.comms.insert(tid, comm.to_owned());
        }
    }

    pub(super) fn compact(
        &mut self,
        event: ftrace::Compact<'_>,
        lane: Lane,
        cpu: u32,
        at: impl Fn(u64) -> i64,
        sink: &mut dyn Sink,
    ) {
        self.comm(event.task, &event.comm);
        let mut payload = event.fields;
        // Wakings do not say which thread they are in: it is the one that runs.
        let mut writer = None;
        let before = self.running.get(&cpu).cloned();
        if event.name == "sched_switch" {
            let mut tid = 0;
            if let Some((task, comm)) = before {
                tid = u32::try_from(task).unwrap_or(0);
                payload.insert(0, ("prev_comm".into(), Dyn::Text(comm.into())));
                payload.insert(1, ("prev_pid".into(), Dyn::Signed(task)));
            }
            self.running.insert(cpu, (event.task, event.comm.into_owned()));
            writer = Some(self.writer_of(tid));
        }
        let flags = event.flags.map(|flags| ("common_flags".into(), Dyn::Unsigned(flags)));
        sink.event(&Dynamic {
            lane,
            tag: FTRACE,
            category: "ftrace".into(),
            name: event.name.into(),
            time: at(event.time),
            writer,
            context: flags.into_iter().collect(),
            payload,
        });
    }

    pub(super) fn android_log(&mut self, message: Message<'_>, sink: &mut dyn Sink) {
        for (_, value) in message.filter(|(number, _)| *number == 1) {
            let mut payload: Named<'_> = Vec::new();
            let (mut pid, mut tid, mut time) = (0, 0, 0);
            for (number, value) in value.message() {
                match number {
                    1 => payload.push(("log_id".into(), Dyn::Unsigned(value.number()))),
                    2 => pid = value.number() as u32,
                    3 => tid = value.number() as u32,
                    4 => payload.push(("uid".into(), Dyn::Signed(value.number() as i64))),
                    5 => time = value.number(),
                    6 => payload.push(("tag".into(), Dyn::Text(value.text()))),
                    7 => payload.push(("prio".into(), Dyn::Unsigned(value.number()))),
                    8 => payload.push(("message".into(), Dyn::Text(value.text()))),
                    9 => {
                        let mut argument = (Cow::Borrowed(""), Dyn::Null);
                        for (number, value) in value.message() {
                            match number {
                                1 => argument.0 = value.text(),
                                2 => argument.1 = Dyn::Signed(value.number() as i64),
                                3 => argument.1 = Dyn::Real(value.real()),
                                4 => argument.1 = Dyn::Text(value.text()),
                                _ => (),
                            }
                        }
                        payload.push(argument);
                    }
                    _ => (),
                }
            }
            crate::dynamic::make_unique(&mut payload);
            sink.event(&Dynamic {
                lane: Lane::Thread,
                tag: PLAIN,
                category: "android".into(),
                name: "android_log".into(),
                time: self.clocks.boottime(REALTIME, 0, time),
                writer: Some(Writer { pid, tid }),
                context: Vec::new(),
                payload,
            });
        }
    }

    pub(super) fn gpu_counters(&mut self, message: Message<'_>, time: i64, sink: &mut dyn Sink) {
        let gpu = message.into_iter().find(|(number, _)| *number == 3);
        let gpu = gpu.map_or(0, |(_, value)| value.number());
        for (_, value) in message.filter(|(number, _)| *number == 1) {
            for (_, spec) in value.message().filter(|(number, _)| *number == 1) {
                let (mut id, mut name) = (0, String::new());
                for (number, value) in spec.message() {
                    match number {
                        1 => id = value.number(),
                        2 => name = value.text().into_owned(),
                        _ => (),
                    }
                }
                if self.gpu_counters.len() < 100_000 {
                    self.gpu_counters.insert((gpu, id), name);
                }
            }
        }
        for (_, value) in message.filter(|(number, _)| *number == 2) {
            let (mut id, mut level) = (0, Dyn::Signed(0));
            for (number, value) in value.message() {
                match number {
                    1 => id = value.number(),
                    2 => level = Dyn::Signed(value.number() as i64),
                    3 => level = Dyn::Real(value.real()),
                    _ => (),
                }
            }
            let name = match self.gpu_counters.get(&(gpu, id)) {
                Some(name) => name.clone(),
                None => format!("gpu_counter_{id}"),
            };
            sink.event(&Dynamic {
                lane: Lane::Global,
                tag: GPU,
                category: "gpu".into(),
                name: name.into(),
                time,
                writer: None,
                context: vec![("gpu_id".into(), Dyn::Unsigned(gpu))],
                payload: vec![("value".into(), level)],
            });
        }
    }
}
