// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A schema that a program carries with it, and whether its events are enabled.

use crate::c_core::{self, AREA_EVENT_COUNT};
use crate::log::Text;
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, Ordering};

/// Enable byte of a schema that has not registered yet.
pub(crate) const UNREGISTERED: u8 = 0x80;

/// What `enabled` points to before registration, and after one that failed. As long as the table
/// in an area, so that no index reaches beyond it.
static ALL_UNREGISTERED: [u8; AREA_EVENT_COUNT] = [UNREGISTERED; AREA_EVENT_COUNT];
static ALL_DISABLED: [u8; AREA_EVENT_COUNT] = [0; AREA_EVENT_COUNT];

/// Bytes for the name in the schema table of an area, NUL included.
const NAME_BYTES: usize = 32;

/// One schema linked into the program, made by `pleco gen --rust` from a schema file.
///
/// Must be a `static`: recorders know it by its place until the program ends. Layout: begins with
/// `struct lat_schema` of `lat/lat.h`.
#[repr(C)]
pub struct Schema {
    enabled: AtomicPtr<u8>,
    base_id: AtomicU32,
    // The rest of `struct lat_schema` is read by lat_register alone, and written only while REGISTRAR
    // is held.
    event_count: UnsafeCell<u32>,
    hash: UnsafeCell<u64>,
    name: UnsafeCell<*const u8>,
    text: UnsafeCell<*const u8>,
    text_bytes: UnsafeCell<u32>,
    registered: UnsafeCell<u32>,
    /// C wants a NUL behind the name.
    name_with_nul: [u8; NAME_BYTES],
}

// SAFETY: `enabled` and `base_id` are atomic. The cells are written only by whoever holds REGISTRAR
// and by lat_register, which is called only then; nobody else reads them. The pointers lead to
// `'static` data and into `self`, which is `'static` when it registers, or to
// a text that lives as long as lat_register runs.
unsafe impl Sync for Schema {}

/// Hash of a schema's canonical text: 64-bit FNV-1a, as pleco computes it.
///
/// Cost: O(length); none where it is evaluated when compiling.
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

/// Process that is registering a schema, else 0. Not a mutex: whoever finds it taken goes away, so
/// that a signal handler can not wait for the thread it interrupted. A child forked meanwhile finds
/// another process's number, and takes over.
static REGISTRAR: AtomicI32 = AtomicI32::new(0);

impl Schema {
    /// A schema of `event_count` events, whose canonical pleco text is `text`.
    ///
    /// `hash` must be the [`text_hash`] of the text: areas tell schemas apart by it. A text that is not
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
            // A text of 4 GiB is refused by every area, cut or not.
            text_bytes: UnsafeCell::new(text.len() as u32),
            registered: UnsafeCell::new(0),
            name_with_nul,
        }
    }

    /// The enable byte of the event number `index`: 0 means that nobody wants it. Anything else is
    /// to be handed to [`emit`](Schema::emit) or [`emit_record`](Schema::emit_record), which know
    /// what to do with it.
    ///
    /// An index that the schema does not have gives the byte of some other event.
    ///
    /// Context: anywhere. Cost: two loads.
    #[inline(always)]
    pub fn on(&'static self, index: u32) -> u8 {
        // Acquire: pairs with the release in lat_register; base_id is there when the pointer is.
        let enabled = self.enabled.load(Ordering::Acquire);
        let place = index as usize % AREA_EVENT_COUNT;
        // SAFETY: `enabled` leads to one of the two tables above, of AREA_EVENT_COUNT bytes, or into
        // the enable table of an area, behind which the wanted table of the same size is mapped for
        // ever: `place` bytes further there is a byte that is only ever accessed atomically.
        unsafe { (*enabled.add(place).cast::<AtomicU8>()).load(Ordering::Relaxed) }
    }

    /// Whether the event number `index` is wanted by somebody now. For work that is only done for
    /// the sake of an event.
    ///
    /// Context and cost: as [`on`](Schema::on), but registers the schema if nobody has.
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
    /// Context: thread, not a signal handler. Cost: some 50 us the first time, else a call.
    pub fn register(&'static self) {
        self.register_as(None);
    }

    /// Registers, for a schema whose text is made at run time, with what `identity` makes. It is
    /// called at most once, and not if the schema is registered.
    pub(crate) fn register_as(&'static self, identity: Option<fn() -> Identity>) {
        if !self.is_unregistered() {
            return;
        }
        let me = c_core::getpid();
        let holder = REGISTRAR.load(Ordering::Relaxed);
        // Acquire and the release below pair with each other: the cells of all schemas.
        if holder == me
            || REGISTRAR.compare_exchange(holder, me, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        if self.is_unregistered() {
            // Kept until the core has copied the text.
            let identity = identity.map(|identity| identity());
            // SAFETY: REGISTRAR is held, so nobody else reads or writes the cells; `self` is
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
                // No area, or no room in it: nobody will ever ask for these events.
                let disabled = (&raw const ALL_DISABLED).cast_mut().cast();
                self.enabled.store(disabled, Ordering::Release);
            }
        }
        REGISTRAR.store(0, Ordering::Release);
    }

    /// Where the enable bytes of the events are, once somebody has tried to register.
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
        // Relaxed: `on` has acquired what lat_register released.
        self.base_id.load(Ordering::Relaxed).wrapping_add(index) as u16
    }
}

/// What a schema is called and says, where that is known only at run time.
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
/// record only events of schemas that are registered. Uses an attribute that counts as unsafe code; in a
/// crate that forbids that, call [`Schema::register`] from `main`.
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
