// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow dump`: every executed instruction or block, and the events between them.

use std::io::{self, BufWriter, Write};

use clap::{Args, ValueEnum};
use lateralis_model::terminal::{self, Style};
use lateralis_store::flow::intelpt::flow::{Event, GapCause};
use lateralis_store::flow::intelpt::image::Sections;
use lateralis_store::flow::intelpt::packet::Packets;
use lateralis_store::flow::intelpt::{Block, assembly, instructions};
use lateralis_store::flow::{Follow, Moment, Recorded, Traced, cause_name, place_of};
use lateralis_store::places::Places;
use lateralis_traces::hardware::Buffer;
use lateralis_units::Nanos;
use serde_json::{Value, json};

use super::code::{CodeArgs, Hardware};
use crate::date;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output;

/// Options of `lat flow dump`.
#[derive(Debug, Args)]
#[command(
    after_help = "Reads Intel PT from perf.data, and raw packet files. Code is read from the mapped \
    files, unless their \
    build id differs.\n\n\
    Examples:\n  \
    perf record --per-thread -e intel_pt//u -- ./program\n  \
    lat flow dump perf.data\n  \
    lat flow dump perf.data --show blocks --json\n  \
    lat flow dump packets.pt --raw code.bin:0x401000\n\n\
    Exit code 1: there are gaps, or packets that are missing or could not be decoded."
)]
pub struct DumpArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub code: CodeArgs,
    /// What to print: each instruction, each block, only the events between them, or the raw packets
    #[arg(long, value_enum, default_value_t = Show::Instructions)]
    pub show: Show,
    /// Also print the source line of each, and inlined functions
    #[arg(long)]
    pub lines: bool,
    /// Print at most this many lines
    #[arg(long, value_name = "COUNT", value_parser = crate::values::parse_count)]
    pub head: Option<u64>,
    /// Print one line of JSON each
    #[arg(long)]
    pub json: bool,
}

/// Items to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Show {
    /// Address, function and text of each instruction
    Instructions,
    /// Address, function and length of each block
    Blocks,
    /// Gaps, interrupts, and where tracing began and ended
    Events,
    /// Each packet, without code
    Packets,
}

struct Dumping<'a, W> {
    args: &'a DumpArgs,
    out: W,
    pid: u32,
    left: u64,
    gaps: u64,
    line: String,
    failed: Option<io::Error>,
}

