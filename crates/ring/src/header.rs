// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Header and tables of an area, copied out of hostile memory into plain values.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::abi::{self, header, process, schema, trigger};
use crate::memory::{AreaView, Load, OutOfArea};

/// Whose clock the time stamps are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockKind {
    /// `rdtsc`.
    X86Tsc,
    /// The virtual counter of AArch64.
    Aarch64Cntvct,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    MonotonicNs,
    /// Whatever a machine without an operating system has; only small areas have it.
    Port,
}

impl ClockKind {
    /// From `lat_clock_kind`.
    pub fn from_word(word: u32) -> Option<ClockKind> {
        match word {
            1 => Some(ClockKind::X86Tsc),
            2 => Some(ClockKind::Aarch64Cntvct),
            3 => Some(ClockKind::MonotonicNs),
            _ => None,
        }
    }
}

/// Why a stretch of memory is not an area that this crate reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AreaHeaderError {
    /// Shorter than the fixed part of an area.
    TooShort(OutOfArea),
    /// The two magic words are not there.
    NotAnArea,
    /// Another version of the ABI.
    Version {
        /// The area's.
        found: u32,
        /// This crate's.
        known: u32,
    },
    /// The header's own size or byte order mark is wrong.
    Malformed {
        /// `header_bytes`.
        header_bytes: u32,
        /// `byte_order`.
        byte_order: u32,
    },
}

impl From<OutOfArea> for AreaHeaderError {
    fn from(error: OutOfArea) -> AreaHeaderError {
        AreaHeaderError::TooShort(error)
    }
}

impl fmt::Display for AreaHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AreaHeaderError::TooShort(error) => {
                write!(f, "Cannot read area: too short, area-bytes={}", error.area_bytes)
            }
            AreaHeaderError::NotAnArea => write!(f, "Cannot read area: no magic words"),
            AreaHeaderError::Version { found, known } => {
                write!(f, "Cannot read area: abi-version={found}, known-version={known}")
            }
            AreaHeaderError::Malformed { header_bytes, byte_order } => write!(
                f,
                "Cannot read area: header-bytes={header_bytes}, byte-order={byte_order:#x}"
            ),
        }
    }
}

impl core::error::Error for AreaHeaderError {}

/// The header of an area. Words are as found: only magic, version and byte order are checked;
/// rings are checked by [`crate::Geometry::of`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "names and meaning are those of struct lat_area_header")]
pub struct AreaHeader {
    /// The traced machine's byte order is not this one's.
    pub swapped: bool,
    pub page_bytes: u32,
    pub area_bytes: u64,
    pub area_id: u64,
    pub creator_pid: u32,
    pub creator_uid: u32,
    pub session: u64,
    pub ring_kind: u32,
    pub ring_count: u32,
    pub ring_mode: u32,
    pub state: u32,
    pub rings_offset: u64,
    pub ring_stride: u64,
    pub packet_bytes: u64,
    pub packets_per_ring: u64,
    pub rings_ready: u32,
    pub clock_kind: u32,
    pub clock_hz: u64,
    pub clock_at_start: u64,
    pub realtime_ns_at_start: u64,
    pub monotonic_ns_at_start: u64,
    pub next_event_id: u32,
    pub setup_errno: u32,
    pub heap_used: u64,
    pub recorder_pid: u32,
    pub lost_no_ring: u64,
    pub lost_schemas: u64,
    pub uuid: [u8; 16],
    pub stream_id: u32,
    pub pointer_bytes: u32,
    pub pid_namespace: u64,
    /// Path of the program, up to the first NUL.
    pub exe: Vec<u8>,
    /// Arguments separated by NUL, without the trailing NULs.
    pub command: Vec<u8>,
    /// Patterns for schemas that register later, up to the first NUL.
    pub enable: Vec<u8>,
}

fn text_at(view: &AreaView<'_>, offset: u64, bytes: u64) -> Result<Vec<u8>, OutOfArea> {
    let mut text = vec![0; bytes as usize];
    view.copy_out(offset, &mut text)?;
    Ok(text)
}

fn up_to_nul(mut text: Vec<u8>) -> Vec<u8> {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    text.truncate(end);
    text
}

