// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat view`: the viewer in the browser. What it shows is served by `lateralis-view`.

use std::io::{self, IsTerminal, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::Args;
use lateralis_traces::Relate;
use lateralis_view::{OpenError, Server, Session};
use serde_json::json;

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::{InputArgs, RelateBy};
use crate::output;
use crate::status_line::StatusLine;
use crate::values;

/// Options of `lat view`.
#[derive(Debug, Args)]
#[command(
    after_help = "The page works without a network. What is looked up again and again is kept in \
    view.index, in the folder of the recording or in the cache folder; it is made anew when the \
    trace has changed, and may be deleted.\n\n\
    Examples:\n  \
    lat view demo\n  \
    lat view good bad                     two recordings on one time line\n  \
    lat view --no-open --port 8123 demo   the address to be opened by hand\n  \
    lat view --listen 0.0.0.0 demo        for other machines, who need the token in the address\n  \
    lat view --allow-origin 'vscode-webview://*' demo\n\
    \x20                                       for the trace viewer of VS Code, at /tsp/api"
)]
pub struct ViewArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Port to serve at; 0: one that is free
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub port: u16,
    /// Address to serve at; any other than this machine's own wants a token
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub listen: IpAddr,
    /// Let pages of this origin use the Trace Server Protocol at /tsp/api, as trace viewers in VS Code
    /// and Theia do; * at its end stands for anything
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Do not start a browser
    #[arg(long)]
    pub no_open: bool,
    /// Print the address as JSON
    #[arg(long)]
    pub json: bool,
    /// Serve the protocol alone, to other programs
    #[arg(long, hide = true)]
    pub no_page: bool,
}

/// Serves until it is interrupted.
pub fn run(args: ViewArgs) -> Result<ExitStatus, CliError> {
    if !args.no_page && !lateralis_view::has_page() {
        return Err(CliError::new(
            "this lat was built without the page",
            "lat view",
            "build it with ./x build view in the sources of Lateralis, which needs Node.js",
        ));
    }
    refuse_addresses(&args.inputs.traces)?;
    let mut options = args.inputs.hints.options()?;
    options.relate = match args.inputs.relate {
        RelateBy::Exchange => Relate::Exchange,
        RelateBy::Messages => Relate::Messages,
        RelateBy::Date => Relate::Date,
    };
    let mut line = StatusLine::new(args.json);
    let mut progress = |events: u64| {
        line.show(&format!("looking at {} events", values::count(events)));
    };
    let session = Session::open(&args.inputs.traces, &options, &mut progress);
    line.clear();
    let session = session.map_err(|error| match error {
        OpenError::Trace(error) => error.into(),
        OpenError::Index(cause) => {
            CliError::new("cannot write the index", "view.index", cause.to_string())
        }
    })?;
    let address = SocketAddr::new(args.listen, args.port);
    let server = Server::bind(address, Arc::new(session)).map_err(|cause| {
        let advice = format!("{cause}: choose another with --port or --listen");
        CliError::new("cannot serve", address.to_string(), advice)
    })?;
    let server = server.with_friends(args.allow_origin);
    let url = server.url();
    if args.json {
        let trace_server = server.trace_server_url();
        output::print_json(&json!({ "url": url, "trace_server_url": trace_server }))?;
    } else {
        output::print(&format!("{url}\nCtrl-C ends\n"))?;
    }
    if !args.no_open && !args.no_page && io::stdout().is_terminal() {
        show(&url);
    }
    let gone = |cause: io::Error| CliError::new("cannot serve", url, cause.to_string());
    server.run().map_err(gone)?;
    Ok(ExitStatus::Fine)
}

/// Something like HOST:PORT that is no file: what to do instead.
fn refuse_addresses(traces: &[PathBuf]) -> Result<(), CliError> {
    for path in traces.iter().filter(|path| !path.exists()) {
        let text = path.display().to_string();
        let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_some() {
            let advice = format!("lat record --connect {text} -o DIR, then lat view DIR");
            return Err(CliError::new("cannot view a live recording itself yet", text, advice));
        }
    }
    Ok(())
}

/// Starts the browser, where there is one.
fn show(url: &str) {
    let mut command = Command::new("xdg-open");
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.spawn().is_err() {
        // The address stands above.
        let _ = writeln!(io::stderr(), "no browser could be started: open the address by hand");
    }
}
