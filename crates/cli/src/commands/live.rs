// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat live`: a recording that others follow while it is made.

mod bfscope;
mod bfscope_clients;
mod definitions;

use std::path::{Path, PathBuf};

use clap::Args;
use lateralis_recorder::linux::{Session, make_area_dir};
use lateralis_recorder::report::Report;
use lateralis_recorder::{LiveAddress, LiveOptions, RecordOptions, TlsIdentity};
use serde_json::json;

use crate::colour::Role;
use crate::commands::record::{self, Mode, RecordArgs};
use crate::commands::recording_summary;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use crate::values;

/// Where a live recording is if nothing else is said.
pub const ADDRESS: &str = "127.0.0.1:6660";

/// Options of `lat live`.
#[derive(Debug, Args)]
#[command(
    override_usage = "lat live [OPTIONS] [ADDRESS] [--] [CMD]...",
    after_help = "Examples:
  lat live -- ./server                    no files here; another machine receives it:
  lat record --connect 127.0.0.1:6660 -o there
  lat live -o here -- ./server            files here as well; late clients get all of it
  ssh host lat live - -- ./server | lat record --connect - -o there
                                          over a pipe, encrypted by ssh
  lat live --bfscope -- ./server          text dumps as of Barrelfish's bfscope:
  nc 127.0.0.1 6666

Clients never block the recording or the program: a client that lags by more than --live-window
loses packets; the client and the report get the number per stream. An address that other machines
can reach needs --token and is encrypted; clients pass the printed fingerprint with --fingerprint.

With --bfscope, each flush sends a dump: every --flush-every, and on `lat flush`. It goes to the
client if one is connected, or else to the console, or else to the file of --dump."
)]
pub struct LiveArgs {
    /// HOST:PORT to listen on, or - for standard output [default: 127.0.0.1:6660]
    #[arg(value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Send dumps in the format of Barrelfish's bfscope to a client of this port
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "6666")]
    pub bfscope: Option<u16>,
    /// With --bfscope: file for dumps made while no client is connected [default: the console, or
    /// lateralis-PROGRAM.trc if there is none]
    #[arg(long, value_name = "FILE", requires = "bfscope")]
    pub dump: Option<PathBuf>,
    /// With --bfscope: event numbers, as a schema (.pleco) or its JSON [default: the schemas of the
    /// recorded programs]
    #[arg(long, value_name = "FILE", requires = "bfscope")]
    pub definitions: Option<PathBuf>,
    #[command(flatten)]
    pub record: RecordArgs,
}

/// Records for others.
pub fn run(args: LiveArgs) -> Result<ExitStatus, CliError> {
    if let Some(from) = &args.record.connect {
        let advice = "that is received, not recorded: lat record --connect";
        return Err(CliError::new("cannot record live", from, advice));
    }
    if let Some(line) = &args.record.serial {
        let advice = "the folder of lat record --serial may be looked at while it is recorded";
        return Err(CliError::new("cannot record live", line, advice));
    }
    refuse_overwriting(&args.record)?;
    let mut options = record::options(&args.record)?;
    if options.chunks.is_some() {
        let advice = "a live stream is one recording: leave it out";
        return Err(CliError::new("cannot record live in pieces", "--chunk-size", advice));
    }
    if args.record.output.is_none() {
        options.keep_streams = false;
        // Metadata and report only, where nobody else can put something.
        options.output = make_area_dir(None)?.join(format!("live-{}", std::process::id()));
    }
    let address = match (&args.address, args.bfscope) {
        (Some(address), _) => Some(address.as_str()),
        (None, Some(_)) => None,
        (None, None) => Some(ADDRESS),
    };
    options.live = Some(self::options(&args.record, address));
    let mut scope = None;
    let status = record::run_with(&args.record, options, &mut |record, session| {
        announce(record, session)?;
        if let Some(port) = args.bfscope {
            scope = Some(bfscope::start(&args, port, session)?);
        }
        Ok(())
    });
    match scope {
        // It ends with the recording; the last dump is on its way.
        Some(scope) => status.and_then(|status| scope.join().map(|()| status)),
        None => status,
    }
}

/// Rings that overwrite are read when the flight is over: clients would wait for nothing until then.
///
/// Errors: that is asked for.
pub fn refuse_overwriting(args: &RecordArgs) -> Result<(), CliError> {
    if args.mode != Mode::Overwrite {
        return Ok(());
    }
    let advice = "rings that overwrite are read at the end only, and live clients would get nothing \
                  before: use --mode discard, or record without clients";
    Err(CliError::new("cannot record live", "--mode overwrite", advice))
}

/// How `lat record --live` and `lat live` listen.
pub fn options(args: &RecordArgs, address: Option<&str>) -> LiveOptions {
    let address = address.map(|address| match address {
        "-" => LiveAddress::StandardOutput,
        address => LiveAddress::Tcp(address.to_owned()),
    });
    let mut options = LiveOptions::new(address);
    options.token = args.peer.token.clone();
    options.tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            let (certificate, key) = (certificate.clone(), key.clone());
            Some(TlsIdentity::Files { certificate, key })
        }
        _ => args.tls.then_some(TlsIdentity::Generated),
    };
    options.window_bytes = args.live_window;
    options
}

/// Whether standard output is taken.
pub fn is_pipe(options: &RecordOptions) -> bool {
    let address = options.live.as_ref().and_then(|live| live.address.as_ref());
    address == Some(&LiveAddress::StandardOutput)
}

/// Says where clients can connect.
pub fn announce(args: &RecordArgs, session: &Session) -> Result<(), CliError> {
    let own = session.live_address().map(|address| (address, session.live_fingerprint()));
    let of_policies = session.policy_outputs().into_iter();
    let beside = of_policies.filter_map(|one| Some((one.live?, one.fingerprint)));
    for (address, fingerprint) in own.into_iter().chain(beside) {
        // Without it nobody can connect, so it is told in any case.
        if !args.quiet || fingerprint.is_some() && args.tls_cert.is_none() {
            let known = fingerprint.map_or(String::new(), |one| format!(" --fingerprint {one}"));
            tell!("live on {address}: lat record --connect {address}{known} -o DIR");
        }
    }
    Ok(())
}

/// The summary of a recording without files here. With `to_pipe` standard output is not ours.
pub fn print(
    folder: &Path,
    report: &Report,
    args: &RecordArgs,
    to_pipe: bool,
) -> Result<(), CliError> {
    let clients = report.live.as_ref().map(|live| live.clients.as_slice()).unwrap_or_default();
    if args.json && !to_pipe {
        let mut value = recording_summary::json(folder, report);
        value["live"] = json!(report.live);
        return output::print_json_line(&value);
    }
    if args.quiet {
        return Ok(());
    }
    let totals = &report.totals;
    let mut text = Page::new();
    line!(
        text,
        "streamed  {} in {}, {}",
        values::counted(totals.events, "event"),
        values::time(report.throughput.elapsed_ns),
        values::bytes(totals.bytes),
    );
    for client in clients {
        line!(
            text,
            "client    {}: {} sent, {} dropped{}",
            client.peer,
            values::counted(client.sent.packets, "packet"),
            values::count(client.dropped.packets),
            if client.stayed { "" } else { "; it left before the end" },
        );
    }
    if totals.lost.total > 0 {
        text.part(format_args!("lost      "));
        let lost = values::counted(totals.lost.total, "event");
        text.line_as(Role::Problem, format_args!("{lost}"));
    }
    for problem in &report.problems {
        text.line_as(Role::Problem, format_args!("problem   {problem}"));
    }
    output::tell(&text);
    Ok(())
}
