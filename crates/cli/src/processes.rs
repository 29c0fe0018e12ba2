// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds running processes by name.

use std::fs;
use std::path::Path;

/// Largest number of processes listed if several have the same name.
const LISTED_MAX: usize = 8;

/// Returns the id of the process with this id or name: the file name of its executable, or its comm value
/// (proc_pid_comm(5)).
///
/// # Errors
/// A sentence: no process has the name, or several have.
pub fn named(name: &str) -> Result<u32, String> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let own = std::process::id();
    let mut found: Vec<u32> = fs::read_dir("/proc")
        .map_err(|cause| format!("cannot look for it in /proc: {cause}"))?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| *process != own && has_name(*process, name))
        .collect();
    found.sort_unstable();
    match found.as_slice() {
        [only] => Ok(*only),
        [] => {
            Err(format!("no process is called {name}: `lat list` shows those that can be traced"))
        }
        several => {
            let numbers: Vec<String> =
                several.iter().take(LISTED_MAX).map(ToString::to_string).collect();
            let more = if several.len() > LISTED_MAX { ", …" } else { "" };
            Err(format!(
                "{} processes are called {name}: name one of {}{more}",
                several.len(),
                numbers.join(", ")
            ))
        }
    }
}

fn has_name(process: u32, name: &str) -> bool {
    let process = Path::new("/proc").join(process.to_string());
    // For processes of other users only the latter can be read.
    let runs = fs::read_link(process.join("exe")).ok();
    let is_program = runs.as_deref().and_then(Path::file_name).is_some_and(|file| file == name);
    is_program || fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_found_by_its_number_and_by_its_name() {
        assert_eq!(named("12"), Ok(12));
        assert!(named("no such program, ever").unwrap_err().starts_with("no process is called"));
        let folder = lateralis_files::TemporaryFolder::new("named-test-").expect("a folder");
        let program = folder.path().join("lat-named-once");
        fs::copy("/bin/sleep", &program).expect("a program of this name");
        let mut first = Command::new(&program).arg("60").spawn().expect("it starts");
        let alone = named("lat-named-once");
        let mut second = Command::new(&program).arg("60").spawn().expect("it starts");
        let both = named("lat-named-once");
        for child in [&mut first, &mut second] {
            child.kill().expect("it can be ended");
            child.wait().expect("it ends");
        }
        assert_eq!(alone, Ok(first.id()));
        let (low, high) = (first.id().min(second.id()), first.id().max(second.id()));
        assert_eq!(
            both,
            Err(format!("2 processes are called lat-named-once: name one of {low}, {high}"))
        );
    }
}
