// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of recording: what, where, what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

use lateralis_ring::small::SmallAreaError;
use lateralis_ring::{AreaHeaderError, GeometryError};

use crate::pattern::PatternError;

/// A failure to record, recover or control.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An operation on a file failed.
    File {
        /// The attempted action, lower case.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// Another system operation failed.
    System {
        /// The attempted action, lower case.
        action: &'static str,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The output directory is not empty.
    OutputExists(PathBuf),
    /// The directory of the recording belongs to another user.
    OutputOfAnother {
        /// The directory.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
    },
    /// The directory of areas belongs to another user, or others can write it.
    AreaDirectory {
        /// The directory.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
    },
    /// The command could not be started.
    Launch {
        /// Its first word.
        command: String,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// There is no command to launch.
    NoCommand,
    /// No area matches this process or name.
    NotTraceable {
        /// The target as given.
        target: String,
        /// Directory that was searched for areas.
        area_dir: PathBuf,
    },
    /// Several areas match.
    Ambiguous {
        /// The target as given.
        target: String,
        /// The candidates' process ids.
        pids: Vec<u32>,
    },
    /// The file is not an area, or has another version.
    Area {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: AreaHeaderError,
    },
    /// The area's rings cannot be used or created.
    Rings {
        /// The area.
        path: PathBuf,
        /// The reason.
        cause: GeometryError,
    },
    /// Not enough memory or space for the rings.
    NoSpaceForRings {
        /// The area.
        path: PathBuf,
        /// Number of bytes requested.
        bytes: u64,
    },
    /// Another recorder is recording this program.
    AlreadyRecorded {
        /// The area.
        path: PathBuf,
        /// Process id of that recorder.
        recorder_pid: u32,
    },
    /// The program is not being recorded.
    NotRecorded {
        /// The target as given.
        target: String,
    },
    /// The recorder does not respond.
    NoAnswer {
        /// Its process id.
        recorder_pid: u32,
    },
    /// The recorder rejected the request.
    Refused(String),
    /// A source cannot examine a program; contains the source's message.
    Source(String),
    /// A pattern is malformed.
    Pattern(PatternError),
    /// A trigger names an event that no schema has.
    NoSuchEvent(String),
    /// The file contains nothing recoverable.
    NothingToRecover(PathBuf),
    /// The area of a program without an operating system is damaged.
    SmallArea {
        /// The file.
        path: PathBuf,
        /// Offset of the area in it.
        offset: u64,
        /// The reason.
        cause: SmallAreaError,
    },
    /// The file contains no schema text for its events.
    NoSchemaText {
        /// The file.
        path: PathBuf,
        /// What is missing, and what to do.
        reason: String,
    },
    /// A given file is neither a schema nor a program.
    NotAProgram(PathBuf),
    /// There is no network interface of this name.
    NoSuchInterface {
        /// The name as given.
        name: String,
        /// Names of the existing interfaces.
        known: Vec<String>,
    },
    /// Listening on or connecting to an address failed.
    Address {
        /// The attempted action, lower case.
        action: &'static str,
        /// The address.
        address: String,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The address is reachable from other machines, and the token is missing or too short.
    NeedsToken(String),
    /// The address is on another machine, and no option specifies how to authenticate it.
    NeedsTrust(String),
    /// The peer of a live stream refuses, sends nothing, or sends another recording.
    Live {
        /// Its address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// A serial line cannot be opened, or no valid data arrives on it.
    Line {
        /// The line.
        place: String,
        /// Error of the operating system, or a description of what is missing.
        cause: io::Error,
    },
    /// A program's clock cannot be related to the others'.
    Clock {
        /// The area.
        path: PathBuf,
        /// Its clock kind.
        clock_kind: u32,
    },
}

impl Error {
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>, cause: io::Error) -> Error {
        Error::File { action, path: path.into(), cause }
    }

    /// What the user can do about it; empty if the message is sufficient.
    pub fn advice(&self) -> String {
        match self {
            Error::File { cause, .. } | Error::System { cause, .. } => match cause.kind() {
                io::ErrorKind::PermissionDenied => {
                    "use an account that may, or another place".to_owned()
                }
                io::ErrorKind::StorageFull => "free some space, or choose another place".to_owned(),
                io::ErrorKind::NotFound => "check the name".to_owned(),
                _ => String::new(),
            },
            Error::OutputExists(_) => "choose another name with -o, or remove it".to_owned(),
            Error::OutputOfAnother { .. } => {
                "choose another name with -o, in a folder of your own".to_owned()
            }
            Error::AreaDirectory { .. } => {
                "remove it, or set LATERALIS_DIR to a directory of your own with mode 0700"
                    .to_owned()
            }
            Error::Launch { cause, .. } => match cause.kind() {
                io::ErrorKind::NotFound => "check the name, and that it is in PATH".to_owned(),
                io::ErrorKind::PermissionDenied => "check that it is executable".to_owned(),
                _ => String::new(),
            },
            Error::NoCommand => "write the command after --".to_owned(),
            Error::NotTraceable { .. } => "it must be running, of the same user, and linked with \
                 liblateralis or started by `lat record --with`; `lat list` shows what is there"
                .to_owned(),
            Error::Ambiguous { pids, .. } => format!("choose one by its process id: {pids:?}"),
            Error::Area { cause: AreaHeaderError::Version { .. }, .. } => {
                "use the tool of the same version as the traced program's library".to_owned()
            }
            Error::Area { .. } => {
                "check that it is an area file, a core dump or a memory image".to_owned()
            }
            Error::Rings { .. } => "ask for smaller buffers, or restart the program".to_owned(),
            Error::NoSpaceForRings { .. } => {
                "ask for smaller buffers, or make room where areas live".to_owned()
            }
            Error::AlreadyRecorded { .. } => "end the other recording first".to_owned(),
            Error::NotRecorded { .. } => "`lat record --attach PID` records it".to_owned(),
            Error::NoAnswer { .. } => "check that it is still running".to_owned(),
            Error::NoSuchEvent(_) => "`lat list` shows the events of each program".to_owned(),
            Error::NothingToRecover(_) => {
                "areas are looked for by their magic words; the rings' pages must be in the file"
                    .to_owned()
            }
            Error::SmallArea { .. } => "dump all of the memory that the area is in".to_owned(),
            Error::NoSchemaText { .. } => "of another build it has another hash".to_owned(),
            Error::NotAProgram(_) => {
                "--elf takes the ELF file that the machine was running".to_owned()
            }
            Error::NoSuchInterface { known, .. } => {
                format!("there are: {}; `any` means all", known.join(" "))
            }
            Error::Line { cause, .. } => match cause.kind() {
                io::ErrorKind::PermissionDenied => {
                    "use an account that may read it: often the group `dialout`".to_owned()
                }
                io::ErrorKind::NotFound => "check the name, and that it is plugged in".to_owned(),
                io::ErrorKind::ConnectionRefused => {
                    "check that something listens there: QEMU with -serial tcp:HOST:PORT,server,nowait"
                        .to_owned()
                }
                io::ErrorKind::InvalidData => {
                    "check that the program sends by lat_serial_send, and --baud".to_owned()
                }
                _ => "write it as DEVICE, tcp:HOST:PORT or unix:PATH".to_owned(),
            },
            Error::Clock { .. } => "record this program alone".to_owned(),
            Error::Address { cause, .. } => match cause.kind() {
                io::ErrorKind::AddrInUse => "choose another port, or 0 for any".to_owned(),
                io::ErrorKind::ConnectionRefused => {
                    "check that it is recorded live there".to_owned()
                }
                io::ErrorKind::PermissionDenied => "choose a port from 1024 on".to_owned(),
                _ => "write it as HOST:PORT".to_owned(),
            },
            Error::NeedsToken(_) => {
                "give one of 16 characters or more with --token, to clients as \
                 well. Or listen on 127.0.0.1, and `ssh HOST lat live - -- PROGRAM | lat record \
                 --connect - -o DIR`"
                    .to_owned()
            }
            Error::NeedsTrust(_) => {
                "give --fingerprint, which `lat live` prints there, or --tls-ca \
                 with the certificates that sign its own"
                    .to_owned()
            }
            Error::Live { .. } | Error::Refused(_) | Error::Source(_) | Error::Pattern(_) => {
                String::new()
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::File { action, path, cause } => {
                write!(f, "Cannot {action}: path={}, cause={cause}", path.display())
            }
            Error::System { action, cause } => write!(f, "Cannot {action}: cause={cause}"),
            Error::OutputExists(path) => {
                write!(f, "Cannot write recording: path={} exists", path.display())
            }
            Error::OutputOfAnother { path, owner } => write!(
                f,
                "Cannot write recording: path={} belongs to another user, owner={owner}",
                path.display()
            ),
            Error::AreaDirectory { path, owner } => write!(
                f,
                "Cannot trust area directory: path={}, owner={owner} is not a directory of this user alone",
                path.display()
            ),
            Error::Launch { command, cause } => {
                write!(f, "Cannot start command: command={command}, cause={cause}")
            }
            Error::NoCommand => write!(f, "Cannot record: no command given"),
            Error::NotTraceable { target, area_dir } => write!(
                f,
                "Cannot find a traceable program: target={target}, area-directory={}",
                area_dir.display()
            ),
            Error::Ambiguous { target, .. } => {
                write!(f, "Cannot choose a program: target={target} has several areas")
            }
            Error::Area { path, cause } => write!(f, "{cause}, path={}", path.display()),
            Error::Rings { path, cause } => write!(f, "{cause}, path={}", path.display()),
            Error::NoSpaceForRings { path, bytes } => {
                write!(f, "Cannot make rings: path={}, needed-bytes={bytes}", path.display())
            }
            Error::AlreadyRecorded { path, recorder_pid } => write!(
                f,
                "Cannot record: path={} has a recorder, recorder-pid={recorder_pid}",
                path.display()
            ),
            Error::NotRecorded { target } => {
                write!(f, "Cannot control recording: target={target} is not being recorded")
            }
            Error::NoAnswer { recorder_pid } => {
                write!(f, "Cannot reach recorder: recorder-pid={recorder_pid} does not answer")
            }
            Error::Refused(reason) => write!(f, "Cannot do that now: {reason}"),
            Error::Source(sentence) => f.write_str(sentence),
            Error::Pattern(error) => error.fmt(f),
            Error::NoSuchEvent(name) => write!(f, "Cannot find event: event={name}"),
            Error::NothingToRecover(path) => {
                write!(f, "Cannot recover: path={} holds no area", path.display())
            }
            Error::SmallArea { path, offset, cause } => write!(
                f,
                "Cannot recover small area: path={}, offset={offset:#x}, cause={cause}",
                path.display()
            ),
            Error::NoSchemaText { path, reason } => {
                write!(f, "Cannot read small area: path={}, cause={reason}", path.display())
            }
            Error::NotAProgram(path) => {
                write!(f, "Cannot read program: path={} is no ELF file", path.display())
            }
            Error::NoSuchInterface { name, .. } => {
                write!(f, "Cannot find network interface: interface={name}")
            }
            Error::Address { action, address, cause } => {
                write!(f, "Cannot {action}: address={address}, cause={cause}")
            }
            Error::NeedsToken(address) => {
                write!(f, "Cannot listen without a token: address={address} is open to others")
            }
            Error::NeedsTrust(address) => {
                write!(f, "Cannot connect without encryption: address={address} is elsewhere")
            }
            Error::Live { address, reason } => {
                write!(f, "Cannot receive: address={address}, reason={reason}")
            }
            Error::Line { place, cause } => {
                write!(f, "Cannot read serial line: line={place}, cause={cause}")
            }
            Error::Clock { path, clock_kind } => {
                write!(f, "Cannot join clocks: path={}, clock-kind={clock_kind}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File { cause, .. }
            | Error::System { cause, .. }
            | Error::Address { cause, .. }
            | Error::Line { cause, .. }
            | Error::Launch { cause, .. } => Some(cause),
            Error::Area { cause, .. } => Some(cause),
            Error::Rings { cause, .. } => Some(cause),
            Error::Pattern(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<PatternError> for Error {
    fn from(error: PatternError) -> Error {
        Error::Pattern(error)
    }
}
