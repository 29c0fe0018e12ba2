// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Creates the rings of an area that has none [ring-abi §2].

use std::fs::File;
use std::path::Path;

use lateralis_ring::abi::header;
use lateralis_ring::{
    AreaHeader, GeometryError, MakeRings, RingMode, abandon_rings, begin_rings, finish_rings,
    plan_rings,
};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::mapping::{Access, Mapping};
use crate::error::Error;

/// Requested properties of the rings.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingWish {
    pub(super) buffer_bytes: u64,
    pub(super) packet_bytes: u64,
    pub(super) cap_bytes: u64,
    pub(super) mode: RingMode,
}

/// Creates the rings if they are missing, and returns a mapping that covers them. If there is no
/// space, nothing is changed.
pub(super) fn ensure_rings(
    path: &Path,
    file: &File,
    mapping: Mapping,
    area_header: &AreaHeader,
    wish: &RingWish,
) -> Result<Mapping, Error> {
    let rings_error = |cause| Error::Rings { path: path.to_owned(), cause };
    let memory_error = |_| rings_error(GeometryError::NotReady);
    if area_header.rings_ready == lateralis_ring::abi::RINGS_READY {
        return Ok(mapping);
    }
    let rings = u64::from(area_header.ring_count.max(1));
    let ring_bytes = wish.buffer_bytes.min(wish.cap_bytes / rings);
    let plan = plan_rings(area_header, ring_bytes, wish.packet_bytes).map_err(rings_error)?;
    let view = mapping.view();
    if begin_rings(&view).map_err(memory_error)? == MakeRings::Others {
        return Err(rings_error(GeometryError::NotReady));
    }
    let bytes = plan.geometry().area_bytes();
    let start = lateralis_ring::abi::RINGS_OFFSET;
    let allocated = rustix::fs::fallocate(file, FallocateFlags::empty(), start, bytes - start);
    let mapped = match allocated {
        Ok(()) => Mapping::of_file(file, Access::Shared)
            .map_err(|cause| Error::file("map", path, cause))
            .and_then(|mapping| mapping.ok_or_else(|| rings_error(GeometryError::NotReady))),
        Err(Errno::NOSPC | Errno::NOMEM | Errno::DQUOT | Errno::FBIG) => {
            Err(Error::NoSpaceForRings { path: path.to_owned(), bytes })
        }
        Err(error) => Err(Error::file("allocate rings in", path, error.into())),
    };
    match mapped {
        Ok(mapping) => {
            let view = mapping.view();
            let _ = view.store_u32(header::RING_MODE, wish.mode.to_word());
            finish_rings(&view, &plan).map_err(memory_error)?;
            Ok(mapping)
        }
        Err(error) => {
            let _ = abandon_rings(&mapping.view());
            Err(error)
        }
    }
}
