// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events without a schema file: their schema is made when the program starts, from entries collected
//! by the linker.
//!
//! A call site in the code is a [`Site`]: a type that the macro defines, with the format. The site and
//! the types of the arguments, which only the compiler knows, determine the function
//! [`describe`] for this site and these types. A few lines of assembly put its address, and space for
//! the event's number, into the section `lat_rust_log`; the linker concatenates all of
//! them. Before `main` that section is read, sorted and written as one pleco schema ([`text`]). So sites
//! are known to recorders before they run, and cost as much as other events.
//!
//! Code that was inlined twice has two entries for the same event; a generic function has a site for each
//! set of types.

mod arguments;
mod format;
mod text;

use crate::c_core::AREA_EVENT_COUNT;
use crate::record::Record;
use crate::schema::{Schema, UNREGISTERED};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

pub use arguments::{Argument, Arguments};
pub use format::Type;
pub(crate) use text::Text;

/// The schema of all sites of this object.
static LOG: Schema = Schema::new("log_rust", "", 0, 0);

const _: () = {
    extern "C" fn register() {
        if !entries().is_empty() {
            register_sites();
        }
    }
    #[used]
    #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array.00200"))]
    static AT_START: extern "C" fn() = register;
};

/// A call site in the code, as defined by the macros.
pub trait Site {
    /// File name, from `file!()`.
    const FILE: &'static str;
    /// Line number, from 1.
    const LINE: u32;
    /// Column number, from 1.
    const COLUMN: u32;
    /// The format, or the name of the span.
    const TEXT: &'static str;
    /// Whether it is a span.
    const IS_SPAN: bool;
}

/// A site with the types of its arguments.
#[derive(Clone, Copy)]
pub struct Description {
    file: &'static str,
    line: u32,
    column: u32,
    text: &'static str,
    types: &'static [Type],
    is_span: bool,
}

fn describe<S: Site, A: Arguments>() -> Description {
    Description {
        file: S::FILE,
        line: S::LINE,
        column: S::COLUMN,
        text: S::TEXT,
        types: A::TYPES,
        is_span: S::IS_SPAN,
    }
}

/// An entry of the section `lat_rust_log`, whose layout the assembly below repeats.
#[repr(C)]
pub struct Entry {
    describe: fn() -> Description,
    /// The enable byte of the event. For a span, that of the begin event, followed by that of the
    /// end event. Initially a byte that means that the schema is not registered.
    enabled: AtomicPtr<u8>,
    /// Number of the event in LOG; written before `enabled` is.
    index: AtomicU32,
    reserved: u32,
}

static UNREGISTERED_SITE: [u8; 2] = [UNREGISTERED; 2];

/// Returns the entry of a site, which this function also creates.
#[inline(always)]
fn entry<S: Site, A: Arguments>() -> Option<&'static Entry> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
    {
        let entry: *const Entry;
        // SAFETY: the address of a static object with the layout of Entry, whose pointers are valid. `R`
        // keeps the section when unreferenced sections are dropped: the schema's text would lack it.
        unsafe {
            core::arch::asm!(
                ".pushsection lat_rust_log, \"awR\", @progbits",
                ".balign 8",
                "31: .quad {describe}",
                ".quad {unregistered}",
                ".quad 0",
                ".popsection",
                "leaq 31b(%rip), {entry}",
                describe = sym describe::<S, A>,
                unregistered = sym UNREGISTERED_SITE,
                entry = lateout(reg) entry,
                options(att_syntax, pure, nomem, nostack, preserves_flags),
            );
            Some(&*entry)
        }
    }
    #[cfg(all(target_os = "linux", target_arch = "aarch64", target_pointer_width = "64"))]
    {
        let entry: *const Entry;
        // SAFETY: as above.
        unsafe {
            core::arch::asm!(
                ".pushsection lat_rust_log, \"awR\", @progbits",
                ".balign 8",
                "31: .quad {describe}",
                ".quad {unregistered}",
                ".quad 0",
                ".popsection",
                "adrp {entry}, 31b",
                "add {entry}, {entry}, :lo12:31b",
                describe = sym describe::<S, A>,
                unregistered = sym UNREGISTERED_SITE,
                entry = lateout(reg) entry,
                options(pure, nomem, nostack, preserves_flags),
            );
            Some(&*entry)
        }
    }
    #[cfg(not(all(
        target_os = "linux",
        target_pointer_width = "64",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )))]
    {
        let _ = (describe::<S, A>, &UNREGISTERED_SITE);
        None
    }
}

