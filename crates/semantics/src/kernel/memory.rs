// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernel memory allocated and freed by each thread.
//!
//! A free has an address and no size: the size is known if the allocation was seen.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_model::{Event, EventClass, Host, StreamIndex, Writer};
use lateralis_units::Nanos;

use super::fields;
use crate::facts::At;

/// Blocks that are remembered; freeing another block counts as unknown size.
const LIVE_MAX: usize = 1 << 20;

/// Source of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Allocator {
    /// `kmalloc` and object caches; sizes are bytes.
    Slab,
    /// Whole pages; sizes are pages.
    Pages,
}

impl Allocator {
    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Slab => "slab",
            Self::Pages => "pages",
        }
    }
}

/// An allocation or a free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Stream.
    pub stream: StreamIndex,
    /// Time.
    pub time: Nanos,
    /// CPU.
    pub cpu: Option<u32>,
    /// Thread.
    pub writer: Option<Writer>,
    /// Allocator.
    pub allocator: Allocator,
    /// Whether it is a free.
    pub is_free: bool,
    /// Address, or number of the first page.
    pub address: u64,
    /// Size in bytes or pages; `None`: the allocation was not seen or has no size.
    pub size: Option<u64>,
    /// For a free, the thread that allocated the block; `None` if unknown.
    pub owner: Option<Writer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Bytes(usize),
    /// Binary logarithm of the number of pages.
    Order(usize),
    Unknown,
}

/// Meaning of the events of a class.
#[derive(Debug)]
pub struct MemoryRule {
    allocator: Allocator,
    is_free: bool,
    host: Host,
    address: usize,
    size: Size,
}

/// Machine, allocator and address of a block.
type Place = (Host, Allocator, u64);
/// Size of a block, and the thread that allocated it.
type Made = (Option<u64>, Option<Writer>);

/// Follows blocks, in time order.
#[derive(Debug, Default)]
pub struct Blocks {
    live: HashMap<Place, Made, RandomState>,
}

/// Rule of a class, if its events concern memory.
pub(super) fn rule(class: &EventClass, host: Host) -> Option<MemoryRule> {
    let last = class.name.rsplit(':').next()?;
    let name = match last {
        "kmem_cache_alloc" | "kmem_cache_alloc_node" | "kmem_cache_free" => last,
        // LTTng prefixes the name with the subsystem.
        _ => last.strip_prefix("kmem_").unwrap_or(last),
    };
    let (allocator, is_free) = match name {
        "kmalloc" | "kmalloc_node" | "kmem_cache_alloc" | "kmem_cache_alloc_node" => {
            (Allocator::Slab, false)
        }
        "kfree" | "kmem_cache_free" => (Allocator::Slab, true),
        "mm_page_alloc" => (Allocator::Pages, false),
        "mm_page_free" => (Allocator::Pages, true),
        _ => return None,
    };
    let (address, size) = match allocator {
        Allocator::Slab => {
            (["ptr", "ptr"], fields::place(class, &["bytes_alloc"]).map(Size::Bytes))
        }
        Allocator::Pages => (["pfn", "page"], fields::place(class, &["order"]).map(Size::Order)),
    };
    let size = size.unwrap_or(Size::Unknown);
    Some(MemoryRule { allocator, is_free, host, address: fields::place(class, &address)?, size })
}

impl Blocks {
    pub(super) fn event(
        &mut self,
        rule: &MemoryRule,
        event: &Event<'_>,
        at: &At,
    ) -> Option<Allocation> {
        let address = fields::number(event, Some(rule.address))?;
        // A failed allocation, or a free of null. Page frame -1 means none.
        if address == u64::MAX || (address == 0 && rule.allocator == Allocator::Slab) {
            return None;
        }
        let told = match rule.size {
            Size::Bytes(place) => fields::number(event, Some(place)),
            Size::Order(place) => {
                let order = fields::number(event, Some(place))?;
                u32::try_from(order).ok().and_then(|order| 1_u64.checked_shl(order))
            }
            Size::Unknown => None,
        };
        let key = (rule.host, rule.allocator, address);
        let (size, owner) = if rule.is_free {
            let (size, owner) = self.live.remove(&key).unwrap_or((None, None));
            (told.or(size), owner)
        } else {
            if self.live.len() < LIVE_MAX || self.live.contains_key(&key) {
                self.live.insert(key, (told, at.writer));
            }
            (told, None)
        };
        let At { time, stream, cpu, writer, .. } = *at;
        let (allocator, is_free) = (rule.allocator, rule.is_free);
        Some(Allocation { stream, time, cpu, writer, allocator, is_free, address, size, owner })
    }
}
