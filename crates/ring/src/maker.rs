// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Making the rings of an area that has none yet [ring-abi §2, "Rings"].
//!
//! Three steps, because between the first and the last the caller allocates the file's pages:
//! [`plan_rings`] and [`begin_rings`], then allocate and map [`RingPlan::geometry`]'s
//! `area_bytes`, then [`finish_rings`]; or [`abandon_rings`] when there is no space.

use crate::abi::{self, header, packet, ring};
use crate::geometry::{Geometry, GeometryError, RingKind};
use crate::header::AreaHeader;
use crate::memory::{AreaView, Load, OutOfArea};

/// What the recorder asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingPlan {
    geometry: Geometry,
    area_id: u64,
}

impl RingPlan {
    /// The shape the rings will have.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }
}

/// Outcome of [`begin_rings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MakeRings {
    /// The caller makes them.
    Mine,
    /// Rings exist, or another process is making them: check [`Geometry::of`] again.
    Others,
}

/// Plans rings of `ring_bytes` each in packets of `packet_bytes`: both rounded down to a power
/// of two within the ABI's range, and halved until all fits what the program mapped.
///
/// Errors: [`GeometryError::TooLong`] when not even two least packets per ring fit.
pub fn plan_rings(
    header: &AreaHeader,
    ring_bytes: u64,
    packet_bytes: u64,
) -> Result<RingPlan, GeometryError> {
    let kind =
        RingKind::from_word(header.ring_kind).ok_or(GeometryError::Kind(header.ring_kind))?;
    let floor = |bytes: u64| if bytes == 0 { 1 } else { 1 << bytes.ilog2() };
    let (least, greatest) = abi::PACKET_BYTES_RANGE.into_inner();
    let (fewest, most) = abi::PACKETS_PER_RING_RANGE.into_inner();
    let mut packet_bytes = floor(packet_bytes).clamp(least, greatest);
    let mut packets = (floor(ring_bytes) / packet_bytes).clamp(fewest, most);
    loop {
        let stride = abi::RING_CONTROL_BYTES + packet_bytes * packets;
        let planned = Geometry::new(
            kind,
            header.ring_count,
            stride,
            packet_bytes,
            packets,
            header.area_bytes,
        );
        match planned {
            Err(GeometryError::TooLong { .. }) if packets > fewest => packets /= 2,
            Err(GeometryError::TooLong { .. }) if packet_bytes > least => packet_bytes /= 2,
            Err(error) => return Err(error),
            Ok(geometry) => return Ok(RingPlan { geometry, area_id: header.area_id }),
        }
    }
}

/// Claims the making of the rings: `rings_ready` 0 → 1.
pub fn begin_rings(view: &AreaView<'_>) -> Result<MakeRings, OutOfArea> {
    let mine = view.exchange_u32(header::RINGS_READY, abi::RINGS_NONE, abi::RINGS_BEING_MADE)?;
    Ok(if mine { MakeRings::Mine } else { MakeRings::Others })
}

/// Gives the claim of [`begin_rings`] back: nothing was changed.
pub fn abandon_rings(view: &AreaView<'_>) -> Result<(), OutOfArea> {
    view.store_u32(header::RINGS_READY, abi::RINGS_NONE)
}

/// Fills the control pages and packet headers and publishes the rings (release, pair R1).
///
/// `view` covers `plan.geometry().area_bytes()` bytes, allocated; the ring pages are zero.
pub fn finish_rings(view: &AreaView<'_>, plan: &RingPlan) -> Result<(), OutOfArea> {
    let geometry = plan.geometry;
    for ring_index in 0..geometry.ring_count() {
        let control = geometry.control_offset(ring_index);
        view.store_u64(control + ring::MASK, (geometry.ring_bytes() - 1) & !7)?;
        view.store_u32(control + ring::LAST_WRITER, abi::WRITER_NONE)?;
        for sequence in 0..geometry.packets_per_ring() {
            let at = geometry.packet_offset(ring_index, sequence);
            view.store_u32(at + packet::MAGIC, abi::PACKET_MAGIC)?;
            view.store_u64(at + packet::AREA_ID, plan.area_id)?;
            view.store_u32(at + packet::CPU_ID, ring_index)?;
        }
    }
    view.store_u64(header::RING_STRIDE, geometry.ring_stride())?;
    view.store_u64(header::PACKET_BYTES, geometry.packet_bytes())?;
    view.store_u64(header::PACKETS_PER_RING, geometry.packets_per_ring())?;
    debug_assert_eq!(
        view.load_u64(header::RINGS_OFFSET, Load::Relaxed),
        Ok(abi::RINGS_OFFSET),
        "rings-offset:fixed"
    );
    view.store_u32(header::RINGS_READY, abi::RINGS_READY)
}
