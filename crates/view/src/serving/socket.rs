// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One page: requests come by its WebSocket, answers go.

use std::io::{self, Cursor, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;

use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

use super::pushing::Pushing;
use super::visits::Visit;
use super::waiting::{Request, Taken, Waiting};
use crate::answer::{Answer, Frame, Problem, frame};
use crate::host::Host;
use crate::methods;
use crate::scripts::Watch;
use crate::session::lock;

/// Bytes of a request at most: the longest are scripts and notes.
const REQUEST_MAX: usize = 4 << 20;

/// Threads that answer slow requests of one page, each of another kind, so that none waits for all others.
const SLOW_WORKERS: usize = 3;

/// A half of a connection. Both halves write whole frames, one at a time: the one that reads
/// answers pings.
struct Half {
    stream: TcpStream,
    before: Cursor<Vec<u8>>,
    out: Arc<Mutex<TcpStream>>,
}

impl Read for Half {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.before.read(into)? {
            0 => self.stream.read(into),
            count => Ok(count),
        }
    }
}

impl Write for Half {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // All or nothing, so that frames of the other half do not come in between.
        lock(&self.out).write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Serves a page until it goes, or stops reading its answers.
///
/// # Errors
/// Those of the connection.
pub fn serve(
    mut stream: TcpStream,
    key: &str,
    before: Vec<u8>,
    host: &Arc<Host>,
    visit: &Visit,
) -> io::Result<()> {
    let accept = derive_accept_key(key.as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    // A page may be silent for hours.
    stream.set_read_timeout(None)?;
    let out = Arc::new(Mutex::new(stream.try_clone()?));
    let half = |before: Vec<u8>| -> io::Result<WebSocket<Half>> {
        let mut config = WebSocketConfig::default();
        config.max_message_size = Some(REQUEST_MAX);
        config.max_frame_size = Some(REQUEST_MAX);
        // Each message goes at once.
        config.write_buffer_size = 0;
        let half = Half {
            stream: stream.try_clone()?,
            before: Cursor::new(before),
            out: Arc::clone(&out),
        };
        Ok(WebSocket::from_raw_socket(half, Role::Server, Some(config)))
    };
    let mut reader = half(before)?;
    let writer = Mutex::new(half(Vec::new())?);
    let (quick, slow) = (Waiting::default(), Waiting::default());
    let scripts = PageScripts::default();
    let pushing = Pushing::default();
    let close = || {
        quick.close();
        slow.close();
        scripts.watch.end();
        let _ = stream.shutdown(Shutdown::Both);
    };
    // What takes its time says nothing of how often the page can be told of growth.
    let is_answered = |waiting: &Waiting| {
        if std::ptr::eq(waiting, &quick) {
            pushing.is_answered(1);
        }
    };
    let work = |waiting: &Waiting| {
        while let Some(taken) = waiting.pop() {
            let Some(answer) = answer(host, &taken, waiting, (&pushing, &scripts)) else { break };
            let is_replaced = waiting.replaces(&taken.request);
            if is_replaced {
                waiting.done(&taken);
                is_answered(waiting);
                continue;
            }
            let message = match answer {
                Frame::Text(text) => Message::text(text),
                Frame::Binary(bytes) => Message::binary(bytes),
            };
            if lock(&writer).send(message).is_err() {
                close();
            }
            waiting.done(&taken);
            is_answered(waiting);
        }
    };
    thread::scope(|scope| {
        let queues = std::iter::once(&quick).chain(std::iter::repeat_n(&slow, SLOW_WORKERS));
        let begin = |waiting| {
            let worker = thread::Builder::new().name("view".into());
            worker.spawn_scoped(scope, move || work(waiting))
        };
        let workers: Vec<_> = queues.map(begin).collect();
        let push = || {
            let is_over = || quick.is_closed();
            let mut send = |text: String| lock(&writer).send(Message::text(text)).is_ok();
            if !pushing.run(host, &is_over, &mut send) {
                close();
            }
        };
        let pusher = thread::Builder::new().name("view-push".into()).spawn_scoped(scope, push);
        // Ends by an error, also where the page closes the connection.
        while workers.iter().all(Result::is_ok)
            && pusher.is_ok()
            && let Ok(message) = reader.read()
        {
            visit.speaks();
            let Message::Text(text) = message else { continue };
            let Some(request) = Request::parse(&text) else { continue };
            if methods::is_quick(&request.method, &request.params) {
                pushing.asks();
                pushing.is_answered(quick.push(request));
            } else {
                slow.push(request);
            }
        }
        close();
    });
    scripts.leave(host);
    Ok(())
}

/// What the scripts of one page cost, until it goes.
#[derive(Default)]
struct PageScripts {
    /// Of the one that runs for the first time.
    watch: Watch,
    ids: Mutex<Vec<u32>>,
}

impl PageScripts {
    fn leave(&self, host: &Host) {
        let ids = std::mem::take(&mut *lock(&self.ids));
        if let (false, Some(Ok(session))) = (ids.is_empty(), host.session(&|| true)) {
            let scripts = &session.common.scripts;
            session.sides.left(&ids, &scripts.all());
            scripts.leave(&ids);
        }
    }
}

/// The frame that answers; a fault of ours is one, too, and ends nothing else. `None`: nobody wants
/// it any more, and there is nothing to be shown yet.
fn answer(
    host: &Arc<Host>,
    taken: &Taken,
    waiting: &Waiting,
    (pushing, scripts): (&Pushing, &PageScripts),
) -> Option<Frame> {
    let Request { id, method, params } = &taken.request;
    let session = match host.session(&|| waiting.is_closed())? {
        Ok(session) => session,
        Err(problem) => return Some(frame(*id, Err(problem))),
    };
    let is_cancelled = || taken.is_cancelled();
    let ask = || methods::answer_page(&session, method, params, &scripts.watch, &is_cancelled);
    let answered = catch_unwind(AssertUnwindSafe(ask));
    if let ("script", Ok(Ok(Answer::Json(told)))) = (method.as_str(), &answered)
        && params.get("side").is_none_or(serde_json::Value::is_null)
    {
        let id = told["script"].as_u64().and_then(|id| u32::try_from(id).ok());
        lock(&scripts.ids).extend(id);
    }
    if method == "open" {
        pushing.opened(&session);
    }
    let fault = || {
        let advice = "this is a fault of lat view: please report it, with what you did";
        Err(Problem::new("cannot answer", method.as_str(), advice))
    };
    Some(frame(*id, answered.unwrap_or_else(|_| fault())))
}
