// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What holds for the whole trace: names, clocks, tracks, statistics.

use super::*;

impl Walk {
    /// The first pass: facts that apply to the whole trace, at any position.
    pub(super) fn collect(&mut self, packet: &[u8]) {
        let head = Head::of(packet);
        for (number, value) in Message::new(packet) {
            match number {
                2 => self.process_tree(value.message()),
                6 => self.clocks.collect(value.message(), head.sequence),
                34 => self.ftrace_stats(value.message()),
                35 => self.trace_stats(value.message()),
                43 => {
                    self.tracks.process(value.message());
                }
                44 => {
                    self.tracks.thread(value.message());
                }
                45 => self.system_info(value.message()),
                60 => self.tracks.describe(value.message()),
                89 => {
                    let mut id = [0u8; 16];
                    for (number, value) in value.message() {
                        let at = if number == 1 { 0 } else { 8 };
                        id[at..at + 8].copy_from_slice(&value.number().to_be_bytes());
                    }
                    self.uuid = Some(Uuid(id));
                }
                _ => (),
            }
        }
    }

    pub(super) fn process_tree(&mut self, message: Message<'_>) {
        for (number, value) in message {
            let (mut id, mut other, mut name) = (None, None, None);
            for (field, value) in value.message() {
                match (number, field) {
                    (1 | 2, 1) => id = Some(value.number() as u32),
                    (2, 3) => other = Some(value.number() as u32),
                    (1, 3) | (2, 2) if name.is_none() => name = Some(value.text().into_owned()),
                    _ => (),
                }
            }
            let (Some(id), name) = (id, name.filter(|name| !name.is_empty())) else { continue };
            match number {
                1 => {
                    self.groups.insert(id, id);
                    if let Some(name) = name {
                        self.tracks.processes.insert(id, name);
                    }
                }
                2 => {
                    if let Some(group) = other {
                        self.groups.insert(id, group);
                    }
                    if let Some(name) = name {
                        self.tracks.threads.insert(id, name);
                    }
                }
                _ => (),
            }
        }
    }

    pub(super) fn system_info(&mut self, message: Message<'_>) {
        for (number, value) in message {
            match number {
                1 => {
                    for (number, value) in value.message() {
                        let name = match number {
                            1 => "sysname",
                            2 => "kernel_version",
                            3 => "kernel_release",
                            4 => "machine",
                            _ => continue,
                        };
                        self.note(name, value);
                    }
                }
                2 => self.note("android_build_fingerprint", value),
                4 => self.note("tracing_service_version", value),
                _ => (),
            }
        }
    }

    pub(super) fn note(&mut self, name: &str, value: Wire<'_>) {
        if self.environment.len() < 1000 {
            let text = EnvValue::Text(value.text().into_owned());
            self.environment.push((name.to_owned(), text));
        }
    }

    /// Kernel rings: how many events each lost between the first and last report.
    pub(super) fn ftrace_stats(&mut self, message: Message<'_>) {
        for (_, value) in message.filter(|(number, _)| *number == 2) {
            let (mut cpu, mut lost) = (0, 0u64);
            for (number, value) in value.message() {
                match number {
                    1 => cpu = value.number(),
                    3 | 4 | 8 => lost = lost.saturating_add(value.number()),
                    _ => (),
                }
            }
            let entry = self.overruns.entry(cpu).or_insert((lost, lost));
            entry.1 = lost;
        }
    }

    /// Buffers of the service: chunks overwritten or discarded, packets lost by writers.
    pub(super) fn trace_stats(&mut self, message: Message<'_>) {
        for (at, (_, value)) in message.filter(|(number, _)| *number == 1).enumerate() {
            let lost = value.message().filter(|(number, _)| matches!(number, 3 | 18 | 19));
            let lost = lost.fold(0u64, |sum, (_, value)| sum.saturating_add(value.number()));
            self.buffers.insert(at, lost);
        }
    }

    /// Adds everything but events.
    pub(super) fn describe(
        &mut self,
        builder: &mut lateralis_model::Builder,
        notes: Notes,
        packets: u64,
    ) {
        let trace = builder.describe();
        trace.uuid = self.uuid;
        trace.environment.append(&mut self.environment);
        let packets = EnvValue::Integer(i128::from(packets));
        trace.environment.push(("packets".to_owned(), packets));
        let names = builder.names();
        names.processes.clone_from(&self.tracks.processes);
        names.threads = std::mem::take(&mut self.comms);
        names.threads.extend(self.tracks.threads.clone());
        notes.damage.into_iter().for_each(|damage| builder.damage(damage));
        let counts = [
            (notes.bad_compressed, "compressed packets are damaged: read up to there"),
            (notes.large_compressed, "compressed packets do not fit into the memory allowed"),
            (
                self.endless,
                "complete events (X) tell no duration that can be: their spans are unfinished",
            ),
            (self.clocks.unconverted, "times of clocks without a snapshot: taken as they are"),
        ];
        for (count, what) in counts {
            if count > 0 {
                builder.remark(format!("{count} {what}"));
            }
        }
        for (what, unread) in
            [("packets", &self.unread), ("fields of track events", &self.unread_fields)]
        {
            if unread.is_empty() {
                continue;
            }
            let list: Vec<_> =
                unread.iter().take(40).map(|(field, count)| format!("{field} ({count})")).collect();
            let list = list.join(", ");
            builder.remark(format!("{what} that are not read, by field number (count): {list}"));
        }
        for (cpu, (first, last)) in std::mem::take(&mut self.overruns) {
            if last > first {
                let lane = Lane::Cpu(cpu as u32);
                self.lose(lane, LossCause::Full, Some(last - first), Interval::default());
            }
        }
        for (_, lost) in std::mem::take(&mut self.buffers) {
            if lost > 0 {
                self.lose(Lane::Thread, LossCause::Packets, Some(lost), Interval::default());
            }
        }
    }
}
