// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the rings of an area are, checked once against the mapped length.

use core::fmt;

use crate::abi;
use crate::header::AreaHeader;

/// To whom the rings belong [ring-abi §2].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RingKind {
    /// Ring *n* is written by the thread that runs on CPU *n*.
    PerCpu,
    /// A thread claims a ring.
    PerThread,
}

impl RingKind {
    /// From `lat_ring_kind`.
    pub fn from_word(word: u32) -> Option<RingKind> {
        match word {
            1 => Some(RingKind::PerCpu),
            2 => Some(RingKind::PerThread),
            _ => None,
        }
    }
}

/// What happens when all packets are full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RingMode {
    /// New events are lost, and counted.
    Discard,
    /// The oldest packet is reused.
    Overwrite,
}

impl RingMode {
    /// From `lat_ring_mode`; every unknown value counts as discard.
    pub fn from_word(word: u32) -> RingMode {
        if word == 1 { RingMode::Overwrite } else { RingMode::Discard }
    }

    /// To `lat_ring_mode`.
    pub fn to_word(self) -> u32 {
        match self {
            RingMode::Discard => 0,
            RingMode::Overwrite => 1,
        }
    }
}

/// Why an area's rings cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GeometryError {
    /// The rings are not made yet (`rings_ready` is 0 or 1).
    NotReady,
    /// `ring_kind` is neither per CPU nor per thread.
    Kind(u32),
    /// Not a power of two, or outside its range.
    PacketBytes(u64),
    /// Not a power of two, or outside its range.
    PacketsPerRing(u64),
    /// Rings overlap: the stride is less than control page and data, or misaligned.
    Stride(u64),
    /// Zero rings, or more than 65536.
    RingCount(u32),
    /// Offset of the rings is not [`abi::RINGS_OFFSET`].
    RingsOffset(u64),
    /// The rings need more than is mapped.
    TooLong {
        /// Bytes the geometry asks for.
        needed_bytes: u64,
        /// Bytes that are mapped.
        area_bytes: u64,
    },
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cannot use rings: ")?;
        match self {
            GeometryError::NotReady => write!(f, "rings-ready=0"),
            GeometryError::Kind(word) => write!(f, "ring-kind={word}"),
            GeometryError::PacketBytes(bytes) => write!(f, "packet-bytes={bytes}"),
            GeometryError::PacketsPerRing(count) => write!(f, "packets-per-ring={count}"),
            GeometryError::Stride(bytes) => write!(f, "ring-stride-bytes={bytes}"),
            GeometryError::RingCount(count) => write!(f, "ring-count={count}"),
            GeometryError::RingsOffset(offset) => write!(f, "rings-offset={offset}"),
            GeometryError::TooLong { needed_bytes, area_bytes } => {
                write!(f, "needed-bytes={needed_bytes}, area-bytes={area_bytes}")
            }
        }
    }
}

impl core::error::Error for GeometryError {}

/// Shape of the rings of one area. A value of this type has been checked: every ring and packet
/// it names lies inside the mapped memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Geometry {
    kind: RingKind,
    ring_count: u32,
    ring_stride: u64,
    packet_bytes: u64,
    packets_per_ring: u64,
}

impl Geometry {
    /// Checks numbers against each other and against `area_bytes` bytes of memory.
    pub fn new(
        kind: RingKind,
        ring_count: u32,
        ring_stride: u64,
        packet_bytes: u64,
        packets_per_ring: u64,
        area_bytes: u64,
    ) -> Result<Geometry, GeometryError> {
        if !packet_bytes.is_power_of_two() || !abi::PACKET_BYTES_RANGE.contains(&packet_bytes) {
            return Err(GeometryError::PacketBytes(packet_bytes));
        }
        if !packets_per_ring.is_power_of_two()
            || !abi::PACKETS_PER_RING_RANGE.contains(&packets_per_ring)
        {
            return Err(GeometryError::PacketsPerRing(packets_per_ring));
        }
        if ring_count == 0 || ring_count > 65536 {
            return Err(GeometryError::RingCount(ring_count));
        }
        // At most 2^24 * 2^16 + 2^12: no overflow.
        let least_stride = abi::RING_CONTROL_BYTES + packet_bytes * packets_per_ring;
        if ring_stride < least_stride || !ring_stride.is_multiple_of(abi::RING_CONTROL_BYTES) {
            return Err(GeometryError::Stride(ring_stride));
        }
        let needed_bytes = ring_stride
            .checked_mul(u64::from(ring_count))
            .and_then(|bytes| bytes.checked_add(abi::RINGS_OFFSET))
            .unwrap_or(u64::MAX);
        if needed_bytes > area_bytes {
            return Err(GeometryError::TooLong { needed_bytes, area_bytes });
        }
        Ok(Geometry { kind, ring_count, ring_stride, packet_bytes, packets_per_ring })
    }

