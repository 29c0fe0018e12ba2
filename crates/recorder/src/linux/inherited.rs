// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State inherited by this process that a launched program must inherit as well, although the Rust runtime
//! and the recorder change it for themselves: which of descriptors 0 to 2 were closed, and which
//! signals were ignored.
//!
//! The runtime opens `/dev/null` for closed descriptors and ignores SIGPIPE before `main`, so the
//! state is read before it, by a constructor.

use std::sync::atomic::{AtomicU32, Ordering};

/// Descriptors 0 to 2 that were closed, as bits 0 to 2.
static CLOSED: AtomicU32 = AtomicU32::new(0);
/// Signals of [`CHANGED`] that were ignored, as bits.
static IGNORED: AtomicU32 = AtomicU32::new(0);

/// Signals whose disposition the runtime or the recorder changes.
const CHANGED: [libc::c_int; 3] = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGXFSZ];

extern "C" fn look() {
    let mut closed = 0;
    for fd in 0..3 {
        // SAFETY: F_GETFD only queries, and fails for a closed descriptor.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            closed |= 1 << fd;
        }
    }
    let mut ignored = 0;
    for (at, signal) in CHANGED.into_iter().enumerate() {
        // SAFETY: a zeroed sigaction is valid, and only written to by the call.
        let is_ignored = unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut old) == 0
                && old.sa_sigaction == libc::SIG_IGN
        };
        ignored |= u32::from(is_ignored) << at;
    }
    // Pair: the relaxed loads below; this runs before there is a second thread.
    CLOSED.store(closed, Ordering::Relaxed);
    IGNORED.store(ignored, Ordering::Relaxed);
}

/// Runs `look` before `main`.
#[used]
// SAFETY: the C library calls each pointer of this section once, before `main`; `look` takes no
// arguments and makes only system calls.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look;

/// The inherited state, as it was before `main`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inherited {
    closed: u32,
    ignored: u32,
}

impl Inherited {
    /// The state read by the constructor.
    pub(super) fn of_this_process() -> Inherited {
        // Keeps the constructor if a linker drops unreferenced items.
        let _ = std::hint::black_box(BEFORE_MAIN);
        // Pair: the constructor's relaxed stores.
        let closed = CLOSED.load(Ordering::Relaxed);
        let ignored = IGNORED.load(Ordering::Relaxed);
        Inherited { closed, ignored }
    }

    /// Restores it for a program.
    /// Context: between fork and exec: only system calls.
    pub(super) fn restore(self) {
        for (at, signal) in CHANGED.into_iter().enumerate() {
            let is_ignored = self.ignored & 1 << at != 0;
            let disposition = if is_ignored { libc::SIG_IGN } else { libc::SIG_DFL };
            // SAFETY: signal() with one of these two only sets the disposition.
            unsafe { libc::signal(signal, disposition) };
        }
        for fd in 0..3 {
            if self.closed & 1 << fd != 0 {
                // SAFETY: it is the /dev/null that the runtime opened; it has no other user.
                unsafe { libc::close(fd) };
            }
        }
    }
}

/// Lets this process wait for children and survive the file size limit, whatever it inherited. The
/// launched program gets the inherited state back: [`Inherited::restore`].
pub(super) fn prepare() {
    // SAFETY: only sets dispositions: with SIGCHLD ignored the exit status of the program would be lost,
    // and SIGXFSZ would kill the recorder where a write can fail with an error instead.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