impl AreaHeader {
    /// Copies the header out.
    /// Cost: 2 KiB of copies and allocations; not for every poll.
    pub fn read(view: &AreaView<'_>) -> Result<AreaHeader, AreaHeaderError> {
        let plain = view.with_swapped(false);
        let magic = plain.load_u64(header::MAGIC, Load::Acquire)?;
        let complement = plain.load_u64(header::MAGIC_COMPLEMENT, Load::Relaxed)?;
        let swapped = match magic {
            abi::AREA_MAGIC => false,
            word if word.swap_bytes() == abi::AREA_MAGIC => true,
            _ => return Err(AreaHeaderError::NotAnArea),
        };
        if complement != !magic {
            return Err(AreaHeaderError::NotAnArea);
        }
        let view = plain.with_swapped(swapped);
        let word = |offset| view.load_u32(offset, Load::Relaxed);
        let long = |offset| view.load_u64(offset, Load::Relaxed);
        let found = word(header::ABI_VERSION)?;
        if found != abi::ABI_VERSION {
            return Err(AreaHeaderError::Version { found, known: abi::ABI_VERSION });
        }
        let (header_bytes, byte_order) = (word(header::HEADER_BYTES)?, word(header::BYTE_ORDER)?);
        if u64::from(header_bytes) != header::BYTES || byte_order != abi::BYTE_ORDER_MARK {
            return Err(AreaHeaderError::Malformed { header_bytes, byte_order });
        }
        // The tables are part of every area: refuse a stretch that ends inside them.
        view.load_u8(abi::RINGS_OFFSET - 1)?;
        // Pair R1: the geometry below is read after this.
        let rings_ready = view.load_u32(header::RINGS_READY, Load::Acquire)?;
        let mut uuid = [0; 16];
        view.copy_out(header::UUID, &mut uuid)?;
        let mut command = text_at(&view, header::COMMAND, header::COMMAND_BYTES)?;
        let end = command.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        command.truncate(end);
        Ok(AreaHeader {
            swapped,
            page_bytes: word(header::PAGE_BYTES)?,
            area_bytes: long(header::AREA_BYTES)?,
            area_id: long(header::AREA_ID)?,
            creator_pid: word(header::CREATOR_PID)?,
            creator_uid: word(header::CREATOR_UID)?,
            session: long(header::SESSION)?,
            ring_kind: word(header::RING_KIND)?,
            ring_count: word(header::RING_COUNT)?,
            ring_mode: word(header::RING_MODE)?,
            state: word(header::STATE)?,
            rings_offset: long(header::RINGS_OFFSET)?,
            ring_stride: long(header::RING_STRIDE)?,
            packet_bytes: long(header::PACKET_BYTES)?,
            packets_per_ring: long(header::PACKETS_PER_RING)?,
            rings_ready,
            clock_kind: word(header::CLOCK_KIND)?,
            clock_hz: long(header::CLOCK_HZ)?,
            clock_at_start: long(header::CLOCK_AT_START)?,
            realtime_ns_at_start: long(header::REALTIME_NS_AT_START)?,
            monotonic_ns_at_start: long(header::MONOTONIC_NS_AT_START)?,
            next_event_id: word(header::NEXT_EVENT_ID)?,
            setup_errno: word(header::SETUP_ERRNO)?,
            heap_used: long(header::HEAP_USED)?,
            recorder_pid: word(header::RECORDER_PID)?,
            lost_no_ring: long(header::LOST_NO_RING)?,
            lost_schemas: long(header::LOST_SCHEMAS)?,
            uuid,
            stream_id: word(header::STREAM_ID)?,
            pointer_bytes: word(header::POINTER_BYTES)?,
            pid_namespace: long(header::PID_NAMESPACE)?,
            exe: up_to_nul(text_at(&view, header::EXE, header::EXE_BYTES)?),
            command,
            enable: up_to_nul(text_at(&view, header::ENABLE, header::ENABLE_BYTES)?),
        })
    }
}

/// A process that writes into the area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEntry {
    /// Its number.
    pub pid: u32,
    /// Its parent's.
    pub parent_pid: u32,
    /// Name of its first thread, up to the first NUL.
    pub name: Vec<u8>,
    /// Address in its memory of its tables of patchable sites; 0 = none.
    pub patch_table: u64,
}

/// Whether a slot of the process table was never taken. The first free slot is taken, and pids
/// remain: after this one none is in use.
fn was_never_taken(view: &AreaView<'_>, at: u64, state: u32) -> Result<bool, OutOfArea> {
    Ok(state == abi::SLOT_FREE && view.load_u32(at + process::PID, Load::Relaxed)? == 0)
}

