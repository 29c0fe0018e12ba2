// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of a recording.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lateralis_ring::RingMode;

use crate::action::{Action, Rule};
use crate::filter::Filter;
use crate::pattern::Patterns;
use crate::policy::Policies;

/// Version of the metadata text that describes the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CtfVersion {
    /// CTF 1.8, which every installed reader supports.
    #[default]
    Ctf1,
    /// CTF 2.
    Ctf2,
}

/// An event, optionally with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventMatch {
    /// `SUBSYSTEM:EVENT`, exact.
    pub event: String,
    /// The values that match.
    pub value: MatchValue,
}

/// Values of an event that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchValue {
    /// Any.
    Any,
    /// Value and mask of the first 8 payload bytes; missing bytes are zero.
    Word(u64, u64),
    /// A field within them has this value.
    Field(Filter),
}

/// Automatic start and stop of the recording [ring-abi §7].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TriggerOptions {
    /// Nothing is recorded before this event; `None`: starts at once.
    pub start: Option<EventMatch>,
    /// Nothing is recorded after this event.
    pub stop: Option<EventMatch>,
    /// Maximum time after the start.
    pub duration: Option<Duration>,
    /// Maximum number of events, including the start event.
    pub count: Option<u64>,
}

/// Destination of a live stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveAddress {
    /// `HOST:PORT` that clients connect to.
    Tcp(String),
    /// Standard output; the command's own output goes to standard error instead.
    StandardOutput,
}

/// SHA-256 of a certificate, in hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(text, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, text)
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    /// 64 hexadecimal digits, optionally with colons between bytes, as written by openssl.
    fn from_str(text: &str) -> Result<Fingerprint, String> {
        let digits: Vec<u8> = text
            .chars()
            .filter(|character| *character != ':')
            .map(|character| character.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect::<Option<_>>()
            .ok_or("a fingerprint is of hexadecimal digits")?;
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(format!("a fingerprint has 64 digits, this one {}", digits.len()));
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Ok(Fingerprint(bytes))
    }
}

/// TLS identity of a server of a live stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsIdentity {
    /// A certificate generated for this recording; clients get its fingerprint.
    Generated,
    /// PEM files.
    Files {
        /// The certificate, and its chain.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
}

/// How a client verifies a server of a live stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsTrust {
    /// The server has this certificate.
    Fingerprint(Fingerprint),
    /// The certificate matches the server's name, and is signed by an authority of this PEM file.
    Authorities(PathBuf),
}

/// A recording that can be followed in progress (`spec/live.md`).
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// Address; `None`: only for followers in this process.
    pub address: Option<LiveAddress>,
    /// Token that clients must send. Required if the address is reachable from other machines.
    pub token: Option<String>,
    /// Encryption. Always used for an address reachable from other machines: [`TlsIdentity::Generated`].
    pub tls: Option<TlsIdentity>,
    /// Bytes of packets kept for clients. A client that lags more loses packets.
    pub window_bytes: u64,
    /// Maximum time at the end for clients to read the remaining packets.
    pub linger: Duration,
}

impl LiveOptions {
    /// Defaults for `address`: without a token, 64 MiB, 5 s.
    pub fn new(address: Option<LiveAddress>) -> LiveOptions {
        let linger = Duration::from_secs(5);
        LiveOptions { address, token: None, tls: None, window_bytes: 64 << 20, linger }
    }
}

/// Saves windows of time around the firings of conditions; everything else is dropped.
#[derive(Debug, Clone)]
pub struct KeepOptions {
    /// Time before a firing.
    pub before: Duration,
    /// Time after it.
    pub after: Duration,
    /// Maximum number of windows on disk.
    pub windows_max: u64,
    /// Maximum size of stream files on disk in bytes, all windows together.
    pub disk_bytes_max: u64,
    /// Maximum size of packets in memory in bytes.
    pub memory_bytes_max: u64,
    /// If there is no room for another window: keep the first ones, not the last.
    pub keeps_first: bool,
    /// Everything else is dropped, and each condition saves a window. Otherwise all is recorded, and
    /// windows are saved in addition, by conditions with that action.
    pub is_alone: bool,
}

/// A recording in chunks, each a complete recording of its own, for an unlimited time.
#[derive(Debug, Clone, Default)]
pub struct ChunkOptions {
    /// Maximum size of stream files of a chunk in bytes.
    pub bytes: Option<u64>,
    /// Maximum duration of a chunk.
    pub time: Option<Duration>,
    /// Maximum number of chunks; the oldest ones are removed.
    pub chunks_max: Option<u64>,
}

