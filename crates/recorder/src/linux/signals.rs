// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signals of the recorder itself: SIGINT, SIGTERM and SIGHUP end a recording in good order.

use std::sync::atomic::{AtomicU32, Ordering};

static INTERRUPTS: AtomicU32 = AtomicU32::new(0);
static TERMINATIONS: AtomicU32 = AtomicU32::new(0);

pub(super) type InfoHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Installs a handler that is told more than the number.
pub(super) fn install_with_info(signal: libc::c_int, handler: InfoHandler) {
    // SAFETY: a zeroed sigaction is valid; the handler has the signature SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Gives a signal back to the system. Context: signal handler.
pub(super) fn reset_in_handler(signal: libc::c_int) {
    // SAFETY: signal() is async-signal-safe.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

extern "C" fn count(signal: libc::c_int) {
    // Pair: the relaxed loads below; only the counts matter.
    match signal {
        libc::SIGINT => INTERRUPTS.fetch_add(1, Ordering::Relaxed),
        _ => TERMINATIONS.fetch_add(1, Ordering::Relaxed),
    };
}

/// Counts SIGINT, SIGTERM and SIGHUP from now on instead of dying of them. What was ignored
/// (`nohup`) stays ignored. A launched program starts with the defaults again, as exec resets
/// handlers.
pub(super) fn catch_endings() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: zeroed sigactions are valid; `count` only adds to an atomic.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut old);
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// SIGINTs so far.
pub(super) fn interrupts() -> u32 {
    INTERRUPTS.load(Ordering::Relaxed)
}

/// SIGTERMs and SIGHUPs so far.
pub(super) fn terminations() -> u32 {
    TERMINATIONS.load(Ordering::Relaxed)
}
