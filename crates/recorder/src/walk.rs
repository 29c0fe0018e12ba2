// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Steps through the records of a packet by the layouts of their schemas
//! [ring-abi §3]: to count events exactly, to find the last time stamp, and to detect damage.

mod records;

use std::fmt;
use std::ops::RangeInclusive;

use lateralis_pleco::Schema;
use lateralis_pleco::schema::{Event, FieldType};
use lateralis_ring::abi;

pub use records::{Record, Records};

/// How to determine the end of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// No schema has this id.
    Unknown,
    /// Exact size in bytes, header included.
    Fixed(u32),
    /// Field by field.
    Fields(Box<[Field]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Bytes { align: u32, bytes: u32 },
    Text,
    Counted { element_bytes: u32 },
}

/// Layouts of all events of an area, by id.
#[derive(Debug, Clone)]
pub struct RecordPlan {
    steps: Vec<Step>,
    swapped: bool,
}

/// Result of a walk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walked {
    /// Size of complete, known records from the start, in bytes; a multiple of 8 unless all were valid.
    pub good_bytes: u64,
    /// Slack of the last valid record.
    pub good_slack: u64,
    /// Time of the last valid record, extended from the given time.
    pub last_time: u64,
    /// Number of valid records with ids of 16 and above.
    pub events: u64,
    /// Number of valid records with ids below 16.
    pub internal_events: u64,
    /// Offset of the last WRITER record.
    pub last_writer_at: Option<u64>,
    /// Offsets of the PROCESS records, and their times.
    pub processes_at: Vec<(u64, u64)>,
    /// Why the walk ended early.
    pub fault: Option<WalkFault>,
}

/// Data that a process records before its first event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// Its pid.
    pub pid: u32,
    /// Pid of its parent.
    pub parent_pid: u32,
    /// Name of the thread that wrote first.
    pub name: Vec<u8>,
}

/// Why a record is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkFault {
    /// No registered schema has this id.
    UnknownId(u16),
    /// The record extends beyond the content, or ends before its end.
    Length(u16),
    /// The record would be older than the previous one, or later than the reading of the packet.
    Time(u16),
}

impl fmt::Display for WalkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WalkFault::UnknownId(id) => write!(f, "no schema for event-id={id}"),
            WalkFault::Length(id) => write!(f, "record does not fit event-id={id}"),
            WalkFault::Time(id) => write!(f, "record has an impossible time event-id={id}"),
        }
    }
}

/// Size of an event without fields of variable length, in bytes.
fn fixed_bytes(event: &Event) -> Option<u32> {
    event.fields.iter().try_fold(abi::RECORD_HEADER_BYTES as u32, |end, field| {
        match field_of(&field.ty) {
            Field::Bytes { align, bytes } => Some(end.next_multiple_of(align) + bytes),
            Field::Text | Field::Counted { .. } => None,
        }
    })
}

fn field_of(ty: &FieldType) -> Field {
    match *ty {
        FieldType::Scalar(scalar) => {
            Field::Bytes { align: scalar.size_bytes(), bytes: scalar.size_bytes() }
        }
        FieldType::Array { element, length } => {
            Field::Bytes { align: element.size_bytes(), bytes: element.size_bytes() * length }
        }
        FieldType::Sequence(element) => Field::Counted { element_bytes: element.size_bytes() },
        FieldType::Bytes => Field::Counted { element_bytes: 1 },
        FieldType::String => Field::Text,
    }
}

fn step_of(event: &Event) -> Step {
    match fixed_bytes(event) {
        Some(bytes) => Step::Fixed(bytes),
        None => Step::Fields(event.fields.iter().map(|field| field_of(&field.ty)).collect()),
    }
}

impl RecordPlan {
    /// A plan with the internal events.
    pub fn new(swapped: bool) -> RecordPlan {
        let mut plan = RecordPlan { steps: Vec::new(), swapped };
        plan.add(0, lateralis_pleco::internal_schema());
        plan
    }

    /// Adds a schema whose first event has id `base_id`. Ids beyond the ABI's limit are left out.
    pub fn add(&mut self, base_id: u32, schema: &Schema) {
        for event in &schema.events {
            let Some(id) = base_id.checked_add(event.index) else { return };
            if id >= abi::EVENT_COUNT {
                return;
            }
            let at = id as usize;
            if self.steps.len() <= at {
                self.steps.resize(at + 1, Step::Unknown);
            }
            self.steps[at] = step_of(event);
        }
    }

    /// Highest known id plus 1.
    pub fn id_count(&self) -> usize {
        self.steps.len()
    }

    /// The 32 bits at `at`, in the program's byte order.
    pub(crate) fn word(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let mut word: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        if self.swapped {
            word.reverse();
        }
        Some(u32::from_ne_bytes(word))
    }

    /// The 64 bits at `at`, in the program's byte order.
    pub(crate) fn double_word(&self, bytes: &[u8], at: usize) -> Option<u64> {
        let mut word: [u8; 8] = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        if self.swapped {
            word.reverse();
        }
        Some(u64::from_ne_bytes(word))
    }

