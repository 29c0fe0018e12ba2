// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client: writes what a live recording sends into a directory, which is then a recording.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lateralis_live::Count;

use super::receiver::{LOOK, Over, Receiver};
use crate::error::Error;
use crate::linux::signals;
use crate::options::TlsTrust;
use crate::report::Report;

/// Time between two attempts to come back.
const RETRY_PERIOD: Duration = Duration::from_millis(100);

/// Where a live recording comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiveFrom {
    /// `HOST:PORT`.
    Tcp(String),
    /// Standard input.
    StandardInput,
}

impl fmt::Display for ReceiveFrom {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(match self {
            ReceiveFrom::Tcp(address) => address,
            ReceiveFrom::StandardInput => "-",
        })
    }
}

/// How to receive.
#[derive(Debug, Clone)]
pub struct ReceiveOptions {
    /// From where.
    pub from: ReceiveFrom,
    /// Directory to be made, or one in which a part of the same recording is.
    pub output: PathBuf,
    /// What the server wants to hear.
    pub token: Option<String>,
    /// How to know the server, which then is spoken to inside TLS. Needed for addresses that are
    /// not of this machine.
    pub trust: Option<TlsTrust>,
    /// How long to try to come back after the connection broke.
    pub retry: Duration,
    /// Longest time.
    pub duration: Option<Duration>,
    /// How often the server shall flush, if not as often as it does anyway: what happens is here
    /// that soon.
    pub flush_every: Option<Duration>,
    /// Most bytes of stream files.
    pub max_disk_bytes: Option<u64>,
    /// Ends it when somebody sets it.
    pub stop: Arc<AtomicBool>,
}

/// How it is going.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ReceiveProgress {
    /// Since the start.
    pub elapsed: Duration,
    /// Packets received.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What the server dropped.
    pub dropped: Count,
    /// Everything up to this moment is here, nanoseconds of UTC of the server.
    pub flushed_ns: Option<i64>,
    /// There is a connection.
    pub connected: bool,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct ReceiveSummary {
    /// The directory.
    pub output: PathBuf,
    /// What `report.json` says; not complete if the server did not end the recording.
    pub report: Report,
    /// Sums.
    pub progress: ReceiveProgress,
}

/// Receives until the recording ends, or a signal, or one of the limits.
///
/// Errors: nobody is there, refuses, or sends something else; the directory is of another
/// recording, or cannot be written.
pub fn receive(
    options: ReceiveOptions,
    progress: &mut dyn FnMut(&ReceiveProgress),
) -> Result<ReceiveSummary, Error> {
    signals::catch_endings();
    let signals_before = signals::interrupts() + signals::terminations();
    let stop = options.stop.clone();
    let mut receiver = Receiver::new(options)?;
    // Partner: whoever wants it to end; it says nothing else.
    let is_ended = || {
        signals::interrupts() + signals::terminations() != signals_before
            || stop.load(Ordering::Relaxed)
    };
    let mut last_progress = Instant::now();
    let mut last_flush = None;
    let mut broken_at: Option<Instant> = None;
    loop {
        let seen = receiver.progress.packets;
        let outcome = receiver.connect().and_then(|mut connection| {
            receiver.follow(&mut connection, &mut || is_ended(), &mut |now| {
                // What was flushed is waited for.
                if last_progress.elapsed() >= LOOK || now.flushed_ns != last_flush {
                    last_flush = now.flushed_ns;
                    last_progress = Instant::now();
                    progress(now);
                }
            })
        });
        receiver.progress.connected = false;
        progress(&receiver.progress);
        match outcome {
            Ok(Over::Yes) => break,
            Ok(Over::Broken) => {}
            // A first attempt that fails is an answer, a later one may be a server that restarts.
            Err(error) if receiver.output.is_none() || !receiver.may_try_again(&error) => {
                if receiver.output.is_none() {
                    return Err(error);
                }
                receiver.problem(error.to_string());
                break;
            }
            Err(_) => {}
        }
        if receiver.progress.packets != seen {
            broken_at = None;
        }
        let since = broken_at.get_or_insert_with(Instant::now).elapsed();
        let pipe = receiver.options.from == ReceiveFrom::StandardInput;
        if pipe || is_ended() || receiver.is_late() || since >= receiver.options.retry {
            receiver.problem("the connection ended before the recording did".to_owned());
            break;
        }
        std::thread::sleep(RETRY_PERIOD);
    }
    receiver.end()
}
