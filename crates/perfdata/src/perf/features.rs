// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Features: description of the machine, events and clocks of a `perf.data`.

use lateralis_model::{ByteOrder, EnvValue};

use super::file::Attrs;
use crate::tracing_data::TracingData;
use crate::wire::{Wire, text};

/// Numbers of features [perf.data-file-format.txt, tools/perf/util/header.h].
mod feature {
    pub const TRACING_DATA: u32 = 1;
    pub const BUILD_ID: u32 = 2;
    pub const HOSTNAME: u32 = 3;
    pub const OSRELEASE: u32 = 4;
    pub const VERSION: u32 = 5;
    pub const ARCH: u32 = 6;
    pub const NRCPUS: u32 = 7;
    pub const CPUDESC: u32 = 8;
    pub const CPUID: u32 = 9;
    pub const TOTAL_MEM: u32 = 10;
    pub const CMDLINE: u32 = 11;
    pub const EVENT_DESC: u32 = 12;
    pub const SAMPLE_TIME: u32 = 21;
    pub const CLOCKID: u32 = 23;
    pub const CLOCK_DATA: u32 = 29;
}

/// Largest number of arguments of a command line that are read.
const ARGUMENTS_MAX: u32 = 1 << 16;

/// Wall clock and trace clock, read at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockPair {
    /// POSIX id of the trace clock.
    pub clockid: u32,
    /// Nanoseconds since 1970.
    pub wall_nanos: u64,
    /// Nanoseconds of the trace clock.
    pub trace_nanos: u64,
}

/// All features of interest.
#[derive(Debug, Default)]
pub struct Features {
    /// Host, kernel, command line …
    pub environment: Vec<(String, EnvValue)>,
    /// Formats of tracepoints, names of threads.
    pub tracing: Option<TracingData>,
    /// Records with build ids.
    pub build_ids: Vec<u8>,
    /// Relation of trace time to wall clock.
    pub clock_pair: Option<ClockPair>,
}

impl Features {
    /// Processes a feature. `None` if its content is invalid; unknown features are ignored.
    pub fn take(
        &mut self,
        number: u32,
        content: &[u8],
        order: ByteOrder,
        attrs: &mut Attrs,
    ) -> Option<()> {
        let mut wire = Wire::new(content, order);
        let name = match number {
            feature::HOSTNAME => "hostname",
            feature::OSRELEASE => "kernel_release",
            feature::VERSION => "tracer_version",
            feature::ARCH => "architecture",
            feature::CPUDESC => "cpu",
            feature::CPUID => "cpu_model",
            feature::TOTAL_MEM => {
                // The unit in the file is KiB.
                let bytes = i128::from(wire.u64()?) * 1024;
                self.say("memory_bytes", EnvValue::Integer(bytes));
                return Some(());
            }
            feature::NRCPUS => {
                let (online, _available) = (wire.u32()?, wire.u32()?);
                self.say("cpus", EnvValue::Integer(i128::from(online)));
                return Some(());
            }
            feature::CMDLINE => {
                let count = wire.u32()?.min(ARGUMENTS_MAX);
                let words: Option<Vec<_>> = (0..count).map(|_| string(&mut wire)).collect();
                self.say("command_line", EnvValue::Text(words?.join(" ")));
                return Some(());
            }
            feature::SAMPLE_TIME => {
                for name in ["first_sample_ns", "last_sample_ns"] {
                    // In pipes the section precedes the times.
                    if let time @ 1.. = wire.u64()? {
                        self.say(name, EnvValue::Integer(i128::from(time)));
                    }
                }
                return Some(());
            }
            feature::CLOCKID => {
                let resolution = i128::from(wire.u64()?);
                self.say("clock_resolution_ns", EnvValue::Integer(resolution));
                return Some(());
            }
            feature::CLOCK_DATA => {
                let _version = wire.u32()?;
                let clockid = wire.u32()?;
                let (wall_nanos, trace_nanos) = (wire.u64()?, wire.u64()?);
                self.clock_pair = Some(ClockPair { clockid, wall_nanos, trace_nanos });
                return Some(());
            }
            feature::EVENT_DESC => return event_names(&mut wire, attrs),
            feature::BUILD_ID => {
                self.build_ids = content.to_vec();
                return Some(());
            }
            feature::TRACING_DATA => return self.tracing_data(content),
            _ => return Some(()),
        };
        let value = string(&mut wire)?;
        self.say(name, EnvValue::Text(value));
        Some(())
    }

    fn say(&mut self, name: &str, value: EnvValue) {
        self.environment.push((name.to_owned(), value));
    }

    /// Reads the description of tracepoints. The readable part of a damaged one is kept, and `None` is
    /// returned.
    pub fn tracing_data(&mut self, content: &[u8]) -> Option<()> {
        let mut wire = Wire::new(content, ByteOrder::Little);
        let mut data = TracingData::begin(&mut wire, content)?;
        let whole = data.all(&mut wire);
        self.tracing = Some(data);
        whole
    }
}

/// Length, then that many bytes, padded with NULs.
fn string(wire: &mut Wire<'_>) -> Option<String> {
    let length = wire.u32()?;
    Some(text(wire.take(length as usize)?))
}

/// Names of events, by their ids, or by their index if they have none.
fn event_names(wire: &mut Wire<'_>, attrs: &mut Attrs) -> Option<()> {
    let (count, attr_bytes) = (wire.u32()?, wire.u32()?);
    for index in 0..count as usize {
        wire.take(attr_bytes as usize)?;
        let ids = wire.u32()?;
        let name = string(wire)?;
        let first = match ids {
            0 => None,
            _ => {
                let first = wire.u64()?;
                wire.take64((u64::from(ids) - 1) * 8)?;
                Some(first)
            }
        };
        let attr = match first.and_then(|id| attrs.by_id(id)) {
            Some(index) => attrs.all.get_mut(index),
            None => attrs.all.get_mut(index),
        };
        if let Some(attr) = attr {
            attr.name = name;
        }
    }
    Some(())
}