    /// Id and low 48 bits of the time of the record at `at`.
    pub fn header(&self, bytes: &[u8], at: usize) -> Option<(u16, u64)> {
        let word = self.double_word(bytes, at)?;
        let little = cfg!(target_endian = "little") != self.swapped;
        Some(if little {
            (word as u16, word >> 16)
        } else {
            ((word >> 48) as u16, word & ((1 << abi::TIME_BITS) - 1))
        })
    }

    /// Overwrites id and low 48 bits of the time in the header of the record at `at`, if there is one.
    pub fn set_header(&self, bytes: &mut [u8], at: usize, id: u16, time: u64) {
        let time = time & ((1 << abi::TIME_BITS) - 1);
        let little = cfg!(target_endian = "little") != self.swapped;
        let word = if little {
            u64::from(id) | time << 16
        } else {
            u64::from(id) << abi::TIME_BITS | time
        };
        let mut word = word.to_ne_bytes();
        if self.swapped {
            word.reverse();
        }
        if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..8)) {
            place.copy_from_slice(&word);
        }
    }

    /// End of the record at `at`, after its last field; `None` if it is truncated or unknown.
    pub fn end(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let (id, _) = self.header(bytes, at)?;
        let exact = match self.steps.get(usize::from(id))? {
            Step::Fixed(exact) => *exact as usize,
            Step::Fields(fields) => self.measure(bytes, at, fields)?,
            Step::Unknown => return None,
        };
        at.checked_add(exact).filter(|end| *end <= bytes.len())
    }

    /// The content of the PROCESS record at `at`; `None` if it is truncated.
    pub fn process(&self, bytes: &[u8], at: usize) -> Option<Introduction> {
        let fields = at.checked_add(abi::RECORD_HEADER_BYTES as usize)?;
        let pid = self.word(bytes, fields)?;
        let parent_pid = self.word(bytes, fields.checked_add(4)?)?;
        let name = bytes.get(fields.checked_add(8)?..)?;
        // A thread's name has 15 bytes [prctl(2), PR_GET_NAME].
        let name = name.iter().take(15).take_while(|byte| **byte != 0);
        Some(Introduction { pid, parent_pid, name: name.copied().collect() })
    }

    /// Exact size in bytes of the record at `at`, from its fields.
    fn measure(&self, bytes: &[u8], at: usize, fields: &[Field]) -> Option<usize> {
        let mut end = abi::RECORD_HEADER_BYTES as usize;
        for field in fields {
            match *field {
                Field::Bytes { align, bytes } => {
                    end = end.next_multiple_of(align as usize) + bytes as usize;
                }
                Field::Text => {
                    let text = bytes.get(at + end..)?;
                    end += text.iter().position(|byte| *byte == 0)? + 1;
                }
                Field::Counted { element_bytes } => {
                    let start = end.next_multiple_of(4);
                    let count = self.word(bytes, at + start)? as usize;
                    let elements = (start + 4).next_multiple_of(element_bytes as usize);
                    end = elements.checked_add(count.checked_mul(element_bytes as usize)?)?;
                }
            }
            if end > bytes.len() - at {
                return None;
            }
        }
        Some(end)
    }

    /// Steps over the records in `bytes`, the last of which ends `slack` bytes before the end.
    /// Increments `counts[id]` for every complete and known record. Times are extended
    /// from the start of `times`. A record whose time is then after the end of `times` is invalid;
    /// so is one that is less than half a wrap of the 48 bits before the previous one: readers
    /// would place it, and all later ones, a whole wrap in the future.
    ///
    /// Cost: about one load and one table access per record; strings are searched for NUL.
    pub fn walk(
        &self,
        bytes: &[u8],
        slack: u64,
        times: RangeInclusive<u64>,
        counts: &mut Vec<u64>,
    ) -> Walked {
        if counts.len() < self.steps.len() {
            counts.resize(self.steps.len(), 0);
        }
        let exact_end = bytes.len().saturating_sub(slack as usize);
        let mut walked = Walked { last_time: *times.start(), ..Walked::default() };
        let mut at = 0;
        while at < exact_end {
            let Some((id, low)) = self.header(bytes, at) else {
                walked.fault = Some(WalkFault::Length(0));
                break;
            };
            let exact = match self.steps.get(usize::from(id)) {
                Some(Step::Fixed(exact)) => Some(*exact as usize),
                Some(Step::Fields(fields)) => self.measure(bytes, at, fields),
                Some(Step::Unknown) | None => {
                    walked.fault = Some(WalkFault::UnknownId(id));
                    break;
                }
            };
            let Some(exact) = exact.filter(|exact| *exact <= exact_end - at) else {
                walked.fault = Some(WalkFault::Length(id));
                break;
            };
            let next = at + exact.next_multiple_of(8);
            if next >= exact_end && at + exact != exact_end {
                // The last record has to end where the writer's slack places it.
                walked.fault = Some(WalkFault::Length(id));
                break;
            }
            let full = extend_time(walked.last_time, low);
            if full > *times.end() || full - walked.last_time > 1 << (abi::TIME_BITS - 1) {
                walked.fault = Some(WalkFault::Time(id));
                break;
            }
            walked.last_time = full;
            counts[usize::from(id)] += 1;
            if u32::from(id) < abi::INTERNAL_EVENT_COUNT {
                walked.internal_events += 1;
                if id == abi::ID_WRITER {
                    walked.last_writer_at = Some(at as u64);
                } else if id == abi::ID_PROCESS {
                    walked.processes_at.push((at as u64, full));
                }
            } else {
                walked.events += 1;
            }
            walked.good_slack = (next - at - exact) as u64;
            at = next;
            walked.good_bytes = at as u64;
        }
        walked
    }
}