/// Options of a recording.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// Directory to be created; it must not exist, or be empty.
    pub output: PathBuf,
    /// Directory of areas; `None`: `LATERALIS_DIR`, else the user's default.
    pub area_dir: Option<PathBuf>,
    /// Size of a ring in bytes.
    pub buffer_bytes: u64,
    /// Size of a packet in bytes.
    pub packet_bytes: u64,
    /// Maximum size of all rings of one area together, in bytes.
    pub cap_bytes: u64,
    /// Behaviour when all packets of a ring are full. In overwrite mode the rings are read
    /// only at the end of the recording: the newest events are kept.
    pub mode: RingMode,
    /// Events to record.
    pub enable: Patterns,
    /// Events that are recorded only if their fields match; at most one filter per event.
    pub filters: Vec<Filter>,
    /// Selection of programs, with different options for each; `None`: all programs of the
    /// command, or those attached to, alike.
    pub policies: Option<Policies>,
    /// Start and stop conditions.
    pub trigger: Option<TriggerOptions>,
    /// Version of the metadata text.
    pub ctf_version: CtfVersion,
    /// Maximum time between two polls of the rings.
    pub drain_period: Duration,
    /// Time after which events of open packets are written too.
    pub flush_period: Duration,
    /// Time between two progress reports.
    pub progress_period: Duration,
    /// Maximum size of stream files in bytes; then the recording ends.
    pub max_disk_bytes: Option<u64>,
    /// Maximum duration.
    pub duration: Option<Duration>,
    /// End only when all processes of the session have ended, instead of with the command.
    pub follow: bool,
    /// One area with one set of rings for all programs of the command, instead of one for each.
    /// A program that cannot use it creates one of its own. Only for [`launch`].
    ///
    /// [`launch`]: crate::linux::Session::launch
    pub shared: bool,
    /// Serves the recording to live clients.
    pub live: Option<LiveOptions>,
    /// Keep stream files. Without them only live clients get packets.
    pub keep_streams: bool,
    /// Saves windows of time, each a recording of its own in the directory.
    pub keep: Option<KeepOptions>,
    /// Conditions, and their actions.
    pub rules: Vec<Rule>,
    /// Time limit of a command that is run when a condition fires.
    pub command_time_max: Duration,
    /// Makes the recording in chunks.
    pub chunks: Option<ChunkOptions>,
}
/// Default size of a ring in bytes.
pub(crate) const DEFAULT_BUFFER_BYTES: u64 = 4 << 20;

/// Whether rings of this size start with a part of their memory. Larger ones are requested by users
/// who expect bursts: they are complete before the first burst, however busy the recorder is.
pub(crate) fn rings_grow(buffer_bytes: u64) -> bool {
    buffer_bytes <= DEFAULT_BUFFER_BYTES
}

impl RecordOptions {
    /// Defaults for a recording into `output`: rings of 4 MiB in packets of 64 KiB, at most
    /// 256 MiB an area, discard mode, all events, CTF 1.8, drained every 5 ms.
    pub fn new(output: impl Into<PathBuf>) -> RecordOptions {
        RecordOptions {
            output: output.into(),
            area_dir: None,
            buffer_bytes: DEFAULT_BUFFER_BYTES,
            packet_bytes: 64 << 10,
            cap_bytes: 256 << 20,
            mode: RingMode::Discard,
            enable: Patterns::all(),
            filters: Vec::new(),
            policies: None,
            trigger: None,
            ctf_version: CtfVersion::default(),
            drain_period: Duration::from_millis(5),
            flush_period: Duration::from_secs(1),
            progress_period: Duration::from_millis(500),
            max_disk_bytes: None,
            duration: None,
            follow: false,
            shared: false,
            live: None,
            keep_streams: true,
            keep: None,
            rules: Vec::new(),
            command_time_max: Duration::from_secs(60),
            chunks: None,
        }
    }
}

impl RecordOptions {
    /// Whether nothing is recorded until a condition starts it.
    #[must_use]
    pub fn starts_stopped(&self) -> bool {
        self.rules.iter().any(|rule| rule.actions.contains(&Action::Start))
    }
}

/// Progress of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Number of events of schemas written so far; exact.
    pub events: u64,
    /// Events per second since the last report.
    pub events_per_s: f64,
    /// Size of stream files so far in bytes.
    pub bytes: u64,
    /// Number of lost events so far, of all causes; exact as of the last poll of the rings.
    pub lost: u64,
    /// Number of processes seen so far.
    pub processes: u64,
    /// Tracing is paused.
    pub paused: bool,
}
