// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A reader for a single trace: the events of `generated/barectf-200k`, with its metadata as
//! constants. No schema, no damaged packets, no clock that wraps. It is an upper bound for readers of
//! arbitrary traces, and the difference is the cost of generality.

/// Columns of all four classes, reused for each packet.
#[derive(Default)]
pub struct Columns {
    pub times: [Vec<u64>; 4],
    pub arr: [Vec<u64>; 2],
    pub irq: [Vec<u64>; 2],
    pub note: ([Vec<u64>; 2], Vec<f64>),
    pub sched: ([Vec<u64>; 3], Vec<i64>),
    pub order: Vec<u32>,
}

impl Columns {
    fn clear(&mut self) {
        self.times.iter_mut().for_each(Vec::clear);
        let unsigned = self.arr.iter_mut().chain(&mut self.irq).chain(&mut self.note.0);
        unsigned.chain(&mut self.sched.0).for_each(Vec::clear);
        self.note.1.clear();
        self.sched.1.clear();
        self.order.clear();
    }
}

/// Magic, stream, size, content, begin, end, discarded: `packet.header` and `packet.context`.
const PACKET_HEADER_BYTES: usize = 4 + 8 + 5 * 8;

fn u32_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Decodes every field of every event, one packet at a time, and calls `see` for each packet. `None` if the
/// stream is incomplete.
pub fn decode(stream: &[u8], columns: &mut Columns, mut see: impl FnMut(&Columns)) -> Option<()> {
    let mut rest = stream;
    while !rest.is_empty() {
        let size = u64_at(rest, 12)? as usize / 8;
        let (packet, behind) = rest.split_at_checked(size)?;
        let content = packet.get(..u64_at(rest, 20)? as usize / 8)?;
        columns.clear();
        decode_packet(content, columns)?;
        see(columns);
        rest = behind;
    }
    Some(())
}

fn decode_packet(content: &[u8], columns: &mut Columns) -> Option<()> {
    let (mut at, mut clock) = (PACKET_HEADER_BYTES, u64_at(content, 28)?);
    while let Some(&id) = content.get((at + 3) & !3) {
        let stamp = ((at + 3) & !3) + 4;
        clock += (u32_at(content, stamp)?.wrapping_sub(clock)) & 0xFFFF_FFFF;
        let body = stamp + 4;
        columns.times.get_mut(usize::from(id))?.push(clock);
        columns.order.push(u32::from(id));
        match id {
            0 => {
                let body = (body + 1) & !1;
                let count = u32_at(content, body)?;
                columns.arr[0].push(body as u64 + 4);
                columns.arr[1].push(count);
                at = body + 4 + 2 * count as usize;
            }
            1 => {
                let body = (body + 7) & !7;
                columns.irq[0].push(u64::from(content[body]));
                columns.irq[1].push(u64_at(content, body + 8)?);
                at = body + 16;
            }
            2 => {
                let body = (body + 7) & !7;
                let length = content.get(body..)?.iter().position(|&byte| byte == 0)?;
                columns.note.0[0].push(body as u64);
                columns.note.0[1].push(length as u64);
                let value = (body + length + 8) & !7;
                columns.note.1.push(f64::from_bits(u64_at(content, value)?));
                at = value + 8;
            }
            _ => {
                columns.sched.0[0].push(u32_at(content, body)?);
                columns.sched.0[1].push(u32_at(content, body + 4)?);
                let bits = *content.get(body + 8)?;
                columns.sched.1.push(i64::from((bits << 3) as i8 >> 3));
                columns.sched.0[2].push(u64::from(bits >> 5));
                at = body + 9;
            }
        }
    }
    Some(())
}
