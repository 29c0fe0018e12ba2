// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What to record and how.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lateralis_ring::RingMode;

use crate::action::{Action, Rule};
use crate::filter::Filter;
use crate::pattern::Patterns;
use crate::policy::Policies;

/// Which metadata text describes the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CtfVersion {
    /// CTF 1.8: every installed reader opens it.
    #[default]
    Ctf1,
    /// CTF 2.
    Ctf2,
}

/// An event, and perhaps a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventMatch {
    /// `SUBSYSTEM:EVENT`, exact.
    pub event: String,
    /// Which values it must have.
    pub value: MatchValue,
}

/// Which values an event must have to be the one that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchValue {
    /// Any.
    Any,
    /// Value and mask of the first 8 payload bytes; missing bytes are zero.
    Word(u64, u64),
    /// A field that lies in them has this value.
    Field(Filter),
}

/// When recording starts and stops by itself [ring-abi §7].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TriggerOptions {
    /// Nothing is recorded before this event; `None`: at once.
    pub start: Option<EventMatch>,
    /// Nothing is recorded after this event.
    pub stop: Option<EventMatch>,
    /// Nothing is recorded later than this after the start.
    pub duration: Option<Duration>,
    /// No more events than this, the start event included.
    pub count: Option<u64>,
}

/// Where a live stream goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveAddress {
    /// `HOST:PORT` that clients connect to.
    Tcp(String),
    /// Standard output; what the command writes there goes to standard error instead.
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

    /// 64 hexadecimal digits, perhaps with colons between bytes, as openssl writes them.
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

/// Who a server of a live stream is, to clients inside TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsIdentity {
    /// A certificate made for this recording; clients are told its fingerprint.
    Generated,
    /// PEM files.
    Files {
        /// The certificate, and those that it was signed with.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
}

/// How a client knows a server of a live stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsTrust {
    /// It has this certificate.
    Fingerprint(Fingerprint),
    /// Its certificate is of its name, and signed by one of this PEM file.
    Authorities(PathBuf),
}

/// A recording that can be followed while it is made (`spec/live.md`).
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// Where to; `None`: only for followers in this process.
    pub address: Option<LiveAddress>,
    /// What clients must know. Needed where the address is not of this machine alone.
    pub token: Option<String>,
    /// Encrypt. An address that is not of this machine alone always is: [`TlsIdentity::Generated`].
    pub tls: Option<TlsIdentity>,
    /// Bytes of packets kept for clients. One that falls further behind loses packets.
    pub window_bytes: u64,
    /// Longest time that clients have at the end to take what is left.
    pub linger: Duration,
}

impl LiveOptions {
    /// To `address`, without a token, 64 MiB, 5 s.
    pub fn new(address: Option<LiveAddress>) -> LiveOptions {
        let linger = Duration::from_secs(5);
        LiveOptions { address, token: None, tls: None, window_bytes: 64 << 20, linger }
    }
}

/// Windows of time that are kept because a condition fired; everything else is forgotten.
#[derive(Debug, Clone)]
pub struct KeepOptions {
    /// Time before the moment at which one fired.
    pub before: Duration,
    /// And behind it.
    pub after: Duration,
    /// Most windows on disk.
    pub windows_max: u64,
    /// Most bytes of stream files on disk, all windows together.
    pub disk_bytes_max: u64,
    /// Most bytes of packets in memory.
    pub memory_bytes_max: u64,
    /// Where there is no room for another window: keep the first ones, not the last.
    pub keeps_first: bool,
    /// Everything else is forgotten, and each condition keeps a window. Else all is recorded, and
    /// windows are kept besides, by conditions whose actions say so.
    pub is_alone: bool,
}

/// A recording in pieces, each a whole recording of its own; it may go on for ever.
#[derive(Debug, Clone, Default)]
pub struct ChunkOptions {
    /// A chunk with so many bytes of stream files is followed by the next.
    pub bytes: Option<u64>,
    /// One that is so long is, too.
    pub time: Option<Duration>,
    /// Of more the oldest are removed.
    pub chunks_max: Option<u64>,
}

/// Everything that can be chosen about a recording.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// Directory to be made; it must not exist, or be empty.
    pub output: PathBuf,
    /// Where areas live; `None`: `LATERALIS_DIR`, else the user's default.
    pub area_dir: Option<PathBuf>,
    /// Bytes of a ring.
    pub buffer_bytes: u64,
    /// Bytes of a packet.
    pub packet_bytes: u64,
    /// Bytes of all rings of one area together.
    pub cap_bytes: u64,
    /// What happens when all packets of a ring are full. In overwrite mode the rings are read
    /// when the recording ends, not before: the newest events win.
    pub mode: RingMode,
    /// Events to record.
    pub enable: Patterns,
    /// Events that are recorded only if their fields say so; one filter for an event at most.
    pub filters: Vec<Filter>,
    /// Which programs are recorded, and what of each differs from all this; `None`: all of the
    /// command, or those attached to, alike.
    pub policies: Option<Policies>,
    /// Start and stop conditions.
    pub trigger: Option<TriggerOptions>,
    /// Metadata text.
    pub ctf_version: CtfVersion,
    /// Longest time between two looks at the rings.
    pub drain_period: Duration,
    /// Time after which events of open packets are written too.
    pub flush_period: Duration,
    /// Time between two progress reports.
    pub progress_period: Duration,
    /// Most bytes of stream files; then the recording ends.
    pub max_disk_bytes: Option<u64>,
    /// Longest recording.
    pub duration: Option<Duration>,
    /// End only when all processes of the session have ended, not already with the command.
    pub follow: bool,
    /// One area with one set of rings for all programs of the command, instead of one for each.
    /// A program that cannot use it makes one of its own. Only for [`launch`].
    ///
    /// [`launch`]: crate::linux::Session::launch
    pub shared: bool,
    /// Clients get what the directory gets.
    pub live: Option<LiveOptions>,
    /// Keep stream files. Without them only live clients get packets.
    pub keep_streams: bool,
    /// Windows of time are kept, each a recording of its own in the directory.
    pub keep: Option<KeepOptions>,
    /// Conditions, and what is done when they fire.
    pub rules: Vec<Rule>,
    /// Longest time that a command may take which is run when a condition fires.
    pub command_time_max: Duration,
    /// The recording is made in pieces.
    pub chunks: Option<ChunkOptions>,
}
/// Bytes of a ring where the user does not say how many.
pub(crate) const DEFAULT_BUFFER_BYTES: u64 = 4 << 20;

/// Whether rings of this size begin with a part of their memory. Larger ones were asked for, by a user
/// who knows of bursts: they are there before the first of them, however busy the recorder is.
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

/// How a recording is going.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Events of schemas written so far; exact.
    pub events: u64,
    /// Of them per second, since the last report.
    pub events_per_s: f64,
    /// Bytes of stream files so far.
    pub bytes: u64,
    /// Lost events so far, all causes; exact as of the last look at the rings.
    pub lost: u64,
    /// Processes seen so far.
    pub processes: u64,
    /// The tracing is stopped for now.
    pub paused: bool,
}
