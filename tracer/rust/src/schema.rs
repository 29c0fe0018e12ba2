// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A schema contained in a program, and the enable bytes of its events.

use crate::c_core::{self, AREA_EVENT_COUNT};
use crate::log::Text;
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, Ordering};

/// Enable byte of a schema that has not registered yet.
pub(crate) const UNREGISTERED: u8 = 0x80;

/// Target of `enabled` before registration, and after a failed one. As long as the table
/// in an area, so that every index is in bounds.
static ALL_UNREGISTERED: [u8; AREA_EVENT_COUNT] = [UNREGISTERED; AREA_EVENT_COUNT];
static ALL_DISABLED: [u8; AREA_EVENT_COUNT] = [0; AREA_EVENT_COUNT];

/// Bytes for the name in the schema table of an area, NUL included.
const NAME_BYTES: usize = 32;

/// One schema linked into the program, made by `pleco gen --rust` from a schema file.
///
/// Must be a `static`: recorders identify it by its address until the program ends. Layout: begins with
/// `struct lat_schema` of `lat/lat.h`.
#[repr(C)]
pub struct Schema {
    enabled: AtomicPtr<u8>,
    base_id: AtomicU32,
    // The rest of `struct lat_schema` is read only by lat_register, and written only while REGISTRAR
    // is held.
    event_count: UnsafeCell<u32>,
    hash: UnsafeCell<u64>,
    name: UnsafeCell<*const u8>,
    text: UnsafeCell<*const u8>,
    text_bytes: UnsafeCell<u32>,
    registered: UnsafeCell<u32>,
    /// C needs a NUL after the name.
    name_with_nul: [u8; NAME_BYTES],
}

// SAFETY: `enabled` and `base_id` are atomic. The cells are written only by the holder of REGISTRAR
// and by lat_register, which only the holder calls; no other code reads them. The pointers point to
// `'static` data and into `self`, which is `'static` when it registers, or to
// a text that lives until lat_register returns.
unsafe impl Sync for Schema {}

/// Hash of a schema's canonical text: 64-bit FNV-1a, as pleco computes it.
///
/// Cost: O(length); none if evaluated at compile time.
pub const fn text_hash(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x100_0000_01b3);
        i += 1;
    }
    hash
}

/// Process that is registering a schema, else 0. Not a mutex: a thread that finds it taken returns, so
/// that a signal handler never waits for the thread it interrupted. A child forked meanwhile finds
/// another process's id, and takes over.
static REGISTRAR: AtomicI32 = AtomicI32::new(0);

impl Schema {
    /// A schema of `event_count` events, whose canonical pleco text is `text`.
    ///
    /// `hash` must be the [`text_hash`] of the text, by which areas distinguish schemas. A text that is not
    /// pleco, or has another number of events, makes a recording that cannot be read.
    pub const fn new(
        name: &'static str,
        text: &'static str,
        hash: u64,
        event_count: u32,
    ) -> Schema {
        let mut name_with_nul = [0; NAME_BYTES];
        let name = name.as_bytes();
        let mut i = 0;
        while i < name.len() && i < NAME_BYTES - 1 {
            name_with_nul[i] = name[i];
            i += 1;
        }
        Schema {
            enabled: AtomicPtr::new((&raw const ALL_UNREGISTERED).cast_mut().cast()),
            base_id: AtomicU32::new(0),
            event_count: UnsafeCell::new(event_count),
            hash: UnsafeCell::new(hash),
            name: UnsafeCell::new(ptr::null()),
            text: UnsafeCell::new(text.as_ptr()),
            // Every area rejects a text of 4 GiB, truncated or not.
            text_bytes: UnsafeCell::new(text.len() as u32),
            registered: UnsafeCell::new(0),
            name_with_nul,
        }
    }

    /// The enable byte of event `index`: 0 means disabled. Any other value must
    /// be passed to [`emit`](Schema::emit) or [`emit_record`](Schema::emit_record), which interpret
    /// it.
    ///
    /// An out-of-range index returns the byte of some other event.
    ///
    /// Context: anywhere. Cost: two loads.
    #[inline(always)]
    pub fn on(&'static self, index: u32) -> u8 {
        // Acquire: pairs with the release in lat_register; base_id is stored before the pointer.
        let enabled = self.enabled.load(Ordering::Acquire);
        let place = index as usize % AREA_EVENT_COUNT;
        // SAFETY: `enabled` points to one of the two tables above, of AREA_EVENT_COUNT bytes, or into
        // the enable table of an area, after which the wanted table of the same size is mapped
        // permanently: at offset `place` there is a byte that is only ever accessed atomically.
        unsafe { (*enabled.add(place).cast::<AtomicU8>()).load(Ordering::Relaxed) }
    }

    /// Whether event `index` is enabled now. For work that is needed only for
    /// the event.
    ///
    /// Context and cost: like [`on`](Schema::on), but registers the schema if it is not registered.
    #[inline]
    pub fn is_enabled(&'static self, index: u32) -> bool {
        let on = self.on(index);
        on != 0 && (on & UNREGISTERED == 0 || self.on_after_registration(index) != 0)
    }

