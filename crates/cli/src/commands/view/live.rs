// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat view` of a recording in progress: a local one, or the live stream of another machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lateralis_recorder::linux::live::{LetGo, is_asked_to_end};
use lateralis_recorder::linux::{is_being_written, is_locked};
use lateralis_store::{Recording, Tail};
use lateralis_traces::OpenOptions;
use lateralis_units::Nanos;
use lateralis_view::sections::Sections;
use lateralis_view::{Control, Host, ImageSource, Live, LiveOptions, Opening};
use serde_json::json;

use super::control::Recorders;
use super::sections::StatsSections;
use super::{ViewArgs, index};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::following::{self, Follower, State};
use crate::live_copy::{CopyOptions, Link, LiveCopy, address};

/// Interval of recorder flushes and of reading its files: the latency of the view. Pages are updated each
/// time. With shorter intervals, all of it at a million events per second would keep two CPUs busy.
const PERIOD: Duration = Duration::from_millis(60);
/// Interval between checks for a request to end.
const LOOK: Duration = Duration::from_millis(100);

/// A recording in progress that is being followed.
pub struct Following {
    path: PathBuf,
    copy: Option<LiveCopy>,
    host: Arc<Host>,
    shown: Shown,
    is_quiet: bool,
    images: ImageSource,
}

/// The displayed state.
struct Shown {
    live: Live,
    let_go: Option<LetGo>,
    host: Arc<Host>,
    /// Connection state as pages know it, and the start of the current interruption.
    link: Link,
    since: Option<Instant>,
}

impl Following {
    /// Starts to follow if the argument is a recording in progress.
    ///
    /// Errors: no connection to the address, or it is refused; no space for a copy.
    pub fn begin(args: &ViewArgs, host: &Arc<Host>) -> Result<Option<Self>, CliError> {
        let traces = &args.inputs.traces;
        let options = CopyOptions { flush_every: Some(PERIOD), is_let_go: true };
        let copy = match address(traces) {
            Some(_) => LiveCopy::begin(traces, &args.peer, options)?,
            None => None,
        };
        let path = match (&copy, traces.as_slice()) {
            (Some(copy), _) => {
                while !copy.link().was_connected {
                    // Returns an error if the connection fails.
                    copy.state()?;
                    copy.wait(State::Busy, LOOK);
                }
                copy.path().to_owned()
            }
            (None, [path]) if goes_on(path) => path.clone(),
            _ => return Ok(None),
        };
        let is_here = copy.as_ref().is_none_or(LiveCopy::is_here);
        let memory_bytes = usize::try_from(args.window).unwrap_or(usize::MAX);
        let is_let_go = copy.is_some();
        let options = LiveOptions { memory_bytes, is_here, is_let_go, turn_events: None };
        // A user who may record on this machine may also control it from here. Listening on another address
        // would require trust in remote users.
        let control = (is_here && args.listen.is_loopback()).then(|| {
            let named = copy.is_none().then(|| path.clone());
            let path = named.unwrap_or_else(|| PathBuf::from("live"));
            Box::new(Recorders { path }) as Box<dyn Control>
        });
        let sections = Some(Arc::new(StatsSections) as Arc<dyn Sections>);
        let live = Live::asking(&path, options, Arc::clone(host), control, sections);
        let live = live.with_images(args.images()?);
        let shown = Shown {
            live,
            let_go: is_let_go.then(|| LetGo::new(&path)),
            host: Arc::clone(host),
            link: Link { connected: true, ..Link::default() },
            since: None,
        };
        let (images, is_quiet) = (args.images()?, args.json);
        Ok(Some(Self { path, copy, host: Arc::clone(host), shown, is_quiet, images }))
    }

    /// Follows the recording until it ends, and then continues to serve it.
    ///
    /// Errors: the recording cannot be followed, and nothing was shown yet.
    pub fn run(mut self) -> Result<ExitStatus, CliError> {
        let state = match following::follow(&self.path, self.copy.as_ref(), &mut self.shown) {
            // The session already shown stays.
            Err(_) if self.shown.live.has_begun() => State::Interrupted,
            // Its recorder was running at the start, and ended without writing a report.
            Err(_) if self.copy.is_none() && following::is_complete(&self.path).is_none() => {
                State::Interrupted
            }
            state => state?,
        };
        let is_complete = state == State::Complete;
        if !(self.copy.is_some() && is_asked_to_end()) {
            let why =
                (!is_complete).then(|| following::interrupted(&self.path, self.copy.as_ref()));
            self.shown.live.end(is_complete, why.as_deref());
            let is_whole = self.shown.let_go.as_ref().is_none_or(|let_go| !let_go.is_any());
            if is_complete && is_whole {
                self.replace();
            }
        }
        loop {
            // A copy must be removed on return; without one, the signal ends the process.
            if self.copy.is_some() && is_asked_to_end() {
                return Ok(ExitStatus::Fine);
            }
            sleep(LOOK);
        }
    }

    /// Replaces the live session: the recording is complete, and is indexed like any other trace. If that
    /// fails, the live session stays.
    fn replace(&self) {
        let opening = Opening::with_images(
            std::slice::from_ref(&self.path),
            &OpenOptions::default(),
            Some(self.images.clone()),
        );
        let opening = opening.ok().map(|of| of.with_sections(Some(Arc::new(StatsSections))));
        let session = opening.and_then(|of| index(of, &self.host, self.is_quiet).ok());
        if let Some(session) = session {
            self.host.show(Arc::new(session));
            self.host.say(json!({ "event": "replaced" }));
        }
    }
}

/// Whether the path is a Lateralis recording that is being written.
fn goes_on(path: &Path) -> bool {
    // A new recording has no report yet: then only a lock counts, because other traces have none.
    match following::is_complete(path) {
        Some(is_complete) => !is_complete && is_being_written(path),
        None => is_locked(path) && following::is_complete(path) != Some(true),
    }
}

impl Follower for Shown {
    fn tail(&mut self) -> &mut Tail {
        self.live.tail()
    }

    fn round(&mut self, recording: Recording, until: Option<Nanos>) -> Result<(), CliError> {
        self.live.round(&recording, until);
        if let (Some(let_go), Some(marks)) = (&mut self.let_go, self.live.needless()) {
            let_go.before(&marks);
        }
        Ok(())
    }

    fn wants_more(&self) -> bool {
        !(self.let_go.is_some() && is_asked_to_end())
    }

    fn pause(&mut self, live: Option<&LiveCopy>, state: State) {
        match live {
            Some(live) => {
                live.wait(state, PERIOD);
                self.tell(live.link());
            }
            None => sleep(PERIOD),
        }
    }
}

impl Shown {
    /// Notifies pages when the connection breaks or returns.
    fn tell(&mut self, link: Link) {
        if self.link.connected && !link.connected {
            self.since = Some(Instant::now());
            let why = "the connection to the recorder broke: it is tried again";
            self.host.say(json!({ "event": "disconnected", "why": why }));
        }
        let is_back = !self.link.connected && link.connected;
        let dropped = link.dropped.since(self.link.dropped);
        if is_back || dropped.packets > 0 {
            let seconds = self.since.take().map_or(0.0, |since| since.elapsed().as_secs_f64());
            self.host.say(json!({
                "event": "missed", "seconds": seconds, "packets": dropped.packets,
                "events": dropped.events,
            }));
        }
        self.link = link;
    }
}