/// The entries of this object: the range between two symbols that the linker defines, if it has any.
fn entries() -> &'static [Entry] {
    #[cfg(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
    let (start, stop): (*const Entry, *const Entry) = {
        let (start, stop);
        // SAFETY: loads two addresses; undefined weak symbols are null, and hidden
        // ones belong to this object.
        unsafe {
            core::arch::asm!(
                ".weak __start_lat_rust_log, __stop_lat_rust_log",
                ".hidden __start_lat_rust_log, __stop_lat_rust_log",
                "movq __start_lat_rust_log@GOTPCREL(%rip), {start}",
                "movq __stop_lat_rust_log@GOTPCREL(%rip), {stop}",
                start = lateout(reg) start,
                stop = lateout(reg) stop,
                options(att_syntax, pure, nomem, nostack, preserves_flags),
            );
        }
        (start, stop)
    };
    #[cfg(all(target_os = "linux", target_arch = "aarch64", target_pointer_width = "64"))]
    let (start, stop): (*const Entry, *const Entry) = {
        let (start, stop);
        // SAFETY: as above.
        unsafe {
            core::arch::asm!(
                ".weak __start_lat_rust_log, __stop_lat_rust_log",
                ".hidden __start_lat_rust_log, __stop_lat_rust_log",
                "adrp {start}, :got:__start_lat_rust_log",
                "ldr {start}, [{start}, :got_lo12:__start_lat_rust_log]",
                "adrp {stop}, :got:__stop_lat_rust_log",
                "ldr {stop}, [{stop}, :got_lo12:__stop_lat_rust_log]",
                start = out(reg) start,
                stop = out(reg) stop,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        (start, stop)
    };
    #[cfg(not(all(
        target_os = "linux",
        target_pointer_width = "64",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )))]
    let (start, stop): (*const Entry, *const Entry) = (core::ptr::null(), core::ptr::null());
    if start.is_null() {
        return &[];
    }
    let count = (stop.addr() - start.addr()) / size_of::<Entry>();
    // SAFETY: the section between the two symbols contains only entries. They
    // are never moved and change only in their atomic fields.
    unsafe { core::slice::from_raw_parts(start, count) }
}

/// Makes the schema of all sites, registers it, and gives the sites the addresses of their enable bytes.
#[cold]
fn register_sites() {
    LOG.register_as(Some(text::identity));
    if let Some(first) = LOG.enable_bytes() {
        for entry in entries() {
            let index = entry.index.load(Ordering::Relaxed) as usize % AREA_EVENT_COUNT;
            // Release: pairs with the acquire in Entry::on; the index and LOG's base id are stored before.
            entry.enabled.store(first.wrapping_add(index), Ordering::Release);
        }
    }
}

impl Entry {
    /// The enable byte; `further` is 1 for the end of a span.
    #[inline(always)]
    fn on(&self, further: usize) -> u8 {
        let enabled = self.enabled.load(Ordering::Acquire);
        // SAFETY: points to UNREGISTERED_SITE, or into the enable table of an area, or to a table of zeros
        // of the same size; after each of these there is at least one more byte.
        unsafe { (*enabled.wrapping_add(further).cast::<AtomicU8>()).load(Ordering::Relaxed) }
    }

    #[cold]
    fn emit(&self, mut on: u8, further: u32, record: &Record<'_>) {
        if on & UNREGISTERED != 0 {
            register_sites();
            on = self.on(further as usize);
            if on & UNREGISTERED != 0 {
                return;
            }
        }
        if on != 0 {
            let index = self.index.load(Ordering::Relaxed);
            LOG.emit_record(on, index + further, record);
        }
    }
}