/// The time whose low 48 bits are `low`, at or after `time`, as extended by readers of CTF.
pub fn extend_time(time: u64, low: u64) -> u64 {
    let mask = (1u64 << abi::TIME_BITS) - 1;
    let candidate = (time & !mask) | (low & mask);
    if candidate < time { candidate.wrapping_add(mask + 1).max(time) } else { candidate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_ring::reference_writer::record_header;

    fn plan(text: &str) -> RecordPlan {
        let schema = lateralis_pleco::compile("t.pleco", text.as_bytes()).schema.unwrap();
        let mut plan = RecordPlan::new(false);
        plan.add(16, &schema);
        plan
    }

    fn record(id: u16, time: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = record_header(id, time).to_ne_bytes().to_vec();
        bytes.extend_from_slice(payload);
        bytes.resize(bytes.len().next_multiple_of(8), 0xaa);
        bytes
    }

    #[test]
    fn steps_over_every_kind_of_field() {
        let plan = plan(
            "subsystem s { event A (a: u8, b: u64, c: u16), event B (t: string, n: u32), \
             event C (x: [u64], y: u8), event D (), event E };",
        );
        let mut bytes = Vec::new();
        bytes.extend(record(16, 1, &[0; 18]));
        bytes.extend(record(17, 2, b"hi\0\0\x01\0\0\0"));
        let mut sequence = vec![2, 0, 0, 0, 0, 0, 0, 0];
        if cfg!(target_endian = "big") {
            sequence[..4].reverse();
        }
        sequence.extend([0; 17]);
        bytes.extend(record(18, 3, &sequence));
        bytes.extend(record(19, 4, &[]));
        bytes.extend(record(0, 5, &[0; 8]));
        bytes.extend(record(20, 6, &[0; 4]));
        let mut counts = Vec::new();
        let walked = plan.walk(&bytes, 4, 1..=6, &mut counts);
        assert_eq!(walked.fault, None);
        assert_eq!((walked.events, walked.internal_events), (5, 1));
        assert_eq!(walked.good_bytes, bytes.len() as u64);
        assert_eq!(walked.last_time, 6);
        assert_eq!(counts[16..21], [1; 5]);
        // With another slack the last record cannot be valid.
        for slack in [0, 1, 5] {
            let walked = plan.walk(&bytes, slack, 1..=6, &mut Vec::new());
            assert_eq!(walked.fault, Some(WalkFault::Length(20)), "slack {slack}");
            assert_eq!(walked.events, 4);
        }
    }

    #[test]
    fn stops_at_the_first_nonsense_and_never_beyond_the_end() {
        let plan = plan("subsystem s { event B (t: string), event C (x: [u32]) };");
        for (bytes, fault) in [
            (record(99, 1, &[]), WalkFault::UnknownId(99)),
            (record(16, 1, b"without"), WalkFault::Length(16)),
            (record(17, 1, &[0xff; 8]), WalkFault::Length(17)),
            (record(16, 10, b"too new\0"), WalkFault::Time(16)),
            (record(16, 0, b"too old\0"), WalkFault::Time(16)),
            // Content of a page that was truncated from a file.
            (vec![0; 64], WalkFault::Time(abi::ID_WRITER)),
        ] {
            let mut all = record(16, 1, b"good\0");
            let good = all.len() as u64;
            all.extend(&bytes);
            let walked = plan.walk(&all, 0, 0..=9, &mut Vec::new());
            assert_eq!(walked.fault, Some(fault));
            assert_eq!(walked.good_bytes, good);
            assert_eq!(walked.good_slack, 3);
        }
    }

    #[test]
    fn a_step_back_is_noticed_where_nothing_bounds_the_time() {
        let plan = plan("subsystem s { event B () };");
        let bytes = [record(16, 5, &[]), record(16, 4, &[])].concat();
        let walked = plan.walk(&bytes, 0, 1 << 50..=u64::MAX, &mut Vec::new());
        assert_eq!(walked.fault, Some(WalkFault::Time(16)));
        assert_eq!((walked.events, walked.last_time), (1, (1 << 50) + 5));
    }

    #[test]
    fn time_is_extended_forwards() {
        assert_eq!(extend_time(0x5_0000_0000_0010, 0x20), 0x5_0000_0000_0020);
        assert_eq!(extend_time(0x5_0000_0000_0010, 0x0f), 0x6_0000_0000_000f);
        assert_eq!(extend_time(7, 7), 7);
        assert_eq!(extend_time(u64::MAX, 0), u64::MAX);
    }
}
