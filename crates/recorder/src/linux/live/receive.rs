// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client: writes a received live recording to a directory, which is then a recording.

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

/// Time between two attempts to reconnect.
const RETRY_PERIOD: Duration = Duration::from_millis(100);

/// Source of a live recording.
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

/// Options for receiving.
#[derive(Debug, Clone)]
pub struct ReceiveOptions {
    /// The source.
    pub from: ReceiveFrom,
    /// Directory to be created, or one that contains a part of the same recording.
    pub output: PathBuf,
    /// The token for the server.
    pub token: Option<String>,
    /// How to authenticate the server, over TLS. Required for addresses on other
    /// machines.
    pub trust: Option<TlsTrust>,
    /// How long to try to reconnect after the connection was lost.
    pub retry: Duration,
    /// Maximum duration.
    pub duration: Option<Duration>,
    /// Flush period requested from the server, if its own is too long: the maximum delay of
    /// events.
    pub flush_every: Option<Duration>,
    /// Maximum size of stream files in bytes.
    pub max_disk_bytes: Option<u64>,
    /// Setting it ends the reception.
    pub stop: Arc<AtomicBool>,
}

/// Progress of the reception.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ReceiveProgress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Packets received.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dropped by the server.
    pub dropped: Count,
    /// Everything up to this time has arrived, nanoseconds of the server's UTC.
    pub flushed_ns: Option<i64>,
    /// Whether there is a connection.
    pub connected: bool,
}

/// Result of the reception.
#[derive(Debug, Clone)]
pub struct ReceiveSummary {
    /// The directory.
    pub output: PathBuf,
    /// Content of `report.json`; incomplete if the server did not end the recording.
    pub report: Report,
    /// Sums.
    pub progress: ReceiveProgress,
}

/// Receives until the recording ends, or a signal, or one of the limits.
///
/// Errors: the server is not reachable, refuses, or sends something else; the directory contains another
/// recording, or cannot be written.
pub fn receive(
    options: ReceiveOptions,
    progress: &mut dyn FnMut(&ReceiveProgress),
) -> Result<ReceiveSummary, Error> {
    signals::catch_endings();
    let signals_before = signals::interrupts() + signals::terminations();
    let stop = options.stop.clone();
    let mut receiver = Receiver::new(options)?;
    // Partner: the caller's store; no other data depend on it.
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
                // Callers wait for flushed data.
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
            // If the first attempt fails, that is the result; later the server may be restarting.
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
