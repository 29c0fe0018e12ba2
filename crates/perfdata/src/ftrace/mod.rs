// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `trace.dat` of trace-cmd, versions 6 and 7, and bare pages of tracefs.
//!
//! ```text
//! trace.dat   formats of events, names of threads, options, then pages of each CPU
//! version 6   one part after the other, nothing compressed
//! version 7   sections that options point to, some of them compressed
//! ```
//!
//! Sources: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5); details that they leave open were determined from
//! files written by trace-cmd 3.1.6.

mod events;
mod options;
mod page;
mod pages;
mod trace;
mod version6;
mod version7;

use std::sync::Arc;

use lateralis_model::{ByteOrder, DamageReason};

pub use page::{PageEnd, PageLayout, records};
pub use trace::FtraceTrace;

use crate::Error;
use crate::notes::Notes;
use crate::perf::Bytes;
use crate::tracing_data::{MAGIC, TracingData};
use crate::wire::Wire;
use options::Options;
use pages::Content;
use trace::{Buffer, PerCpu};

/// Whether a file that begins with these bytes is a `trace.dat`.
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    first.starts_with(MAGIC)
}

/// Opens a `trace.dat`; event descriptions, and decompressed pages while they are read, take at most
/// `limit_bytes` each, descriptions at least 64 MiB.
///
/// # Errors
/// If its version cannot be read, or is neither 6 nor 7.
pub fn open(name: &str, file: Bytes, limit_bytes: u64) -> Result<FtraceTrace, Error> {
    let whole = Arc::clone(&file);
    let bytes = (*whole).as_ref();
    let mut wire = Wire::new(bytes, ByteOrder::Little);
    let Some(mut data) = TracingData::begin(&mut wire, bytes) else {
        let advice = "it ends or is damaged in its first bytes; nothing can be read";
        return Err(Error::new(name, "no trace.dat", advice));
    };
    let mut notes = Notes::new(name);
    let mut options = Options::default();
    let at = wire.position() as u64;
    let buffers = match data.version.as_str() {
        "6" => version6::read(bytes, at, &mut data, &mut options, &mut notes),
        "7" => version7::read(bytes, at, limit_bytes, &mut data, &mut options, &mut notes),
        _ => {
            let advice = "this version of trace.dat is unknown; convert it by trace-cmd convert";
            return Err(Error::new(name, "unknown version", advice));
        }
    };
    let format = format!("trace.dat {}", data.version);
    let about = (data, options);
    Ok(FtraceTrace::open(&format, name, vec![file], buffers, about, notes, limit_bytes))
}

/// Inputs of [`open_pages`] besides the pages: files of tracefs.
#[derive(Debug, Clone, Default)]
pub struct PagesInfo<'a> {
    /// `events/header_page`; the usual layout if it is empty.
    pub header_page: &'a str,
    /// `events/SYSTEM/NAME/format`, with their systems.
    pub formats: &'a [(&'a str, &'a str)],
    /// `saved_cmdlines`.
    pub saved_cmdlines: &'a str,
    /// `trace_clock`, or only the name of the clock.
    pub trace_clock: &'a str,
    /// Bytes of a page (`buffer_subbuf_size_kb`); 4096 if 0.
    pub page_bytes: u32,
}

/// Byte order of pages: the one in which the first page of a CPU is plausible; little-endian if there is
/// none.
pub fn order_of_pages<'a>(
    cpus: impl IntoIterator<Item = &'a [u8]>,
    info: &PagesInfo<'_>,
) -> ByteOrder {
    let page_bytes = if info.page_bytes == 0 { 4096 } else { info.page_bytes as usize };
    for pages in cpus {
        let page = &pages[..pages.len().min(page_bytes)];
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let layout = PageLayout::parse(info.header_page, order);
            let layout = layout.unwrap_or(PageLayout::usual(order, 8));
            let mut count = 0u32;
            let end = records(page, layout, |_, _, _| {
                count += 1;
                true
            });
            if count > 0 && end.damage.is_none() {
                return order;
            }
        }
    }
    ByteOrder::Little
}

/// Opens pages read from `per_cpu/cpuN/trace_pipe_raw`, for each CPU, on a machine with this byte order.
/// `name` is used in reports of damage; positions count from the first byte of that CPU's pages.
#[must_use]
pub fn open_pages(
    name: &str,
    cpus: Vec<(u32, Bytes)>,
    info: &PagesInfo<'_>,
    order: ByteOrder,
) -> FtraceTrace {
    let layout = PageLayout::parse(info.header_page, order);
    let layout = layout.unwrap_or(PageLayout::usual(order, 8));
    let page_bytes = if info.page_bytes == 0 { 4096 } else { info.page_bytes };
    let catalog = crate::catalog::Catalog::default();
    let cmdlines = std::collections::BTreeMap::new();
    let version = "pages".to_owned();
    let mut data = TracingData { version, order, page_bytes, layout, catalog, cmdlines };
    data.catalog.long_bytes = layout.commit_bytes as u32;
    for (system, text) in info.formats {
        data.catalog.add(&Arc::from(*system), text.as_bytes());
    }
    let mut names = (info.saved_cmdlines.len() as u64).to_le_bytes().to_vec();
    names.extend_from_slice(info.saved_cmdlines.as_bytes());
    // Complete by construction.
    let _ = data.saved_cmdlines(&mut Wire::new(&names, ByteOrder::Little));
    let clock = options::selected_clock(info.trace_clock);
    let (numbers, files): (Vec<u32>, Vec<Bytes>) = cpus.into_iter().unzip();
    let per_cpu = |(file, cpu): (usize, u32)| {
        let content = Content::Plain(0, (*files[file]).as_ref().len());
        PerCpu { cpu, file, content }
    };
    let cpus = numbers.into_iter().enumerate().map(per_cpu).collect();
    let buffer = Buffer { name: String::new(), clock, page_bytes, cpus };
    let about = (data, Options::default());
    let (format, notes) = ("tracefs pages", Notes::new(name));
    FtraceTrace::open(format, name, files, vec![buffer], about, notes, u64::MAX)
}

/// Notes that the file ends inside one of its parts.
fn cut(notes: &mut Notes, begin: u64, bytes: &[u8]) {
    let reason = DamageReason::Truncated { missing_bytes: None };
    notes.damage(begin.min(bytes.len() as u64), bytes.len() as u64, reason, None);
}
