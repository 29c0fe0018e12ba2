// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat record --connect`: receives a recording from another machine into a local folder.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lateralis_recorder::linux::live::bfscope::Dumps;
use lateralis_recorder::linux::live::{
    ReceiveFrom, ReceiveOptions, ReceiveProgress, ReceiveSummary, receive,
};
use serde_json::json;

use crate::commands::record::{RecordArgs, free_name};
use crate::commands::recording_summary::{self, quoted};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use crate::status_line::StatusLine;
use crate::values;

/// Prefix of the address of a bfscope.
const BFSCOPE: &str = "bfscope://";
/// Interval between checks of the time limit.
const LOOK: Duration = Duration::from_millis(200);

/// Receives until the recording ends.
pub fn run(args: &RecordArgs, from: &str) -> Result<ExitStatus, CliError> {
    if !args.command.is_empty() {
        let advice = "the program runs where it is recorded: leave it out here";
        return Err(CliError::new("cannot receive and record", from, advice));
    }
    if let Some(address) = from.strip_prefix(BFSCOPE) {
        return dumps(args, address);
    }
    let from = match from {
        "-" => ReceiveFrom::StandardInput,
        address => ReceiveFrom::Tcp(address.to_owned()),
    };
    let output = args.output.clone().unwrap_or_else(|| free_name("received"));
    let options = ReceiveOptions {
        from,
        output: output.clone(),
        token: args.peer.token.clone(),
        trust: args.peer.trust(),
        retry: args.retry,
        duration: args.duration,
        flush_every: None,
        max_disk_bytes: args.max_size,
        stop: Arc::default(),
    };
    let mut line = StatusLine::new(args.quiet || args.json);
    let summary = receive(options, &mut |now| line.show(&progress(now)))?;
    line.clear();
    print(args, &output, &summary)?;
    let fine = summary.report.complete && summary.progress.dropped.packets == 0;
    Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn progress(now: &ReceiveProgress) -> String {
    format!(
        "receiving {:.0} s  {}  {}  {} dropped{}",
        now.elapsed.as_secs_f64(),
        values::counted(now.packets, "packet"),
        values::bytes(now.bytes),
        values::count(now.dropped.packets),
        if now.connected { "" } else { "  not connected" },
    )
}

fn print(args: &RecordArgs, output: &Path, summary: &ReceiveSummary) -> Result<(), CliError> {
    let report = &summary.report;
    if args.json {
        let mut value = recording_summary::json(output, report);
        value["complete"] = json!(report.complete);
        value["received"] = json!(report.received);
        return output::print_json_line(&value);
    }
    if args.quiet {
        return Ok(());
    }
    let progress = &summary.progress;
    let mut text = if report.complete {
        // Packets dropped by the server have a line of their own below, and were not overwritten.
        let mut others = report.clone();
        let packets = &mut others.totals.lost_packets;
        *packets = packets.saturating_sub(progress.dropped.packets);
        recording_summary::facts(output, &others)
    } else {
        // The last report received is older than the last packets.
        let mut text = Page::new();
        line!(
            text,
            "received  {}, {} in {}: {}",
            values::counted(progress.packets, "packet"),
            values::bytes(progress.bytes),
            values::time(u64::try_from(progress.elapsed.as_nanos()).unwrap_or(u64::MAX)),
            output.display(),
        );
        report.problems.iter().for_each(|problem| line!(text, "problem   {problem}"));
        text
    };
    if progress.dropped.packets > 0 {
        let all = report.received.iter().flat_map(|received| &received.dropped_of);
        let events = match all.map(|one| one.count.events).sum::<Option<u64>>() {
            Some(events) => values::counted(events, "event"),
            None => "nobody knows how many events".to_owned(),
        };
        let packets = values::counted(progress.dropped.packets, "packet");
        line!(text, "dropped   {packets} by the server, {events}: this side was too slow");
    }
    let clock = report.received.as_ref().and_then(|received| received.clock);
    if let Some(clock) = clock {
        line!(
            text,
            "clock     theirs is {} ns ahead of ours, ± {} ns",
            clock.offset_ns,
            clock.error_ns
        );
    }
    let next = if report.complete {
        format!("lat stats {}", quoted(&output.to_string_lossy()))
    } else {
        format!("what is here is made whole by lat recover {}", quoted(&output.to_string_lossy()))
    };
    line!(text, "next      {next}");
    output::tell(&text);
    Ok(())
}

/// Receives dumps of a bfscope and stores them as text.
fn dumps(args: &RecordArgs, address: &str) -> Result<ExitStatus, CliError> {
    let path = args.output.clone().unwrap_or_else(|| free_name("bfscope").with_extension("trc"));
    let error = |cause: io::Error| {
        let advice = format!("{cause}: write it as {BFSCOPE}HOST:PORT, usually port 6666 or 666");
        CliError::new("cannot connect", address, advice)
    };
    let mut stream = TcpStream::connect(address).map_err(error)?;
    stream.set_read_timeout(Some(LOOK)).map_err(error)?;
    let at = |cause: io::Error| CliError::at_path("cannot write", &path, &cause);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(at)?;
    let mut line = StatusLine::new(args.quiet || args.json);
    let (began, mut bytes, mut dumps) = (Instant::now(), 0, Dumps::default());
    let mut buffer = vec![0; 64 << 10];
    loop {
        let over = args.duration.is_some_and(|most| began.elapsed() >= most);
        let full = args.max_size.is_some_and(|most| bytes >= most);
        let read = if over || full { Ok(0) } else { stream.read(&mut buffer) };
        match read {
            Ok(0) => break,
            Ok(read) => dumps.feed(&buffer[..read]),
            Err(cause) if is_later(&cause) => {}
            // Data received earlier is kept.
            Err(_) => break,
        }
        bytes += write(&mut file, &mut dumps).map_err(at)?;
        let count = values::counted(dumps.count(), "dump");
        line.show(&format!("receiving {count}  {}", values::bytes(bytes)));
    }
    dumps.end();
    bytes += write(&mut file, &mut dumps).map_err(at)?;
    line.clear();
    summary(args, &path, dumps.count(), bytes)?;
    Ok(if dumps.count() > 0 { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn is_later(cause: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(cause.kind(), Interrupted | TimedOut | WouldBlock)
}

fn write(file: &mut std::fs::File, dumps: &mut Dumps) -> io::Result<u64> {
    let text = dumps.take();
    file.write_all(&text)?;
    Ok(text.len() as u64)
}

fn summary(args: &RecordArgs, path: &PathBuf, dumps: u64, bytes: u64) -> Result<(), CliError> {
    if args.json {
        let value = json!({ "output": path, "dumps": dumps, "bytes": bytes });
        return output::print_json_line(&value);
    }
    if !args.quiet {
        let (dumps, bytes) = (values::counted(dumps, "dump"), values::bytes(bytes));
        tell!("received  {dumps}, {bytes}: {}", path.display());
        tell!("next      lat stats {}", path.display());
    }
    Ok(())
}
