// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What must be removed when a signal ends the process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Folders that are there. Every change is one push or one removal.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A folder that is written to while it is removed is tried again so often.
const TRIES: usize = 4;

/// Registers a folder, before it is made.
pub fn register(path: &Path) {
    static WATCH: Once = Once::new();
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    // Without a thread that waits for signals folders stay until the next one is made.
    WATCH.call_once(|| drop(watch()));
}

/// Forgets a folder that is gone, or that stays.
pub fn forget(path: &Path) {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| known != path);
}

/// Whether the process dies of a signal. What is ignored (`nohup`) stays ignored, and a command that ends
/// in good order at a signal removes its folders itself.
fn is_deadly(signal: libc::c_int) -> bool {
    // SAFETY: a zeroed sigaction is a valid one to be filled in; without a new action `sigaction`
    // only writes the old one into it.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut old) == 0
            && old.sa_sigaction == libc::SIG_DFL
    }
}

fn watch() -> io::Result<()> {
    let deadly: Vec<_> =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| is_deadly(*signal)).collect();
    if deadly.is_empty() {
        return Ok(());
    }
    let mut signals = Signals::new(deadly)?;
    let wait = move || {
        for signal in signals.forever() {
            let folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
            for folder in folders.iter() {
                for _ in 0..TRIES {
                    let removed = fs::remove_dir_all(folder);
                    if removed.is_ok() || !folder.exists() {
                        break;
                    }
                }
            }
            drop(folders);
            // The parent sees the signal, as without us.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    thread::Builder::new().name("files-ending".into()).spawn(wait).map(drop)
}
