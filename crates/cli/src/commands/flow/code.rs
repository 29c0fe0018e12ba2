// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hardware trace packets, together with the program code needed to decode them.

use std::path::{Path, PathBuf};

use clap::Args;
use lateralis_images::ImageFiles;
use lateralis_model::Source;
use lateralis_store::Recording;
use lateralis_store::flow::Recorded;
use lateralis_store::flow::intelpt::errata::Errata;
use lateralis_store::places::Places;
use lateralis_traces::hardware::{self, AddressFilter, Buffer, Clocks};

use super::kept_code::KeptCode;
use crate::error::CliError;
use crate::inputs::InputArgs;
use crate::values;

/// Sources of code and function names.
#[derive(Debug, Clone, Args)]
pub struct CodeArgs {
    /// Directory with copies of the traced machine's files, for code and symbols
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,
    /// Code that is in no mapped file, with the address of its first byte; repeatable
    #[arg(long, value_name = "FILE:ADDRESS", value_parser = raw)]
    pub raw: Vec<(PathBuf, u64)>,
    /// Family and model of the CPU that made the packets, as in /proc/cpuinfo, to work around its errata;
    /// recordings of perf contain it
    #[arg(long, value_name = "FAMILY/MODEL", value_parser = processor)]
    pub processor: Option<Errata>,
    /// Kernel symbols: a copy of /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,
}

/// Packets of the processors and threads in some traces.
pub struct Hardware {
    buffers: Vec<Buffer>,
    clocks: Clocks,
    /// Address filters of the tracer.
    filters: Vec<AddressFilter>,
    /// Code recorded with the packets.
    code: Vec<(u64, Vec<u8>)>,
    /// Code kept beside the traces.
    kept: KeptCode,
    /// Whether the files contain packets only.
    is_raw: bool,
    /// Whether a file ends inside its packets.
    is_cut: bool,
}

impl Hardware {
    /// Reads the packets of the traces; traces without packets add nothing.
    pub fn read(traces: &[PathBuf]) -> Result<Self, CliError> {
        let (mut buffers, mut code, mut raw) = (Vec::new(), Vec::new(), 0);
        let (mut clocks, mut missing_bytes) = (Clocks::default(), 0_u64);
        let mut filters = Vec::new();
        for path in traces {
            let of = hardware::read(path, PACKED_BYTES)?;
            if let Some(kind) = of.unknown {
                tell!(
                    "warning: {}: of hardware tracer {kind} nothing is decoded: only Intel PT is known",
                    path.display()
                );
            }
            if of.missing_bytes > 0 {
                tell!(
                    "warning: {}: the file ends {} bytes before its packets do: what they say is missing",
                    path.display(),
                    values::count(of.missing_bytes)
                );
            }
            missing_bytes = of.missing_bytes.saturating_add(missing_bytes);
            raw += usize::from(of.is_raw);
            buffers.extend(of.buffers);
            code.extend(of.code);
            // Several files are from one machine.
            (clocks, filters) = (of.clocks, of.filters);
        }
        if raw > 0 && raw < traces.len() {
            return Err(CliError::new(
                "cannot put them together",
                "files of packets only, and other traces",
                "decode them one after the other",
            ));
        }
        let kept = KeptCode::of(traces)?;
        let (is_raw, is_cut) = (raw > 0, missing_bytes > 0);
        Ok(Self { buffers, clocks, filters, code, kept, is_raw, is_cut })
    }

    pub fn is_raw(&self) -> bool {
        self.is_raw
    }

    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }
}

impl CodeArgs {
    pub fn files(&self) -> ImageFiles {
        ImageFiles::new(self.symfs.as_deref()).with_kallsyms(self.kallsyms.as_deref())
    }

    /// Reads the code given by `--raw`, and the kernel code kept with the recording (`kept`).
    fn code(&self, kept: &KeptCode) -> Result<Vec<(u64, Vec<u8>)>, CliError> {
        let read = |(path, address): &(PathBuf, u64)| {
            let bytes = lateralis_files::read_regular(path, CODE_BYTES)
                .map_err(|error| CliError::at_path("cannot read the code", path, &error))?;
            Ok((*address, bytes))
        };
        self.raw.iter().chain(&kept.kernel).map(read).collect()
    }