/// Prints the executed code.
pub fn run(args: &DumpArgs) -> Result<ExitStatus, CliError> {
    let hardware = Hardware::read(&args.inputs.traces)?;
    if args.show == Show::Packets && !hardware.is_empty() {
        let errors = packets(args, hardware.buffers())?;
        return Ok(if errors == 0 { ExitStatus::Fine } else { ExitStatus::Problems });
    }
    let follow = |recorded: &mut Recorded<'_>| dump(args, recorded);
    let (gaps, is_complete) = args.code.follow(&args.inputs, hardware, follow)?;
    Ok(if gaps == 0 && is_complete { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn dump(args: &DumpArgs, recorded: &mut Recorded<'_>) -> Result<u64, CliError> {
    let style = if args.json { Style::Json } else { Style::Text };
    let mut dumping = Dumping {
        args,
        out: BufWriter::with_capacity(1 << 16, output::data(style)),
        pid: 0,
        left: args.head.unwrap_or(u64::MAX),
        gaps: 0,
        line: String::new(),
        failed: None,
    };
    recorded.follow(&mut dumping);
    match dumping.failed.map_or_else(|| dumping.out.flush(), Err) {
        Ok(()) => Ok(dumping.gaps),
        Err(error) => Err(error.into()),
    }
}

/// Writes packets. Returns the number of places at which bytes are not a packet.
fn packets(args: &DumpArgs, buffers: &[Buffer]) -> Result<u64, CliError> {
    let style = if args.json { Style::Json } else { Style::Text };
    let mut out = BufWriter::with_capacity(1 << 16, output::data(style));
    let (mut errors, mut left) = (0, args.head.unwrap_or(u64::MAX));
    for Buffer { cpu, tid, runs, .. } in buffers {
        match args.json {
            true => writeln!(out, "{}", json!({ "thread": tid, "cpu": cpu }))?,
            false => writeln!(out, "# packets of {}", owner(*cpu, *tid))?,
        }
        let mut before = 0;
        for run in runs {
            for found in Packets::synced(run) {
                let (at, text) = match found {
                    Ok(found) => (found.start, found.packet.to_string()),
                    Err(error) => {
                        errors += 1;
                        (error.start, "no packet".to_owned())
                    }
                };
                let at = before + at as u64;
                if left == 0 {
                    return Ok(errors);
                }
                left -= 1;
                match args.json {
                    true => writeln!(out, "{}", json!({ "byte": at, "packet": text }))?,
                    false => writeln!(out, "{at:016x}  {text}")?,
                }
            }
            before += run.len() as u64;
        }
    }
    out.flush()?;
    Ok(errors)
}

/// Names the CPU or thread that the packets are from.
fn owner(cpu: Option<u32>, tid: Option<u32>) -> String {
    match (cpu, tid) {
        (Some(cpu), _) => format!("processor {cpu}"),
        (None, Some(tid)) => format!("thread {tid}"),
        (None, None) => "one file".to_owned(),
    }
}

impl<W: Write> Dumping<'_, W> {
    /// Writes the current line.
    fn write(&mut self) {
        if self.left > 0 && self.failed.is_none() {
            self.left -= 1;
            self.line.push('\n');
            self.failed = self.out.write_all(self.line.as_bytes()).err();
        }
        self.line.clear();
    }

    fn json(&mut self, value: &Value) {
        self.line = value.to_string();
        self.write();
    }

    fn is_over(&self) -> bool {
        self.left == 0 || self.failed.is_some()
    }

    /// `FUNCTION+0xOFFSET`.
    fn place(&self, places: &mut Places<'_>, ip: u64) -> (String, Option<u64>) {
        let function = places.function_at(self.pid, ip, place_of(ip));
        let offset = places.offset_at(self.pid, ip, place_of(ip));
        (places.name_of(function).unwrap_or_default().to_owned(), offset)
    }

    /// `FILE:LINE`, and the functions inlined there, innermost last.
    fn source(&self, places: &mut Places<'_>, ip: u64) -> (Option<String>, Vec<String>) {
        let frames = places.frames_at(self.pid, ip, place_of(ip));
        let line = frames.last().and_then(|frame| frame.line);
        let inlined = frames.iter().filter(|frame| frame.is_inlined);
        let name = |function| places.name_of(function).unwrap_or_default().to_owned();
        let inlined = inlined.map(|frame| name(frame.function)).collect();
        (line.map(|line| places.line_text(line)), inlined)
    }

    fn one(&mut self, places: &mut Places<'_>, ip: u64, (key, value): (&str, Value)) {
        let (function, offset) = self.place(places, ip);
        if self.args.json {
            let mut line = json!({ "address": ip, "function": function, "offset": offset });
            if self.args.lines {
                let (source, inlined) = self.source(places, ip);
                (line["source"], line["inlined"]) = (json!(source), json!(inlined));
            }
            line[key] = value;
            return self.json(&line);
        }
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        // A name from a file must not end the line.
        let function = terminal::shown(&function);
        let place = match offset {
            Some(offset) => format!("{function}+{offset:#x}"),
            None => function.into_owned(),
        };
        self.line = format!("{ip:#018x}  {place:<32}  {text}");
        if self.args.lines
            && let (Some(source), inlined) = self.source(places, ip)
        {
            let inlined: Vec<_> = inlined.iter().map(|name| terminal::shown(name)).collect();
            let inlined = if inlined.is_empty() {
                String::new()
            } else {
                format!("  (inlined: {})", inlined.join(", "))
            };
            self.line = format!("{:<100}  {}{inlined}", self.line, terminal::shown(&source));
        }
        self.write();
    }
}

impl<W: Write> Follow for Dumping<'_, W> {
    fn begins(&mut self, _: &mut Places<'_>, traced: &Traced) {
        self.pid = traced.pid;
        if self.args.json {
            let Traced { cpu, pid, tid, program } = traced;
            let thread = json!({ "thread": tid, "process": pid, "program": program, "cpu": cpu });
            return self.json(&thread);
        }
        let cpu = traced.cpu.map_or_else(String::new, |cpu| format!(", processor {cpu}"));
        self.line = match traced.tid {
            0 => format!("# packets{cpu}"),
            tid => {
                let program = terminal::shown(&traced.program);
                format!("# thread {tid} of {program} {}{cpu}", traced.pid)
            }
        };
        self.write();
    }

    fn block(&mut self, places: &mut Places<'_>, code: &Sections<'_>, block: &Block, _: Moment) {
        if self.is_over() {
            return;
        }
        match self.args.show {
            Show::Events | Show::Packets => {}
            Show::Blocks => {
                self.one(places, block.ip, ("instructions", json!(block.count)));
            }
            Show::Instructions => {
                let mut text = String::new();
                instructions(code, block, |ip, instruction| {
                    text.clear();
                    assembly(instruction, &mut text);
                    self.one(places, ip, ("assembly", json!(text)));
                });
            }
        }
    }

    fn event(&mut self, _: &mut Places<'_>, position: u64, event: Event, time: Moment) {
        let (name, address) = match event {
            Event::Gap(gap) => {
                self.gaps += 1;
                let address = match gap.cause {
                    GapCause::NoCode(at) | GapCause::Contradiction(at) => Some(at),
                    GapCause::Overflow
                    | GapCause::Malformed(_)
                    | GapCause::UnknownThread
                    | GapCause::BufferFull
                    | GapCause::Missing => None,
                };
                (format!("gap: {}", cause_name(&gap.cause)), address)
            }
            Event::Synced(at) => ("synced".to_owned(), Some(at)),
            Event::Enabled(at) => ("tracing begins".to_owned(), Some(at)),
            Event::Disabled(at) => ("tracing ends".to_owned(), at),
            Event::Interrupted { to, .. } => ("interrupt".to_owned(), Some(to)),
            Event::Here(_) | Event::Packet(_) => return,
        };
        if self.is_over() {
            return;
        }
        if self.args.json {
            let mut line = json!({ "event": name, "address": address, "byte": position });
            line["time_ns"] = json!(time.map(|time| time.nanos));
            line["time_error_ns"] = json!(time.and_then(|time| time.error_nanos));
            return self.json(&line);
        }
        let address = address.map_or_else(String::new, |at| format!(" at {at:#x}"));
        let time = time.map_or_else(String::new, |time| {
            let error =
                time.error_nanos.map_or("unknown".to_owned(), |error| format!("{error} ns"));
            format!(", {} ± {error}", date::text(Nanos(time.nanos.cast_signed())))
        });
        self.line = format!("# {name}{address}, byte {position}{time}");
        self.write();
    }
}
