// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Description of a kernel's tracing: the start of a `trace.dat` of version 6, sections of a `trace.dat`
//! of version 7, and a feature of `perf.data` (trace-cmd.dat.v6(5), trace-cmd.dat.v7(5)).

use std::collections::BTreeMap;
use std::sync::Arc;

use lateralis_model::ByteOrder;

use crate::catalog::Catalog;
use crate::ftrace::PageLayout;
use crate::wire::Wire;

/// Magic of `trace.dat`, and of the description in `perf.data`.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Description of a kernel's tracing.
#[derive(Debug)]
pub struct TracingData {
    /// `6`, `7`; `0.5`, `0.6` in perf.data.
    pub version: String,
    /// Byte order of the file and its records.
    pub order: ByteOrder,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Layout of a page.
    pub layout: PageLayout,
    /// Descriptions of events.
    pub catalog: Catalog,
    /// Names of threads.
    pub cmdlines: BTreeMap<u32, String>,
}

impl TracingData {
    /// Reads magic, version, byte order and sizes; `None` if they are missing.
    pub fn begin<'a>(wire: &mut Wire<'a>, bytes: &'a [u8]) -> Option<Self> {
        wire.take(MAGIC.len()).filter(|magic| *magic == MAGIC)?;
        let version = String::from_utf8_lossy(wire.until_nul()).into_owned();
        let order = match wire.take(1)? {
            [0] => ByteOrder::Little,
            [1] => ByteOrder::Big,
            _ => return None,
        };
        let long_bytes = u32::from(wire.take(1)?[0]);
        *wire = Wire::at(bytes, wire.position() as u64, order);
        let page_bytes = wire.u32()?;
        let mut catalog = Catalog::default();
        catalog.long_bytes = long_bytes;
        let layout = PageLayout::usual(order, long_bytes);
        let cmdlines = BTreeMap::new();
        Some(Self { version, order, page_bytes, layout, catalog, cmdlines })
    }

    /// Reads the descriptions of page and event headers.
    pub fn header_info(&mut self, wire: &mut Wire<'_>) -> Option<()> {
        wire.take(12).filter(|name| *name == b"header_page\0")?;
        let size = wire.u64()?;
        let text = String::from_utf8_lossy(wire.take64(size)?).into_owned();
        self.layout = PageLayout::parse(&text, self.order).unwrap_or(self.layout);
        // The `long` of the kernel counts, not that of user space.
        self.catalog.long_bytes = self.layout.commit_bytes as u32;
        wire.take(13).filter(|name| *name == b"header_event\0")?;
        let size = wire.u64()?;
        wire.take64(size).map(drop)
    }

    /// Reads the formats of the events of ftrace itself.
    pub fn ftrace_events(&mut self, wire: &mut Wire<'_>) -> Option<()> {
        let count = wire.u32()?;
        let system = Arc::from("ftrace");
        self.formats(wire, count, &system)
    }

    /// Reads the formats of all other events.
    pub fn event_formats(&mut self, wire: &mut Wire<'_>) -> Option<()> {
        let systems = wire.u32()?;
        for _ in 0..systems {
            let name = wire.until_nul();
            let system = Arc::from(String::from_utf8_lossy(name));
            let count = wire.u32()?;
            self.formats(wire, count, &system)?;
        }
        Some(())
    }

    fn formats(&mut self, wire: &mut Wire<'_>, count: u32, system: &Arc<str>) -> Option<()> {
        for _ in 0..count {
            let size = wire.u64()?;
            self.catalog.add(system, wire.take64(size)?);
        }
        Some(())
    }

    /// Skips addresses of functions, or formats of `trace_printk`.
    pub fn skip_text(wire: &mut Wire<'_>) -> Option<()> {
        let size = wire.u32()?;
        wire.take(size as usize).map(drop)
    }

    /// Reads the names of threads: one `PID NAME` per line.
    pub fn saved_cmdlines(&mut self, wire: &mut Wire<'_>) -> Option<()> {
        let size = wire.u64()?;
        let text = String::from_utf8_lossy(wire.take64(size)?);
        for line in text.lines() {
            let Some((pid, name)) = line.trim_start().split_once(' ') else { continue };
            if let Ok(pid) = pid.parse() {
                self.cmdlines.insert(pid, name.to_owned());
            }
        }
        Some(())
    }

    /// Reads all of the above in the order of version 6 and of perf.data. On a fault or an early end,
    /// everything before it is kept, and `None` is returned.
    pub fn all(&mut self, wire: &mut Wire<'_>) -> Option<()> {
        self.header_info(wire)?;
        self.ftrace_events(wire)?;
        self.event_formats(wire)?;
        Self::skip_text(wire)?;
        Self::skip_text(wire)?;
        if self.version != "0.5" {
            self.saved_cmdlines(wire)?;
        }
        Some(())
    }
}
