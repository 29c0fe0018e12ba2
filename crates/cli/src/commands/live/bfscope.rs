// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dumps as Barrelfish's bfscope sends them: at each flush, to the client if there is one, else
//! to the console, else into a file.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use lateralis_recorder::Report;
use lateralis_recorder::linux::live::bfscope::{DUMP_BYTES_MAX, length_prefix};
use lateralis_recorder::linux::live::{Follower, Item};
use lateralis_recorder::linux::{Session, area_dir};
use lateralis_store::Recording;
use lateralis_traces::{OpenOptions as TraceOptions, Options, Target, convert_into};

use super::{LiveArgs, definitions};
use crate::commands::record;
use crate::error::CliError;
use crate::inputs::HintArgs;

/// Bytes of packets that are dumped without waiting for the next flush.
const GATHERED_MAX: usize = 64 << 20;
/// Time that a client has for one dump.
const CLIENT_TIME: Duration = Duration::from_secs(5);

/// The thread that makes dumps.
pub struct Scope(JoinHandle<Result<(), CliError>>);

impl Scope {
    /// Waits until the last dump is made.
    ///
    /// Errors: a dump could not be written into its file.
    pub fn join(self) -> Result<(), CliError> {
        let ended = self.0.join();
        ended.unwrap_or_else(|_| Err(CliError::new("dumps ended", "bfscope", "report this")))
    }
}

/// Begins to listen. Only this machine can connect: there is no token in bfscope's protocol.
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
        memory: 1 << 30,
    };
    let follower = session
        .follow()
        .ok_or_else(|| CliError::new("cannot follow the recording", "bfscope", ""))?;
    let scope = Bfscope {
        follower,
        listener,
        client: None,
        elsewhere: match &args.dump {
            Some(file) => Elsewhere::File(file.clone()),
            None if io::stdout().is_terminal() => Elsewhere::Console,
            None => Elsewhere::File(file),
        },
        definitions: hints.definitions()?,
        folder: area_dir(None).join(format!("bfscope-{}", std::process::id())),
        metadata: None,
        report: None,
        names: BTreeMap::new(),
        gathered: BTreeMap::new(),
        gathered_bytes: 0,
        dropped: 0,
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
    listener: TcpListener,
    client: Option<TcpStream>,
    elsewhere: Elsewhere,
    definitions: Option<(String, Vec<u8>)>,
    /// Where the packets of one dump are put to be read as a trace.
    folder: PathBuf,
    metadata: Option<Arc<[u8]>>,
    report: Option<Report>,
    names: BTreeMap<u32, String>,
    /// Packets since the last dump, by stream.
    gathered: BTreeMap<u32, Vec<u8>>,
    gathered_bytes: usize,
    /// Packets that came too fast.
    dropped: u64,
    quiet: bool,
    told: String,
}

impl Bfscope {
    fn run(mut self) -> Result<(), CliError> {
        let ended = self.follow();
        let _ = fs::remove_dir_all(&self.folder);
        ended
    }

    fn follow(&mut self) -> Result<(), CliError> {
        loop {
            match self.follower.next(Duration::from_millis(100)) {
                None => self.look_for_client(),
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
                    if self.gathered_bytes >= GATHERED_MAX {
                        self.dump()?;
                    }
                }
                Some(Item::Dropped { count, .. }) => self.dropped += count.packets,
                Some(Item::Flushed { .. }) => self.dump()?,
                Some(Item::Behind(_)) => {}
                Some(Item::End) => return self.dump(),
            }
        }
    }

    /// What was gathered becomes text, and goes to where it is wanted.
    fn dump(&mut self) -> Result<(), CliError> {
        let gathered = std::mem::take(&mut self.gathered);
        self.gathered_bytes = 0;
        if gathered.is_empty() && self.dropped == 0 {
            return Ok(());
        }
        let text = self.text(&gathered)?;
        self.look_for_client();
        if let Some(client) = &mut self.client {
            match send(client, &text) {
                Ok(()) => return Ok(()),
                Err(cause) => {
                    self.client = None;
                    self.tell(format!("the client is gone ({cause}): dumps go elsewhere"));
                }
            }
        }
        match &self.elsewhere {
            Elsewhere::Console => {
                let mut out = io::stdout().lock();
                Ok(out.write_all(&text).and_then(|()| out.flush())?)
            }
            Elsewhere::File(path) => {
                let path = path.clone();
                let file = OpenOptions::new().create(true).append(true).open(&path);
                file.and_then(|mut file| file.write_all(&text))
                    .map_err(|cause| CliError::at_path("cannot write dumps", &path, &cause))?;
                self.tell(format!("nobody is connected: dumps go to {}", path.display()));
                Ok(())
            }
        }
    }

    /// On standard error, what was not said last.
    fn tell(&mut self, sentence: String) {
        if !self.quiet && self.told != sentence {
            tell!("bfscope: {sentence}");
            self.told = sentence;
        }
    }

    /// Takes the next client if there is none, and forgets one that is gone. What it says is
    /// read and ignored, as bfscope does.
    fn look_for_client(&mut self) {
        if let Some(client) = &mut self.client {
            let mut word = [0; 256];
            let _ = client.set_nonblocking(true);
            let gone = match client.read(&mut word) {
                Ok(bytes) => bytes == 0,
                Err(error) => error.kind() != io::ErrorKind::WouldBlock,
            };
            let _ = client.set_nonblocking(false);
            if !gone {
                return;
            }
            self.client = None;
        }
        self.client = self.listener.accept().ok().map(|(client, _)| client);
    }

    /// The packets as a dump.
    fn text(&mut self, gathered: &BTreeMap<u32, Vec<u8>>) -> Result<Vec<u8>, CliError> {
        let mut text = Vec::new();
        if let (Some(metadata), false) = (&self.metadata, gathered.is_empty()) {
            let at = |cause: io::Error| CliError::at_path("cannot write", &self.folder, &cause);
            let _ = fs::remove_dir_all(&self.folder);
            fs::create_dir_all(&self.folder).map_err(at)?;
            fs::write(self.folder.join("metadata"), metadata).map_err(at)?;
            for (stream, bytes) in gathered {
                let name = self.names.get(stream).map_or("stream", String::as_str);
                fs::write(self.folder.join(name), bytes).map_err(at)?;
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
        let paths = [self.folder.clone()];
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

/// Each dump behind its length; one that is longer than eight digits can tell comes in several.
fn send(client: &mut TcpStream, text: &[u8]) -> io::Result<()> {
    client.set_write_timeout(Some(CLIENT_TIME))?;
    for part in text.chunks(DUMP_BYTES_MAX) {
        client.write_all(&length_prefix(part.len()))?;
        client.write_all(part)?;
    }
    client.flush()
}
