// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signals of the recorder itself. SIGINT ends a recording properly; all signals
//! intended for the program are counted here and forwarded to it.

use std::sync::atomic::{AtomicU32, Ordering};

/// Size for the largest signal number of Linux.
const NUMBERS: usize = 65;

/// Number of arrivals of each signal.
static ARRIVED: [AtomicU32; NUMBERS] = [const { AtomicU32::new(0) }; NUMBERS];

/// Signals intended for the program: each would end or reconfigure it, and has no meaning for a recorder.
/// Real-time signals are added to these. Not included: SIGINT, which the terminal sends to both; signals
/// of job control, which the terminal or the shell sends to the whole group.
const PROGRAM_SIGNALS: [libc::c_int; 9] = [
    libc::SIGHUP,
    libc::SIGTERM,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
];

pub(super) type InfoHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Installs a handler that receives a siginfo.
pub(super) fn install_with_info(signal: libc::c_int, handler: InfoHandler) {
    // SAFETY: a zeroed sigaction is valid; the handler has the signature that SA_SIGINFO requires.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Restores the default action of a signal. Context: signal handler.
pub(super) fn reset_in_handler(signal: libc::c_int) {
    // SAFETY: signal() is async-signal-safe.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

extern "C" fn count(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to a handler with SA_SIGINFO.
    let is_of_terminal = unsafe { (*info).si_code } == libc::SI_KERNEL;
    // The terminal sends SIGQUIT to the program as well. A hang-up may reach only the recorder.
    if signal == libc::SIGQUIT && is_of_terminal {
        return;
    }
    if let Some(count) = usize::try_from(signal).ok().and_then(|at| ARRIVED.get(at)) {
        // Pair: the relaxed loads below; only the counts matter.
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn arrived(signal: libc::c_int) -> u32 {
    let count = usize::try_from(signal).ok().and_then(|at| ARRIVED.get(at));
    // Pair: the handler's relaxed additions.
    count.map_or(0, |count| count.load(Ordering::Relaxed))
}

/// Whether a signal is ignored by this process.
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: a zeroed sigaction is valid, and only written to by the call.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut old);
        old.sa_sigaction == libc::SIG_IGN
    }
}

/// Counts a signal from now on instead of terminating. An ignored signal (`nohup`) stays ignored. A
/// launched program starts with the default again, as exec resets handlers.
fn catch(signal: libc::c_int) {
    if is_ignored(signal) {
        return;
    }
    // SAFETY: a zeroed sigaction is valid; `count` has the signature that SA_SIGINFO requires, and
    // only adds to an atomic.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as InfoHandler as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Counts SIGINT, SIGTERM and SIGHUP from now on instead of terminating.
pub(super) fn catch_endings() {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().for_each(catch);
}

/// Also counts all signals intended for a launched program.
pub(super) fn catch_program_signals() {
    catch_endings();
    program_signals().for_each(catch);
}

fn program_signals() -> impl Iterator<Item = libc::c_int> {
    PROGRAM_SIGNALS.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
}

/// Number of SIGINTs so far.
pub(super) fn interrupts() -> u32 {
    arrived(libc::SIGINT)
}

/// Number of SIGTERMs and SIGHUPs so far.
pub(super) fn terminations() -> u32 {
    arrived(libc::SIGTERM).wrapping_add(arrived(libc::SIGHUP))
}

/// Signals that arrived for the program and have not been forwarded yet.
#[derive(Debug)]
pub(super) struct Forwarding {
    passed_on: [u32; NUMBERS],
}

impl Forwarding {
    /// Forwards signals that arrive from now on.
    pub(super) fn begin() -> Forwarding {
        let mut passed_on = [0; NUMBERS];
        for signal in program_signals() {
            if let Some(count) = usize::try_from(signal).ok().and_then(|at| passed_on.get_mut(at)) {
                *count = arrived(signal);
            }
        }
        Forwarding { passed_on }
    }

    /// Calls `send` with each signal, as often as it arrived since the last call.
    pub(super) fn pass_on(&mut self, mut send: impl FnMut(libc::c_int)) {
        for signal in program_signals() {
            let Some(passed_on) =
                usize::try_from(signal).ok().and_then(|at| self.passed_on.get_mut(at))
            else {
                continue;
            };
            let now = arrived(signal);
            while *passed_on != now {
                *passed_on = passed_on.wrapping_add(1);
                send(signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_for_the_program_are_passed_on_as_themselves_and_once() {
        catch_program_signals();
        let mut forwarding = Forwarding::begin();
        // SAFETY: the signal is caught by the counting handler.
        unsafe { libc::raise(libc::SIGUSR2) };
        let mut sent = Vec::new();
        forwarding.pass_on(|signal| sent.push(signal));
        assert_eq!(sent, [libc::SIGUSR2]);
        forwarding.pass_on(|signal| sent.push(signal));
        assert_eq!(sent.len(), 1);
    }
}