/// The processes registered so far. At most [`abi::PROCESS_COUNT`].
pub fn processes(view: &AreaView<'_>) -> Result<Vec<ProcessEntry>, OutOfArea> {
    let mut found = Vec::new();
    for slot in 0..abi::PROCESS_COUNT {
        let at = abi::PROCESSES_OFFSET + slot * process::BYTES;
        let state = view.load_u32(at + process::STATE, Load::Acquire)?;
        if was_never_taken(view, at, state)? {
            break;
        }
        if state != abi::SLOT_READY {
            continue;
        }
        found.push(ProcessEntry {
            pid: view.load_u32(at + process::PID, Load::Relaxed)?,
            parent_pid: view.load_u32(at + process::PARENT_PID, Load::Relaxed)?,
            name: up_to_nul(text_at(view, at + process::NAME, process::NAME_BYTES)?),
            patch_table: view.load_u64(at + process::PATCH_TABLE, Load::Relaxed)?,
        });
    }
    Ok(found)
}

/// Gives the place of a process that is gone free for another.
pub fn free_process(view: &AreaView<'_>, pid: u32) -> Result<(), OutOfArea> {
    for slot in 0..abi::PROCESS_COUNT {
        let at = abi::PROCESSES_OFFSET + slot * process::BYTES;
        let state = view.load_u32(at + process::STATE, Load::Acquire)?;
        if was_never_taken(view, at, state)? {
            break;
        }
        if state == abi::SLOT_READY && view.load_u32(at + process::PID, Load::Relaxed)? == pid {
            view.exchange_u32(at + process::STATE, abi::SLOT_READY, abi::SLOT_FREE)?;
        }
    }
    Ok(())
}

/// A registered schema. The numbers are as found; [`SchemaEntry::ids`] and [`schema_text`] check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaEntry {
    /// Number of its slot in the table.
    pub slot: u32,
    /// Id of its first event.
    pub base_id: u32,
    /// How many events.
    pub event_count: u32,
    /// Bytes of its text.
    pub text_bytes: u32,
    /// Where the text is, from the start of the area.
    pub text_offset: u64,
    /// Hash of the text, as the program says.
    pub hash: u64,
    /// Name, cut, up to the first NUL.
    pub name: Vec<u8>,
}

impl SchemaEntry {
    /// Its event ids, `None` if they reach into the internal ids or beyond the enable table.
    pub fn ids(&self) -> Option<Range<u32>> {
        let end = self.base_id.checked_add(self.event_count)?;
        (self.base_id >= abi::INTERNAL_EVENT_COUNT && end <= abi::EVENT_COUNT)
            .then_some(self.base_id..end)
    }
}

/// The schemas registered so far (pair R2). At most [`abi::SCHEMA_COUNT`].
///
/// Slots are taken in order and never released: after the first free one there is nothing, not even
/// memory in the file [ring-abi §2].
pub fn schemas(view: &AreaView<'_>) -> Result<Vec<SchemaEntry>, OutOfArea> {
    let mut found = Vec::new();
    for slot in 0..abi::SCHEMA_COUNT {
        let at = abi::SCHEMAS_OFFSET + slot * schema::BYTES;
        match view.load_u32(at + schema::STATE, Load::Acquire)? {
            abi::SLOT_READY => {}
            abi::SLOT_FREE => break,
            _ => continue,
        }
        found.push(SchemaEntry {
            slot: slot as u32,
            base_id: view.load_u32(at + schema::BASE_ID, Load::Relaxed)?,
            event_count: view.load_u32(at + schema::EVENT_COUNT, Load::Relaxed)?,
            text_bytes: view.load_u32(at + schema::TEXT_BYTES, Load::Relaxed)?,
            text_offset: view.load_u64(at + schema::TEXT_OFFSET, Load::Relaxed)?,
            hash: view.load_u64(at + schema::HASH, Load::Relaxed)?,
            name: up_to_nul(text_at(view, at + schema::NAME, schema::NAME_BYTES)?),
        });
    }
    Ok(found)
}

/// The pleco text of a schema, `None` if it does not lie in the schema heap.
pub fn schema_text(view: &AreaView<'_>, entry: &SchemaEntry) -> Option<Vec<u8>> {
    let heap = abi::HEAP_OFFSET..abi::HEAP_OFFSET + abi::HEAP_BYTES;
    let end = entry.text_offset.checked_add(u64::from(entry.text_bytes))?;
    if entry.text_offset < heap.start || end > heap.end {
        return None;
    }
    text_at(view, entry.text_offset, u64::from(entry.text_bytes)).ok()
}

/// How many event ids may be in use, bounded by the table.
pub fn event_ids_in_use(view: &AreaView<'_>) -> Result<u32, OutOfArea> {
    let next = view.load_u32(header::NEXT_EVENT_ID, Load::Relaxed)?;
    Ok(next.clamp(abi::INTERNAL_EVENT_COUNT, abi::EVENT_COUNT))
}