    /// Combines packets and code, and passes them to `work`. Returns the result of `work`, and whether no
    /// packet is missing and all were decoded.
    ///
    /// Errors: a trace or a file that cannot be read, or no packets.
    pub fn follow<T>(
        &self,
        inputs: &InputArgs,
        hardware: Hardware,
        work: impl FnOnce(&mut Recorded<'_>) -> Result<T, CliError>,
    ) -> Result<(T, bool), CliError> {
        if hardware.is_empty() {
            let place = inputs.traces.first().map_or(Path::new(""), PathBuf::as_path);
            return Err(CliError::new(
                "no instructions",
                place.display().to_string(),
                "record them by: perf record --per-thread -e intel_pt//u -- PROGRAM",
            ));
        }
        let is_cut = hardware.is_cut;
        let mut recorded = if hardware.is_raw {
            let Hardware { buffers, code: mut all, kept, .. } = hardware;
            all.extend(self.code(&kept)?);
            Recorded::raw(Places::without_events(self.files()), buffers, &all)
                .with_errata(self.processor.unwrap_or_default())
        } else {
            self.recorded(&inputs.open()?, hardware)?
        };
        let done = work(&mut recorded)?;
        Ok((done, close(recorded) && !is_cut))
    }

    /// Combines the packets and code of a trace. Its events identify the program.
    ///
    /// Errors: a file of code cannot be read.
    pub fn recorded(
        &self,
        recording: &Recording,
        hardware: Hardware,
    ) -> Result<Recorded<'static>, CliError> {
        let Hardware { buffers, clocks, filters, code: mut all, kept, .. } = hardware;
        all.extend(self.code(&kept)?);
        let places = Places::new(kept.beside(self.files()), recording.source.trace());
        let joined = &recording.source;
        let recorded = match joined.parts() {
            [_] | [] => Recorded::of(joined, places, (buffers, clocks), &all),
            _ => Recorded::of_several(joined, places, hardware::of_parts(joined), &all),
        };
        let recorded = recorded.with_filters(&filters);
        Ok(match self.processor {
            Some(errata) => recorded.with_errata(errata),
            None => recorded,
        })
    }
}

/// Prints warnings about missing packets and code. Returns whether no packet is missing and all were decoded.
pub fn close(recorded: Recorded<'_>) -> bool {
    warn(&recorded);
    let is_complete =
        recorded.unreadable().is_empty() && recorded.truncated() == 0 && recorded.partial() == 0;
    let (_, missing) = recorded.finish();
    for (image, why, _) in missing {
        tell!("warning: {image}: {why}");
    }
    is_complete
}

/// Prints warnings about packets that are missing or cannot be decoded.
fn warn(recorded: &Recorded<'_>) {
    for (cpu, why) in recorded.unreadable() {
        let cpu = cpu.map_or_else(|| "a processor".to_owned(), |cpu| format!("processor {cpu}"));
        tell!("warning: packets of {cpu} are not decoded: {why}");
    }
    if recorded.truncated() > 0 {
        let times = values::counted(recorded.truncated(), "time");
        tell!(
            "warning: the buffer for packets was full {times}: some are missing (perf record -m ,64M)"
        );
    }
    if recorded.partial() > 0 {
        let times = values::counted(recorded.partial(), "time");
        tell!("warning: the tracer of the processor was interrupted {times}: packets are missing");
    }
}

/// Size limit of a compressed recording, in bytes.
const PACKED_BYTES: u64 = 4 << 30;
/// Size limit of a code file, in bytes.
const CODE_BYTES: u64 = 1 << 30;

/// Parses family and model of an Intel processor, in decimal or hexadecimal digits.
fn processor(text: &str) -> Result<Errata, String> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let found = text.split_once('/').and_then(|(family, model)| number(family).zip(number(model)));
    let (family, model) = found.ok_or("family and model of a processor, as in 6/94")?;
    Ok(Errata::of_processor(family, model))
}

/// Parses a file name and the address of the file's first byte.
pub fn raw(text: &str) -> Result<(PathBuf, u64), String> {
    let wrong =
        || "a file and the address of its first byte: kernel.bin:0xffffffff81000000".to_owned();
    let (path, address) = text.rsplit_once(':').ok_or_else(wrong)?;
    let digits = address.strip_prefix("0x").ok_or_else(wrong)?;
    let address = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
    Ok((PathBuf::from(path), address))
}
