// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samples of where programs were: `PerfSample` and `StreamingProfilePacket`
//! [protos/perfetto/trace/profiling/profile_packet.proto].

use super::*;
use crate::perfetto::stacks::numbers;
use crate::perfetto::state::{FUNCTION_NAMES, MAPPING_PATHS};

/// Stacks of one packet that are read.
const STACKS_MAX: usize = 1 << 20;

/// Fields that every sample has: names of its functions, the innermost first, and the files they are in.
fn stack(sequence: &Sequence, callstack: u64) -> Named<'static> {
    let (mut functions, mut images) = (Vec::new(), Vec::new());
    for frame in sequence.stacks.frames(callstack) {
        let function = match frame.function {
            0 => format!("{:#x}", frame.relative_address),
            named => sequence.text(FUNCTION_NAMES, named),
        };
        let mut image = String::new();
        for part in sequence.stacks.path(frame.mapping) {
            image.push('/');
            image.push_str(&sequence.text(MAPPING_PATHS, *part));
        }
        functions.push(Dyn::Text(function.into()));
        images.push(Dyn::Text(image.into()));
    }
    vec![(STACK_FUNCTIONS.into(), Dyn::List(functions)), (STACK_IMAGES.into(), Dyn::List(images))]
}

impl Walk {
    /// A sample of perf: of one thread on one processor.
    pub(super) fn perf_sample(
        &mut self,
        message: Message<'_>,
        sequence: &Sequence,
        time: i64,
        sink: &mut dyn Sink,
    ) {
        let (mut cpu, mut pid, mut tid, mut callstack) = (0, 0, 0, 0);
        let mut more: Named<'_> = Vec::new();
        for (number, value) in message {
            match number {
                1 => cpu = value.number() as u32,
                2 => pid = value.number() as u32,
                3 => tid = value.number() as u32,
                4 => callstack = value.number(),
                5 => more.push(("cpu_mode".into(), Dyn::Unsigned(value.number()))),
                16 => more.push(("unwind_error".into(), Dyn::Unsigned(value.number()))),
                // Records of the kernel, samples and others: how many of them were samples is not known.
                17 => {
                    let until = Some(lateralis_units::Nanos(time));
                    let interval = Interval { begin: None, end: until };
                    return self.lose(Lane::Cpu(cpu), LossCause::Full, None, interval);
                }
                18 => more.push(("skipped_reason".into(), Dyn::Unsigned(value.number()))),
                _ => (),
            }
        }
        let mut payload = stack(sequence, callstack);
        payload.extend(more);
        crate::dynamic::make_unique(&mut payload);
        sink.event(&Dynamic {
            lane: Lane::Cpu(cpu),
            tag: PLAIN,
            category: "perf".into(),
            name: "perf_sample".into(),
            time,
            writer: Some(Writer { pid, tid }),
            context: Vec::new(),
            payload,
        });
    }

    /// Samples of the thread that writes the sequence.
    pub(super) fn streaming_profile(
        &mut self,
        message: Message<'_>,
        sequence: &mut Sequence,
        sink: &mut dyn Sink,
    ) {
        let (mut callstacks, mut deltas_us) = (Vec::new(), Vec::new());
        for (number, value) in message {
            match number {
                1 => numbers(value, &mut callstacks),
                2 => numbers(value, &mut deltas_us),
                _ => (),
            }
        }
        for (callstack, delta_us) in callstacks.into_iter().zip(deltas_us).take(STACKS_MAX) {
            // The times of a sequence continue from those of its events.
            sequence.reference_us = sequence.reference_us.saturating_add(delta_us as i64);
            let nanos = u64::try_from(sequence.reference_us.saturating_mul(1000)).unwrap_or(0);
            let time = self.clocks.boottime(MONOTONIC, 0, nanos);
            sink.event(&Dynamic {
                lane: Lane::Thread,
                tag: PLAIN,
                category: "profile".into(),
                name: "stack_sample".into(),
                time,
                writer: sequence.thread.map(|(pid, tid)| Writer { pid, tid }),
                context: Vec::new(),
                payload: stack(sequence, callstack),
            });
        }
    }
}