fn event_offset(table: u64, id: u32) -> Result<u64, OutOfArea> {
    if id < abi::EVENT_COUNT {
        Ok(table + u64::from(id))
    } else {
        Err(OutOfArea { offset: u64::from(id), bytes: 1, area_bytes: abi::EVENT_COUNT.into() })
    }
}

/// The enable byte of an event.
pub fn enable_byte(view: &AreaView<'_>, id: u32) -> Result<u8, OutOfArea> {
    view.load_u8(event_offset(abi::ENABLE_OFFSET, id)?)
}

/// Sets the enable byte of an event; the program sees it at its next event of this id.
pub fn set_enable_byte(view: &AreaView<'_>, id: u32, value: u8) -> Result<(), OutOfArea> {
    view.store_u8(event_offset(abi::ENABLE_OFFSET, id)?, value)
}

/// The wanted byte of an event: what a trigger will enable.
pub fn wanted_byte(view: &AreaView<'_>, id: u32) -> Result<u8, OutOfArea> {
    view.load_u8(event_offset(abi::WANTED_OFFSET, id)?)
}

/// Sets the wanted byte of an event.
pub fn set_wanted_byte(view: &AreaView<'_>, id: u32, value: u8) -> Result<(), OutOfArea> {
    view.store_u8(event_offset(abi::WANTED_OFFSET, id)?, value)
}

/// The trigger block [ring-abi §7].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "names and meaning are those of struct lat_area_trigger")]
pub struct Trigger {
    pub state: u32,
    pub start_flags: u32,
    pub start_event: u32,
    pub stop_flags: u32,
    pub stop_event: u32,
    pub start_value: u64,
    pub start_mask: u64,
    pub stop_value: u64,
    pub stop_mask: u64,
    pub duration: u64,
    pub count: u64,
    pub started_at: u64,
    pub stopped_at: u64,
    pub counted: u64,
}

impl Trigger {
    /// Copies the trigger block out; the state first (acquire, partner: the writer that moved it).
    pub fn read(view: &AreaView<'_>) -> Result<Trigger, OutOfArea> {
        let state = view.load_u32(header::TRIGGER + trigger::STATE, Load::Acquire)?;
        let word = |offset| view.load_u32(header::TRIGGER + offset, Load::Relaxed);
        let long = |offset| view.load_u64(header::TRIGGER + offset, Load::Relaxed);
        Ok(Trigger {
            state,
            start_flags: word(trigger::START_FLAGS)?,
            start_event: word(trigger::START_EVENT)?,
            stop_flags: word(trigger::STOP_FLAGS)?,
            stop_event: word(trigger::STOP_EVENT)?,
            start_value: long(trigger::START_VALUE)?,
            start_mask: long(trigger::START_MASK)?,
            stop_value: long(trigger::STOP_VALUE)?,
            stop_mask: long(trigger::STOP_MASK)?,
            duration: long(trigger::DURATION)?,
            count: long(trigger::COUNT)?,
            started_at: long(trigger::STARTED_AT)?,
            stopped_at: long(trigger::STOPPED_AT)?,
            counted: long(trigger::COUNTED)?,
        })
    }
}

/// Writes a trigger block: conditions first, then the state (release), so that a program that
/// sees the state sees the conditions. The state is NONE meanwhile.
pub fn write_trigger(view: &AreaView<'_>, block: &Trigger) -> Result<(), OutOfArea> {
    view.store_u32(header::TRIGGER + trigger::STATE, abi::TRIGGER_NONE)?;
    for (offset, value) in [
        (trigger::START_FLAGS, block.start_flags),
        (trigger::START_EVENT, block.start_event),
        (trigger::STOP_FLAGS, block.stop_flags),
        (trigger::STOP_EVENT, block.stop_event),
    ] {
        view.store_u32(header::TRIGGER + offset, value)?;
    }
    for (offset, value) in [
        (trigger::START_VALUE, block.start_value),
        (trigger::START_MASK, block.start_mask),
        (trigger::STOP_VALUE, block.stop_value),
        (trigger::STOP_MASK, block.stop_mask),
        (trigger::DURATION, block.duration),
        (trigger::COUNT, block.count),
        (trigger::STARTED_AT, block.started_at),
        (trigger::STOPPED_AT, block.stopped_at),
        (trigger::COUNTED, block.counted),
    ] {
        view.store_u64(header::TRIGGER + offset, value)?;
    }
    view.store_u32(header::TRIGGER + trigger::STATE, block.state)
}
