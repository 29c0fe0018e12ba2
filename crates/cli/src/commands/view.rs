// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat view`: the viewer in the browser. `lateralis-view` serves its data.

mod control;
mod dumps;
mod live;
mod sections;

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use clap::Args;
use lateralis_images::ImageFiles;
use lateralis_store::places::Images;
use lateralis_traces::Relate;
use lateralis_view::{Host, ImageSource, Opening, Server, Session};
use serde_json::json;

use crate::commands::flow::kept_code::KeptCode;
use crate::commands::view::sections::StatsSections;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::{InputArgs, RelateBy};
use crate::output::{self, Page};
use crate::peer_args::PeerArgs;
use crate::status_line::StatusLine;
use crate::values;

/// Options of `lat view`.
#[derive(Debug, Args)]
#[command(
    after_help = "The page needs no network. An index is cached in view.index, in the recording's \
    directory or in the \
    user's cache; it is rebuilt when the trace changes and may be deleted. A recording that is still \
    being written is followed. Instead of a path, TRACE may be HOST:PORT of a live recording, or \
    bfscope://HOST:PORT of a bfscope.\n\n\
    Examples:\n  \
    lat view demo\n  \
    lat view good bad                     two recordings on one timeline\n  \
    lat view --no-open --port 8123 demo   prints the address instead of opening it\n  \
    lat view --listen 0.0.0.0 demo        for other machines, over plain HTTP\n  \
    lat view --allow-origin 'vscode-webview://*' demo\n\
    \x20                                       for the trace viewer of VS Code, at /tsp/api\n  \
    lat view 127.0.0.1:6660               a recording made by lat record --live or lat live\n  \
    lat view bfscope://127.0.0.1:6666     dumps of Barrelfish's bfscope"
)]
pub struct ViewArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Port to serve on; 0 picks a free one
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub port: u16,
    /// Address to serve on; requests need the token in the printed address
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub listen: IpAddr,
    /// Allow pages of this origin to use the Trace Server Protocol at /tsp/api, as the trace viewers of VS
    /// Code and Theia do; a trailing * matches anything
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Do not start a browser
    #[arg(long)]
    pub no_open: bool,
    /// Print the address as JSON
    #[arg(long)]
    pub json: bool,
    /// Memory for a live recording; the oldest events are dropped from the view
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = values::parse_bytes)]
    pub window: u64,
    /// Directory with copies of the traced machine's files, for symbols and code
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,
    /// Kernel symbols: a copy of /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,
    #[command(flatten)]
    pub peer: PeerArgs,
    /// Serve the protocol alone, to other programs
    #[arg(long, hide = true)]
    pub no_page: bool,
}

impl ViewArgs {
    /// Returns the source of function names and source lines.
    pub fn images(&self) -> Result<ImageSource, CliError> {
        let kept = KeptCode::of(&self.inputs.traces)?;
        let (root, kallsyms) = (self.symfs.clone(), self.kallsyms.clone());
        let open = move || -> Box<dyn Images> {
            let files = ImageFiles::new(root.as_deref()).with_kallsyms(kallsyms.as_deref());
            Box::new(kept.beside(files))
        };
        let mut options: Vec<OsString> = Vec::new();
        for (name, path) in [("--symfs", &self.symfs), ("--kallsyms", &self.kallsyms)] {
            options.extend(path.iter().flat_map(|path| [name.into(), path.into()]));
        }
        Ok(ImageSource::new(options, open))
    }
}

/// Serves until interrupted.
pub fn run(args: ViewArgs) -> Result<ExitStatus, CliError> {
    if !args.no_page && !lateralis_view::has_page() {
        return Err(CliError::new(
            "this lat was built without the page",
            "lat view",
            "build it with ./x build view in the sources of Lateralis, which needs Node.js",
        ));
    }
    let host = Arc::new(Host::default());
    let mut options = args.inputs.hints.options()?;
    if let Some(dumped) = dumps::Dumped::begin(&args, &options, &host)? {
        serve(&args, &host)?;
        return dumped.run();
    }
    if let Some(following) = live::Following::begin(&args, &host)? {
        serve(&args, &host)?;
        return following.run();
    }
    options.relate = match args.inputs.relate {
        RelateBy::Exchange => Relate::Exchange,
        RelateBy::Messages => Relate::Messages,
        RelateBy::Date => Relate::Date,
    };
    let opening = Opening::with_images(&args.inputs.traces, &options, Some(args.images()?))?;
    let opening = opening.with_sections(Some(Arc::new(StatsSections)));
    let serving = serve(&args, &host)?;
    let session = index(opening, &host, args.json)?;
    host.show(Arc::new(session));
    let _ = serving.join();
    Ok(ExitStatus::Fine)
}

/// Builds the index, and shows its progress.
fn index(opening: Opening, host: &Host, is_quiet: bool) -> Result<Session, CliError> {
    /// Number of progress steps, as fine as a bar on a screen.
    const PARTS: f64 = 1000.0;
    let mut line = StatusLine::new(is_quiet);
    let mut progress = |events: u64, share: f64| {
        let text = format!("looking at {} events", values::count(events));
        host.progress(&text, (share * PARTS) as u64, Some(PARTS as u64));
        line.show(&text);
    };
    let session = opening.index(&mut progress);
    line.clear();
    session
        .map_err(|cause| CliError::new("cannot write the index", "view.index", cause.to_string()))
}

/// Starts serving the sessions of the host, and prints the address.
fn serve(args: &ViewArgs, host: &Arc<Host>) -> Result<JoinHandle<()>, CliError> {
    let address = SocketAddr::new(args.listen, args.port);
    let cannot = |cause: io::Error| {
        let advice = format!("{cause}: choose another with --port or --listen");
        CliError::new("cannot serve", address.to_string(), advice)
    };
    let server = Server::bind(address, Arc::clone(host)).map_err(cannot)?;
    let server = server.with_friends(args.allow_origin.clone());
    let url = server.url();
    if args.json {
        let trace_server = server.trace_server_url();
        output::print_json(&json!({ "url": url, "trace_server_url": trace_server }))?;
    } else {
        let mut page = Page::of_line(format_args!("{url}"));
        line!(page, "Ctrl-C ends");
        output::print(&page)?;
    }
    if !args.no_open && !args.no_page && output::is_terminal() {
        show(&url);
    }
    let run = move || {
        // An error of the server's socket leaves no way to report it to clients.
        let _ = server.run();
    };
    std::thread::Builder::new().name("view-server".to_owned()).spawn(run).map_err(cannot)
}

/// Starts a browser if one is available.
fn show(url: &str) {
    let mut command = Command::new("xdg-open");
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.spawn().is_err() {
        // The address was printed above.
        tell!("no browser could be started: open the address by hand");
    }
}
