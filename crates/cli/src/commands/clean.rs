// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat clean`: removes leftovers of programs and recorders that have ended.

use clap::Args;
use lateralis_recorder::linux::{Leftover, LeftoverKind, clean};
use serde_json::json;

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use crate::values;

/// Options of `lat clean`.
#[derive(Debug, Args)]
#[command(
    after_help = "Areas of killed programs contain events that were not recorded yet: `lat recover` makes a \
recording of them.

Examples:
  lat clean --dry-run    what would be removed, and how much memory it takes
  lat clean"
)]
pub struct CleanArgs {
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn word(kind: LeftoverKind) -> &'static str {
    match kind {
        LeftoverKind::Area => "area",
        LeftoverKind::Socket => "socket",
        LeftoverKind::Lock => "lock",
        LeftoverKind::Folder => "folder",
    }
}

/// Removes leftovers. Finding none is not an error; a leftover that cannot be removed is a problem.
pub fn run(args: CleanArgs) -> Result<ExitStatus, CliError> {
    let found = clean(None, !args.dry_run);
    let failed = found.iter().any(|one| one.error.is_some());
    let gone = |one: &&Leftover| one.error.is_none();
    let bytes: u64 = found.iter().filter(gone).map(|one| one.bytes).sum();
    if args.json {
        let one = |one: &Leftover| {
            json!({
                "kind": word(one.kind),
                "path": one.path,
                "bytes": one.bytes,
                "error": one.error.as_ref().map(ToString::to_string),
            })
        };
        output::print_json(&json!({
            "removed": !args.dry_run,
            "bytes": bytes,
            "leftovers": found.iter().map(one).collect::<Vec<_>>(),
        }))?;
    } else {
        let mut text = Page::new();
        for one in &found {
            let path: String = one.path.to_string_lossy().into_owned();
            let cause = one.error.as_ref().map(|error| format!(": not removed: {error}"));
            let (kind, size) = (word(one.kind), values::bytes(one.bytes));
            line!(text, "  {kind:<6}  {size:>9}  {path}{}", cause.unwrap_or_default());
        }
        let count = values::counted(found.iter().filter(gone).count() as u64, "thing");
        let size = values::bytes(bytes);
        match (found.is_empty(), args.dry_run) {
            (true, _) => line!(text, "nothing is left of ended programs and recorders"),
            (_, true) => line!(text, "would remove {count}, {size}"),
            (_, false) => line!(text, "removed {count}, {size}"),
        };
        output::print(&text)?;
    }
    Ok(if failed { ExitStatus::Problems } else { ExitStatus::Fine })
}
