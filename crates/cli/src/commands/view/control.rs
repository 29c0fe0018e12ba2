// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Controls the recorder of the viewed recording from the page, if it runs on this machine: the operations of
//! `lat start`, `stop`, `flush`, `snapshot`, `enable` and `disable`.

use std::path::{Path, PathBuf};

use lateralis_recorder::linux::discovery::{self, AreaInfo, Target};
use lateralis_recorder::linux::{self, Request, targets};
use lateralis_recorder::{CtfVersion, Error, Patterns, RecordOptions};
use lateralis_view::answer::Problem;
use lateralis_view::{Action, Control};
use serde_json::{Value, json};

/// Largest number of names tried for a snapshot beside a recording.
const NAMES_MAX: u32 = 10_000;

/// See the module's description.
pub struct Recorders {
    /// The recording, in front of whose name snapshots get theirs.
    pub path: PathBuf,
}

impl Control for Recorders {
    fn act(&self, action: Action, pids: &[u32], events: &[String]) -> Result<Vec<Value>, Problem> {
        let is_meant = |program: &AreaInfo| {
            program.alive
                && (pids.contains(&program.pid) || program.pids.iter().any(|p| pids.contains(p)))
        };
        let programs: Vec<AreaInfo> = discovery::list(None).into_iter().filter(is_meant).collect();
        let patterns = Patterns::parse(&events.join(","));
        let patterns = patterns.map_err(|error| problem("events", &error.into()))?;
        let (mut done, mut failed) = (Vec::new(), None);
        for program in &programs {
            match self.act_on(action, program.pid, &patterns) {
                Ok(mut told) => {
                    told["pid"] = program.pid.into();
                    told["program"] = program.exe.as_str().into();
                    done.push(told);
                }
                Err(error) => failed = Some(problem(&program.exe, &error)),
            }
        }
        let advice = "see lat list";
        let none = || Problem::new("no program of this recording runs any more", "control", advice);
        match done.is_empty() {
            true => Err(failed.unwrap_or_else(none)),
            false => Ok(done),
        }
    }
}

impl Recorders {
    fn act_on(&self, action: Action, pid: u32, patterns: &Patterns) -> Result<Value, Error> {
        let target = Target::Pid(pid);
        match action {
            Action::Start => targets::start(None, &target, &RecordOptions::new(""))?,
            Action::Stop => targets::stop(None, &target)?,
            Action::Flush => targets::request(None, &target, Request::Flush)?,
            Action::Snapshot => {
                let output = free_name(&self.path);
                linux::snapshot(None, &target, &output, CtfVersion::default())?;
                return Ok(json!({ "output": output }));
            }
            Action::Enable | Action::Disable => {
                let is_on = action == Action::Enable;
                let changed = discovery::set_enabled(None, &target, patterns, is_on)?;
                return Ok(json!({ "changed": changed }));
            }
        };
        Ok(json!({}))
    }
}

fn problem(place: &str, error: &Error) -> Problem {
    Problem::new("cannot ask the recorder", place, error.to_string())
}

/// Returns an unused name beside a recording.
fn free_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let of = |number: u32| path.with_file_name(format!("{name}-snapshot-{number}"));
    (1..NAMES_MAX).map(of).find(|path| !path.exists()).unwrap_or_else(|| of(NAMES_MAX))
}