    /// Makes the schema known to recorders. Opens the area of the process the first time.
    ///
    /// Generated modules do this when the program starts
    /// ([`register_at_start!`](crate::register_at_start)), so that `lat list` shows their events
    /// at once; otherwise the first [`emit`](Schema::emit) does. Calling it again is harmless.
    ///
    /// If another thread is registering at this moment it returns at once, and the next event tries
    /// again; until then events of this schema are disabled.
    ///
    /// Context: thread, not a signal handler. Cost: about 50 us the first time, else a call.
    pub fn register(&'static self) {
        self.register_as(None);
    }

    /// Registers a schema whose text is made at run time, by `identity`. That is
    /// called at most once, and not if the schema is registered.
    pub(crate) fn register_as(&'static self, identity: Option<fn() -> Identity>) {
        if !self.is_unregistered() {
            return;
        }
        let me = c_core::getpid();
        let holder = REGISTRAR.load(Ordering::Relaxed);
        // Acquire and the release below are a pair: they protect the cells of all schemas.
        if holder == me
            || REGISTRAR.compare_exchange(holder, me, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        if self.is_unregistered() {
            // Kept until the core has copied the text.
            let identity = identity.map(|identity| identity());
            // SAFETY: REGISTRAR is held, so no other code reads or writes the cells; `self` is
            // 'static, so a pointer into it stays valid.
            unsafe {
                *self.name.get() = self.name_with_nul.as_ptr();
                if let Some(identity) = &identity {
                    let text = identity.text.as_str();
                    *self.event_count.get() = identity.event_count;
                    *self.hash.get() = text_hash(text);
                    *self.text.get() = text.as_ptr();
                    *self.text_bytes.get() = text.len() as u32;
                }
                if *self.event_count.get() != 0 {
                    c_core::lat_register(self);
                }
                if identity.is_some() {
                    *self.text.get() = "".as_ptr();
                    *self.text_bytes.get() = 0;
                }
            }
            if self.is_unregistered() {
                // No area, or no room in it: these events will never be enabled.
                let disabled = (&raw const ALL_DISABLED).cast_mut().cast();
                self.enabled.store(disabled, Ordering::Release);
            }
        }
        REGISTRAR.store(0, Ordering::Release);
    }

    /// Address of the enable bytes of the events, once registration has been tried.
    pub(crate) fn enable_bytes(&self) -> Option<*mut u8> {
        // Acquire: as in `on`.
        (!self.is_unregistered()).then(|| self.enabled.load(Ordering::Acquire))
    }

    fn is_unregistered(&self) -> bool {
        ptr::eq(self.enabled.load(Ordering::Acquire), (&raw const ALL_UNREGISTERED).cast())
    }

    /// The enable byte of an event whose byte was [`UNREGISTERED`].
    #[cold]
    pub(crate) fn on_after_registration(&'static self, index: u32) -> u8 {
        self.register();
        let on = self.on(index);
        if on & UNREGISTERED == 0 { on } else { 0 }
    }

    /// The id of an event in this area.
    #[inline(always)]
    pub(crate) fn event_id(&self, index: u32) -> u16 {
        // Relaxed: `on` has acquired the store that lat_register released.
        self.base_id.load(Ordering::Relaxed).wrapping_add(index) as u16
    }
}

/// Text and number of events of a schema, known only at run time.
pub(crate) struct Identity {
    pub text: Text,
    pub event_count: u32,
}

/// Offsets in `struct lat_schema`, in its order, and its size; for the comparison with C.
#[doc(hidden)]
pub const SCHEMA_LAYOUT: [usize; 9] = [
    core::mem::offset_of!(Schema, enabled),
    core::mem::offset_of!(Schema, base_id),
    core::mem::offset_of!(Schema, event_count),
    core::mem::offset_of!(Schema, hash),
    core::mem::offset_of!(Schema, name),
    core::mem::offset_of!(Schema, text),
    core::mem::offset_of!(Schema, text_bytes),
    core::mem::offset_of!(Schema, registered),
    core::mem::offset_of!(Schema, name_with_nul),
];

/// Registers a schema when the program starts, or the shared object is loaded:
///
/// ```
/// const TEXT: &str = "schema app;\nsubsystem app {\nevent START (),\n};\n";
/// static SCHEMA: lateralis::Schema =
///     lateralis::Schema::new("app", TEXT, lateralis::text_hash(TEXT), 1);
/// lateralis::register_at_start!(SCHEMA);
/// ```
///
/// Without it a schema is unknown to recorders until its first event, and a signal handler may
/// record only events of registered schemas. Uses an attribute that counts as unsafe code; in a
/// crate that forbids it, call [`Schema::register`] from `main`.
#[macro_export]
macro_rules! register_at_start {
    ($schema:path) => {
        const _: () = {
            extern "C" fn register() {
                $crate::Schema::register(&$schema);
            }
            // Priority 200, as in C: before the program's own constructors, which may trace.
            #[used]
            #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array.00200"))]
            static AT_START: extern "C" fn() = register;
        };
    };
}
