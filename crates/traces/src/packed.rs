// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that were compressed as a whole: what they hold, in bounded memory.

use std::io::Read;

use lateralis_model::{Damage, DamageReason, Events, Interval, Loss, Names, Source};
use lateralis_model::{StreamSummary, Trace};

/// A way to compress a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

/// How the inside of a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All of it is there.
    Whole,
    /// There is more than may be taken.
    Limit,
    /// The rest is cut or damaged.
    Damaged,
}

impl Packing {
    /// How a file that begins with these bytes is compressed.
    pub fn of(first: &[u8]) -> Option<Self> {
        match first {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "Zstandard",
        }
    }

    /// The first bytes of what is inside, at most so many.
    ///
    /// Cost: proportional to them, whatever the file holds; the memory of the
    /// decoder is 128 MiB at most.
    pub fn unpack(self, bytes: &[u8], limit_bytes: u64) -> (Vec<u8>, End) {
        let mut out = Vec::new();
        // One byte more tells whether there is more.
        let most = limit_bytes.saturating_add(1);
        let read = match self {
            Self::Gzip => flate2::read::MultiGzDecoder::new(bytes).take(most).read_to_end(&mut out),
            Self::Zstd => zstd::Decoder::with_buffer(bytes)
                .and_then(|decoder| decoder.take(most).read_to_end(&mut out)),
        };
        let end = match read {
            Ok(_) if out.len() as u64 > limit_bytes => {
                out.truncate(limit_bytes as usize);
                End::Limit
            }
            Ok(_) => End::Whole,
            Err(_) => End::Damaged,
        };
        (out, end)
    }
}

/// A trace out of a compressed file that could not be read to its end.
pub struct Cut {
    inner: Box<dyn Source>,
    damage: Vec<Damage>,
    remark: Option<&'static str>,
}

impl Cut {
    /// `file` is the compressed one, of so many bytes.
    pub fn new(inner: Box<dyn Source>, file: &str, bytes: u64, end: End) -> Self {
        let mut damage = inner.damage().to_vec();
        if end == End::Damaged {
            damage.push(Damage {
                file: file.to_owned(),
                begin_bytes: 0,
                end_bytes: bytes,
                reason: DamageReason::BadValue {
                    rule: "compressed file: read up to where it is cut or damaged",
                },
                interval: Interval { begin: inner.interval().end, end: None },
            });
        }
        let full = "the file does not fit into the memory it may take once it is decompressed: \
                    its rest is left out";
        Self { inner, damage, remark: (end == End::Limit).then_some(full) }
    }
}

impl Source for Cut {
    fn format(&self) -> &str {
        self.inner.format()
    }

    fn trace(&self) -> &Trace {
        self.inner.trace()
    }

    fn streams(&self) -> Vec<StreamSummary> {
        self.inner.streams()
    }

    fn interval(&self) -> Interval {
        self.inner.interval()
    }

    fn losses(&self) -> &[Loss] {
        self.inner.losses()
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }

    fn faults(&self) -> Vec<String> {
        self.inner.faults()
    }

    fn remarks(&self) -> Vec<String> {
        let own = self.remark.map(str::to_owned);
        self.inner.remarks().into_iter().chain(own).collect()
    }

    fn names(&self) -> &Names {
        self.inner.names()
    }

    fn events_in(&self, interval: Interval) -> Box<dyn Events + '_> {
        self.inner.events_in(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn packed(packing: Packing, plain: &[u8]) -> Vec<u8> {
        match packing {
            Packing::Gzip => {
                let mut out = flate2::write::GzEncoder::new(Vec::new(), Default::default());
                out.write_all(plain).unwrap();
                out.finish().unwrap()
            }
            Packing::Zstd => zstd::bulk::compress(plain, 1).unwrap(),
        }
    }

    #[test]
    fn what_is_inside_comes_out_up_to_the_limit_or_the_damage() {
        let plain: Vec<u8> = (0..300_000u32).flat_map(|n| (n / 3).to_le_bytes()).collect();
        for packing in [Packing::Gzip, Packing::Zstd] {
            let file = packed(packing, &plain);
            assert_eq!(Packing::of(&file), Some(packing));
            assert!(packing.unpack(&file, u64::MAX) == (plain.clone(), End::Whole));
            assert!(packing.unpack(&file, 1000) == (plain[..1000].to_vec(), End::Limit));
            let exact = plain.len() as u64;
            assert_eq!(packing.unpack(&file, exact).1, End::Whole);
            let (out, end) = packing.unpack(&file[..file.len() * 3 / 4], u64::MAX);
            assert!(end == End::Damaged && !out.is_empty() && plain.starts_with(&out));
            let twice = [&file[..], &file[..]].concat();
            assert_eq!(packing.unpack(&twice, u64::MAX).0.len(), 2 * plain.len());
        }
        assert_eq!(Packing::of(b"PERFILE2"), None);
    }
}