    /// The geometry an area's header claims, if it fits `area_bytes` of memory.
    pub fn of(header: &AreaHeader, area_bytes: u64) -> Result<Geometry, GeometryError> {
        if header.rings_ready != abi::RINGS_READY {
            return Err(GeometryError::NotReady);
        }
        if header.rings_offset != abi::RINGS_OFFSET {
            return Err(GeometryError::RingsOffset(header.rings_offset));
        }
        let kind =
            RingKind::from_word(header.ring_kind).ok_or(GeometryError::Kind(header.ring_kind))?;
        Geometry::new(
            kind,
            header.ring_count,
            header.ring_stride,
            header.packet_bytes,
            header.packets_per_ring,
            area_bytes,
        )
    }

    /// One ring with packets smaller than the ABI allows, so that a model has few states.
    #[cfg(feature = "reference-writer")]
    pub fn for_model(kind: RingKind, packet_bytes: u64, packets_per_ring: u64) -> Geometry {
        let ring_stride = abi::RING_CONTROL_BYTES + packet_bytes * packets_per_ring;
        Geometry { kind, ring_count: 1, ring_stride, packet_bytes, packets_per_ring }
    }

    /// To whom the rings belong.
    pub fn kind(&self) -> RingKind {
        self.kind
    }

    /// How many rings.
    pub fn ring_count(&self) -> u32 {
        self.ring_count
    }

    /// Bytes from one ring's control page to the next.
    pub fn ring_stride(&self) -> u64 {
        self.ring_stride
    }

    /// Bytes of a packet.
    pub fn packet_bytes(&self) -> u64 {
        self.packet_bytes
    }

    /// Packets in a ring.
    pub fn packets_per_ring(&self) -> u64 {
        self.packets_per_ring
    }

    /// Bytes of the data of a ring.
    pub fn ring_bytes(&self) -> u64 {
        self.packet_bytes * self.packets_per_ring
    }

    /// Bytes the area needs for these rings.
    pub fn area_bytes(&self) -> u64 {
        abi::RINGS_OFFSET + self.ring_stride * u64::from(self.ring_count)
    }

    /// Offset of a ring's control page. `ring` is below [`Geometry::ring_count`].
    pub fn control_offset(&self, ring: u32) -> u64 {
        debug_assert!(ring < self.ring_count, "ring:below-count");
        abi::RINGS_OFFSET + self.ring_stride * u64::from(ring)
    }

    /// Offset of the packet with this sequence number.
    pub fn packet_offset(&self, ring: u32, sequence: u64) -> u64 {
        self.control_offset(ring)
            + abi::RING_CONTROL_BYTES
            + (sequence & (self.packets_per_ring - 1)) * self.packet_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stride: u64, packet: u64, count: u64, rings: u32, area: u64) -> bool {
        Geometry::new(RingKind::PerCpu, rings, stride, packet, count, area).is_ok()
    }

    #[test]
    fn accepts_only_what_fits() {
        let stride = 4096 + 4 * 4096;
        let area = abi::RINGS_OFFSET + 2 * stride;
        assert!(check(stride, 4096, 4, 2, area));
        assert!(!check(stride, 4096, 4, 2, area - 1));
        assert!(!check(stride, 4096, 4, 3, area));
        assert!(!check(stride, 4096, 3, 2, area));
        assert!(!check(stride, 4096, 1, 2, area));
        assert!(!check(stride, 2048, 4, 2, area));
        assert!(!check(stride - 4096, 4096, 4, 2, area));
        assert!(!check(stride + 8, 4096, 4, 2, u64::MAX));
        assert!(!check(u64::MAX - 4095, 4096, 4, 65536, u64::MAX - 1));
        assert!(!check(stride, 4096, 4, 0, area));
    }

    #[test]
    fn places_follow_each_other() {
        let stride = 4096 + 4 * 4096;
        let geometry =
            Geometry::new(RingKind::PerThread, 2, stride, 4096, 4, abi::RINGS_OFFSET + 2 * stride)
                .unwrap();
        assert_eq!(geometry.packet_offset(0, 0), abi::RINGS_OFFSET + 4096);
        assert_eq!(geometry.packet_offset(0, 5), abi::RINGS_OFFSET + 4096 + 4096);
        assert_eq!(geometry.control_offset(1), abi::RINGS_OFFSET + stride);
        assert_eq!(geometry.packet_offset(1, 7) + 4096, geometry.area_bytes());
    }
}
