// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dumps in the form of Barrelfish's bfscope. At each flush they are sent to the client if there is one, else
//! to the console, else to a file.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use lateralis_files::{TemporaryFolder, create_folder};
use lateralis_model::terminal::Style;
use lateralis_recorder::Report;
use lateralis_recorder::linux::Session;
use lateralis_recorder::linux::live::{Follower, Item};
use lateralis_store::Recording;
use lateralis_traces::{OpenOptions as TraceOptions, Options, Target, convert_into};

use super::bfscope_clients::{Clients, Dump};
use super::{LiveArgs, definitions};
use crate::commands::record;
use crate::error::CliError;
use crate::inputs::HintArgs;
use crate::output;

/// Number of packet bytes that are dumped without waiting for the next flush.
const GATHERED_MAX: usize = 64 << 20;
/// `O_NOFOLLOW`: dumps are not written through a symbolic link.
const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
/// Time after which a client that receives nothing is disconnected.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same time after the recording has ended.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// Poll interval for clients when idle, and while a client has data waiting.
const LOOK: Duration = Duration::from_millis(100);
const SOON: Duration = Duration::from_millis(5);

/// The thread that writes dumps.
pub struct Scope(JoinHandle<Result<(), CliError>>);

impl Scope {
    /// Waits until the last dump is written.
    ///
    /// Errors: a dump could not be written to its file.
    pub fn join(self) -> Result<(), CliError> {
        let ended = self.0.join();
        ended.unwrap_or_else(|_| Err(CliError::new("dumps ended", "bfscope", "report this")))
    }
}

