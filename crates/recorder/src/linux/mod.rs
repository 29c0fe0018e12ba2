// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Linux: the only part of this crate that uses the operating system.
//!
//! ```text
//! session ─ launch, control, signals       one recording from start to end
//!    ├ unrecorded                          programs that cannot load the library
//!    ├ inherited                           state that the program must inherit
//!    ├ area ─ mapping, rings, trigger      one area: schemas, rings
//!    └ sources                             sources of events besides programs
//!         └ recording ─ output             the directory
//! rules                                    conditions, and their actions
//! keep                                     windows of time, when a condition fires
//! kernel                                   events of the kernel as a source
//! prepared                                areas created before the programs that use them
//! discovery                                traceable programs, enabled events
//! ```

mod area;
mod area_file;
mod area_report;
mod build_id;
mod capture;
mod clean;
mod clocks;
mod control;
mod cores;
mod dirs;
pub mod discovery;
mod enable;
mod enabled;
mod filters;
mod gate;
mod inherited;
mod keep;
pub mod kernel;
mod launch;
pub mod live;
mod mapping;
mod output;
pub mod policies;
mod prepared;
mod processes;
mod recording;
mod recover;
mod recover_recording;
mod recover_small;
mod reserve;
mod rings;
mod rules;
mod serial;
mod session;
mod session_lock;
mod sigbus;
mod signals;
mod sites;
mod small_part;
mod snapshot;
mod sources;
mod stream_report;
pub mod targets;
mod traced;
mod trigger;
mod unrecorded;
mod verified;

pub use capture::Capture;
pub use clean::{Leftover, LeftoverKind, clean};
pub use control::{Answer, Request, RunningRecorder, ask, recorders};
pub use dirs::{area_dir, make_area_dir};
pub use keep::{KeepNotice, KeepObserver};
pub use launch::ring_bytes;
pub use output::{is_being_written, is_locked};
pub use recover::{recover, recover_with};
pub use recover_small::RecoverTexts;
pub use serial::{
    SerialFrom, SerialOptions, SerialPart, SerialProgress, SerialSummary, record_serial,
    recover_serial,
};
pub use session::{PolicyWriter, Session, Summary};
pub use snapshot::snapshot;
pub use unrecorded::obstacle;