/// For [`log!`](crate::log!).
#[doc(hidden)]
#[inline(always)]
pub fn record<S: Site, A: Arguments>(arguments: impl FnOnce() -> A) {
    const {
        assert!(
            format::is_printable(S::TEXT, A::TYPES),
            "log!: expected as many placeholders as arguments, each with nothing in it but a width, \
             a precision, < or >, + # 0, and one of ? x X o e p, that suits its argument"
        );
    }
    if let Some(entry) = entry::<S, A>() {
        let on = entry.on(0);
        if on != 0 {
            put_and_emit(entry, on, &arguments());
        }
    }
}

#[cold]
#[inline(never)]
fn put_and_emit<A: Arguments>(entry: &'static Entry, on: u8, arguments: &A) {
    let mut record = Record::new();
    arguments.put(&mut record);
    entry.emit(on, 0, &record);
}

/// A span that ends when this is dropped; made by [`span!`](crate::span!).
#[must_use = "a span ends when this is dropped: keep it in a variable"]
pub struct Span {
    entry: Option<&'static Entry>,
}

impl Span {
    /// For [`span!`](crate::span!).
    #[doc(hidden)]
    #[inline(always)]
    pub fn begin<S: Site>() -> Span {
        let entry = entry::<S, ()>();
        if let Some(entry) = entry {
            let on = entry.on(0);
            if on != 0 {
                entry.emit(on, 0, &Record::new());
            }
        }
        Span { entry }
    }
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(entry) = self.entry {
            let on = entry.on(1);
            if on != 0 {
                entry.emit(on, 1, &Record::new());
            }
        }
    }
}

/// Records a remark whose format is stored once in the recording, with its unformatted arguments:
/// the reader formats them.
///
/// ```
/// let (us, name) = (17_u32, "parse");
/// lateralis::log!("took {} us for {}", us, name);
/// lateralis::log!("{:>8.3} of {:#x}", 0.25, 0xbeef_u64);
/// ```
///
/// Arguments: integers up to 64 bits, floats, `bool`, `char`, `&str`, raw pointers; at most 16,
/// evaluated only if the event is enabled. The format takes them in order; it is checked at
/// compile time, and `{name}` or `{0}` are not supported. Each call site is an event of its own,
/// `log:FILE_LINE`, which can be enabled alone, and is known before it runs.
///
/// Recorded on x86-64 and AArch64, else ignored. Context: anywhere. Cost: like
/// [`Schema::emit_record`]; disabled, two loads.
#[macro_export]
macro_rules! log {
    ($format:literal $(, $argument:expr)* $(,)?) => {{
        struct Site;
        impl $crate::log::Site for Site {
            const FILE: &'static str = ::core::file!();
            const LINE: u32 = ::core::line!();
            const COLUMN: u32 = ::core::column!();
            const TEXT: &'static str = $format;
            const IS_SPAN: bool = false;
        }
        $crate::log::record::<Site, _>(|| ($($argument,)*));
    }};
}

/// Begins a span that ends at the end of the scope, without a schema file:
///
/// ```
/// fn parse() {
///     let _span = lateralis::span!(parse);
/// }
/// ```
///
/// Two events, `log:FILE_LINE_begin` and `log:FILE_LINE_end`. A schema file supports more: keys,
/// fields, budgets. Context and cost: like [`log!`](crate::log!).
#[macro_export]
macro_rules! span {
    ($name:ident) => {{
        struct Site;
        impl $crate::log::Site for Site {
            const FILE: &'static str = ::core::file!();
            const LINE: u32 = ::core::line!();
            const COLUMN: u32 = ::core::column!();
            const TEXT: &'static str = ::core::stringify!($name);
            const IS_SPAN: bool = true;
        }
        $crate::log::Span::begin::<Site>()
    }};
}
