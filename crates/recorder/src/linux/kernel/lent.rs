// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sources of instances: created in tracefs, or lent by `lat-helper` if tracefs is not accessible.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lateralis_helper::{Loan, SOCKET};

use super::instance::{self, Instance};
use crate::kernel::Choice;

/// Overrides the path of the helper's socket.
const VARIABLE: &str = "LATERALIS_HELPER";

/// Probes are defined for the whole machine.
pub(super) const NO_PROBES: &str =
    "cannot probe programs: lat-helper lends no probes: run `sudo lat record …`";

/// A source of instances.
pub(super) enum Place {
    /// Tracefs.
    Own(PathBuf),
    /// An instance of it.
    Lent(Loan),
}

impl Place {
    /// Finds tracefs, or a helper.
    ///
    /// Errors: the missing privilege or mount, and the command to run.
    pub(super) fn find(tracefs: Option<&Path>) -> Result<Place, String> {
        let closed = match instance::find(tracefs) {
            Ok(place) => return Ok(Place::Own(place)),
            Err(sentence) => sentence,
        };
        let socket = env::var_os(VARIABLE).map_or_else(|| SOCKET.into(), PathBuf::from);
        match Loan::ask(&socket) {
            Ok(loan) => Ok(Place::Lent(loan)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(closed),
            Err(error) => {
                Err(format!("{closed}; nor lends lat-helper: {}: {error}", socket.display()))
            }
        }
    }

    /// Path of tracefs, if it is accessible.
    pub(super) fn tracefs(&self) -> Option<PathBuf> {
        match self {
            Place::Own(tracefs) => Some(tracefs.clone()),
            Place::Lent(_) => None,
        }
    }

    /// The existing events, as in `available_events`.
    pub(super) fn available(&self) -> Result<String, String> {
        match self {
            Place::Own(tracefs) => instance::read(tracefs, "available_events"),
            Place::Lent(loan) => {
                let events = loan.path().join("events");
                let mut lines = Vec::new();
                // Those of `ftrace` cannot be enabled.
                for system in folders(&events).into_iter().filter(|system| system != "ftrace") {
                    let found = folders(&events.join(&system));
                    lines.extend(found.iter().map(|event| format!("{system}:{event}\n")));
                }
                Ok(lines.concat())
            }
        }
    }

    /// An instance in which these can be enabled.
    pub(super) fn instance(self, choice: &Choice) -> Result<Instance, String> {
        match self {
            Place::Own(tracefs) => Instance::make(&tracefs),
            Place::Lent(loan) => {
                let events = choice.events.iter();
                loan.events(events.map(|(system, event)| (system.as_str(), event.as_str())))
                    .map_err(|error| format!("cannot record events of the kernel: {error}"))?;
                Ok(Instance::lent(loan))
            }
        }
    }
}

/// Names of the subfolders.
fn folders(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<String> =
        folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}