/// Starts listening. Only local programs can connect, because bfscope's protocol has no token.
pub fn start(args: &LiveArgs, port: u16, session: &Session) -> Result<Scope, CliError> {
    let place = format!("127.0.0.1:{port}");
    let error = |cause: io::Error| {
        CliError::new("cannot listen", &place, format!("{cause}: choose another port"))
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(error)?;
    listener.set_nonblocking(true).map_err(error)?;
    let address = listener.local_addr().map_err(error)?;
    if !args.record.quiet {
        tell!("bfscope on {address}: nc {} {}", address.ip(), address.port());
    }
    let name = record::program_name(args.record.command.first());
    let file = record::free_name(&name).with_extension("trc");
    let hints = HintArgs {
        as_format: None,
        frequency: None,
        definitions: args.definitions.clone(),
        memory: Some(1 << 30),
    };
    let follower = session
        .follow()
        .ok_or_else(|| CliError::new("cannot follow the recording", "bfscope", ""))?;
    let scope = Bfscope {
        follower,
        clients: Clients::new(listener),
        elsewhere: match &args.dump {
            Some(file) => Elsewhere::File(file.clone()),
            None if output::is_terminal() => Elsewhere::Console,
            None => Elsewhere::File(file),
        },
        definitions: hints.definitions()?,
        folder: TemporaryFolder::new("lat-bfscope-").map_err(|cause| {
            CliError::at_path("cannot make a folder", &std::env::temp_dir(), &cause)
        })?,
        metadata: None,
        report: None,
        names: BTreeMap::new(),
        gathered: BTreeMap::new(),
        gathered_bytes: 0,
        gathered_packets: 0,
        dropped: 0,
        is_named: args.dump.is_some(),
        has_dumped: false,
        quiet: args.record.quiet,
        told: String::new(),
    };
    let thread = std::thread::Builder::new().name("bfscope".into());
    let spawned = thread.spawn(move || scope.run());
    Ok(Scope(spawned.map_err(error)?))
}

enum Elsewhere {
    Console,
    File(PathBuf),
}

struct Bfscope {
    follower: Follower,
    clients: Clients,
    elsewhere: Elsewhere,
    definitions: Option<(String, Vec<u8>)>,
    /// Folder in which the packets of one dump are read as a trace.
    folder: TemporaryFolder,
    metadata: Option<Arc<[u8]>>,
    report: Option<Report>,
    names: BTreeMap<u32, String>,
    /// Packets since the last dump, by stream.
    gathered: BTreeMap<u32, Vec<u8>>,
    gathered_bytes: usize,
    gathered_packets: u64,
    /// Packets dropped because they came too fast.
    dropped: u64,
    /// Whether the dump file was named by the user.
    is_named: bool,
    /// Whether that file contains a dump.
    has_dumped: bool,
    quiet: bool,
    told: String,
}

impl Bfscope {
    fn run(mut self) -> Result<(), CliError> {
        self.follow()
    }

    fn follow(&mut self) -> Result<(), CliError> {
        loop {
            let time = if self.clients.has_waiting() { SOON } else { LOOK };
            let item = self.follower.next(time);
            if item.is_none() {
                self.clients.look();
            }
            self.send(PATIENCE)?;
            match item {
                None => {}
                Some(Item::Metadata(text)) => self.metadata = Some(text),
                Some(Item::Report(text)) => {
                    let text = String::from_utf8_lossy(&text);
                    self.report = Report::from_json(&text).ok().or(self.report.take());
                }
                Some(Item::Stream { stream, name, .. }) => {
                    self.names.insert(stream, name.as_ref().to_owned());
                }
                Some(Item::Packet { stream, bytes, .. }) => {
                    self.gathered.entry(stream).or_default().extend_from_slice(&bytes);
                    self.gathered_bytes += bytes.len();
                    self.gathered_packets += 1;
                    if self.gathered_bytes >= GATHERED_MAX {
                        self.dump()?;
                    }
                }
                Some(Item::Dropped { count, .. }) => self.dropped += count.packets,
                Some(Item::Flushed { .. }) => self.dump()?,
                Some(Item::Behind(_)) => {}
                Some(Item::End) => {
                    self.dump()?;
                    while self.clients.has_waiting() {
                        std::thread::sleep(SOON);
                        self.send(LAST_PATIENCE)?;
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Formats the gathered packets as text, and sends it to its destination.
    fn dump(&mut self) -> Result<(), CliError> {
        let gathered = std::mem::take(&mut self.gathered);
        self.gathered_bytes = 0;
        let packets = std::mem::take(&mut self.gathered_packets) + self.dropped;
        if gathered.is_empty() && self.dropped == 0 {
            return Ok(());
        }
        let text: Dump = self.text(&gathered)?.into();
        self.clients.look();
        self.send(PATIENCE)?;
        if self.clients.is_empty() {
            return self.put_elsewhere(&text);
        }
        self.clients.offer(&text, packets);
        self.send(PATIENCE)
    }

    /// Sends data to the clients that can receive it now.
    fn send(&mut self, patience: Duration) -> Result<(), CliError> {
        let (left, why) = self.clients.send(patience);
        if let Some(cause) = why {
            self.tell(format!("a client is gone ({cause})"));
        }
        left.iter().try_for_each(|text| self.put_elsewhere(text))
    }

    /// Writes a dump that no client received.
    fn put_elsewhere(&mut self, text: &[u8]) -> Result<(), CliError> {
        match &self.elsewhere {
            Elsewhere::Console => {
                let mut out = output::data(Style::Text);
                Ok(out.write_all(text).and_then(|()| out.flush())?)
            }
            Elsewhere::File(path) => {
                let path = path.clone();
                // A generated name was free at first: a file that exists before the first dump belongs to
                // another program.
                let is_first = !std::mem::replace(&mut self.has_dumped, true);
                let mut options = OpenOptions::new();
                let options = match self.is_named {
                    true => options.create(true),
                    false => options.create_new(is_first).custom_flags(NOFOLLOW),
                };
                let file = options.append(true).open(&path);
                file.and_then(|mut file| file.write_all(text))
                    .map_err(|cause| CliError::at_path("cannot write dumps", &path, &cause))?;
                self.tell(format!("nobody is connected: dumps go to {}", path.display()));
                Ok(())
            }
        }
    }

    /// Prints a sentence on standard error, unless it repeats the last one.
    fn tell(&mut self, sentence: String) {
        if !self.quiet && self.told != sentence {
            tell!("bfscope: {sentence}");
            self.told = sentence;
        }
    }

    /// Formats the packets as a dump.
    fn text(&mut self, gathered: &BTreeMap<u32, Vec<u8>>) -> Result<Vec<u8>, CliError> {
        let mut text = Vec::new();
        if let (Some(metadata), false) = (&self.metadata, gathered.is_empty()) {
            let folder = self.folder.path().join("dump");
            let at = |cause: io::Error| CliError::at_path("cannot write", &folder, &cause);
            let _ = fs::remove_dir_all(&folder);
            create_folder(&folder).map_err(at)?;
            fs::write(folder.join("metadata"), metadata).map_err(at)?;
            for (stream, bytes) in gathered {
                let name = self.names.get(stream).map_or("stream", String::as_str);
                fs::write(folder.join(name), bytes).map_err(at)?;
            }
            self.convert(&mut text)?;
        }
        if self.dropped > 0 {
            let dropped = std::mem::take(&mut self.dropped);
            text.extend(format!("# Lost packets {dropped}\n").bytes());
        }
        Ok(text)
    }

    fn convert(&self, text: &mut Vec<u8>) -> Result<(), CliError> {
        let paths = [self.folder.path().join("dump")];
        let recording = Recording::open_all(&paths, &TraceOptions::default())?;
        let own = || self.report.as_ref().map(definitions::of_report);
        let definitions = match &self.definitions {
            Some(given) => Some(given.clone()),
            None => own().map(|json| ("the recording's schemas".to_owned(), json)),
        };
        let options = Options { definitions, ..Options::default() };
        let name = Path::new("dump");
        convert_into(&recording.source, Target::Barrelfish, text, name, &options)
            .map_err(|error| CliError::new(error.to_string(), "", ""))?;
        Ok(())
    }
}
