// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of `trace.dat`, which are the same in both versions, and the time conversions in them.

use lateralis_model::{ByteOrder, EnvValue};

use crate::wire::{Wire, text};

const DATE: u16 = 1;
const CPUSTAT: u16 = 2;
const TRACECLOCK: u16 = 4;
const UNAME: u16 = 5;
const OFFSET: u16 = 7;
const CPUCOUNT: u16 = 8;
const VERSION: u16 = 9;
const TRACEID: u16 = 11;
const TIME_SHIFT: u16 = 12;
const GUEST: u16 = 13;
const TSC2NSEC: u16 = 14;

/// Conversion of the time stamp counter to nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TscScale {
    multiplier: u32,
    shift: u32,
    offset: u64,
}

/// Options of a file.
#[derive(Debug, Default)]
pub struct Options {
    /// The trace clock of the whole file.
    pub clock: String,
    /// CPUs of the machine.
    pub cpu_count: Option<u32>,
    /// Offset from the clock to the time of day in nanoseconds.
    pub date_nanos: Option<i64>,
    /// Offset of every time stamp in nanoseconds.
    pub offset_nanos: i64,
    /// For the clock `x86-tsc`.
    pub tsc: Option<TscScale>,
    /// Properties of the machine.
    pub environment: Vec<(String, EnvValue)>,
    /// Options that cannot be used.
    pub remarks: Vec<String>,
}

impl Options {
    /// Processes an option that does not concern sections or buffers.
    pub fn take(&mut self, id: u16, data: &[u8], order: ByteOrder) {
        let mut say = |name: &str, value: EnvValue| self.environment.push((name.to_owned(), value));
        let mut wire = Wire::new(data, order);
        match id {
            DATE => {
                // Microseconds, in the syntax of the C library.
                let micros = number(&text(data));
                self.date_nanos = micros.and_then(|micros| micros.checked_mul(1000));
            }
            OFFSET => self.offset_nanos = number(&text(data)).unwrap_or(0),
            TRACECLOCK => self.clock = selected_clock(&text(data)),
            UNAME => {
                let uname = text(data);
                let words: Vec<_> = uname.split_whitespace().collect();
                let names = ["sysname", "hostname", "kernel_release", "architecture"];
                for (name, word) in names.iter().zip(&words) {
                    say(name, EnvValue::Text((*word).to_owned()));
                }
            }
            VERSION => say("tracer_version", EnvValue::Text(text(data))),
            CPUCOUNT => {
                self.cpu_count = wire.u32();
                if let Some(count) = self.cpu_count {
                    say("cpus", EnvValue::Integer(i128::from(count)));
                }
            }
            TRACEID => {
                if let Some(id) = wire.u64() {
                    say("trace_id", EnvValue::Integer(i128::from(id)));
                }
            }
            TSC2NSEC => {
                let scale = (wire.u32(), wire.u32(), wire.u64());
                if let (Some(multiplier), Some(shift @ 0..64), Some(offset)) = scale {
                    self.tsc = Some(TscScale { multiplier, shift, offset });
                }
            }
            CPUSTAT => self.cpu_statistics(&text(data)),
            TIME_SHIFT => self.remarks.push(
                "times are those of a guest: its corrections to the clock of the host are not \
                 applied"
                    .to_owned(),
            ),
            GUEST => {
                self.remarks.push(format!("the guest {} was traced along", text(data)));
            }
            _ => {}
        }
    }

    /// Numbers of events that the kernel reports as overwritten or dropped.
    fn cpu_statistics(&mut self, statistics: &str) {
        let cpu = statistics.lines().find_map(|line| line.strip_prefix("CPU:"));
        let cpu = cpu.map_or("?", str::trim);
        for key in ["overrun", "dropped events"] {
            let line = statistics.lines().find_map(|line| line.strip_prefix(key));
            let count =
                line.and_then(|line| line.trim_start_matches(':').trim().parse::<u64>().ok());
            if let Some(count @ 1..) = count {
                self.remarks
                    .push(format!("the kernel counts {count} events as {key} on CPU {cpu}"));
            }
        }
    }

    /// A time stamp in nanoseconds of the trace's clock; times before its zero become zero.
    pub fn nanos(&self, clock: &str, stamp: u64) -> u64 {
        let scaled = match self.tsc {
            Some(tsc) if clock == "x86-tsc" => {
                let product = (u128::from(stamp) * u128::from(tsc.multiplier)) >> tsc.shift;
                (product as u64).wrapping_add(tsc.offset)
            }
            _ => stamp,
        };
        scaled.saturating_add_signed(self.offset_nanos)
    }
}

/// Parses a number like strtoll: decimal, or hexadecimal after `0x`.
fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.trim_start_matches('+')),
    };
    let magnitude = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => digits.parse::<i64>().ok()?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// The clock in brackets, as tracefs marks the current one; otherwise the first word.
pub fn selected_clock(text: &str) -> String {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let first = || text.split_whitespace().next().unwrap_or("");
    bracketed.map_or_else(first, |(clock, _)| clock).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_scaled_and_shifted() {
        let mut options = Options::default();
        assert_eq!(options.nanos("local", 7), 7);
        options.take(OFFSET, b"-5\0", ByteOrder::Little);
        assert_eq!((options.nanos("local", 7), options.nanos("local", 3)), (2, 0));
        let mut scale = 3u32.to_be_bytes().to_vec();
        scale.extend(1u32.to_be_bytes());
        scale.extend(100u64.to_be_bytes());
        options.take(TSC2NSEC, &scale, ByteOrder::Big);
        assert_eq!(options.nanos("x86-tsc", 7), 10 + 100 - 5);
        assert_eq!(options.nanos("local", 7), 2);
        options.take(DATE, b"0x10\0", ByteOrder::Big);
        assert_eq!(options.date_nanos, Some(16_000));
    }

    #[test]
    fn the_clock_in_brackets_is_the_one_in_use() {
        assert_eq!(selected_clock("local global [x86-tsc] mono\n"), "x86-tsc");
        assert_eq!(selected_clock("mono"), "mono");
        assert_eq!(selected_clock(""), "");
    }
}
