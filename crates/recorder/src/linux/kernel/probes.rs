// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Probes during their definition in the kernel: in `uprobe_events`, which the whole machine shares,
//! in a group of their own, `lateralis_PID`, removed when the recording ends.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::instance;
use crate::kernel::KernelFormat;
use crate::kernel::probe::{Definition, ProbeError, Program, Wish, system_name};
use crate::linux::mapping::{Access, Mapping};
use crate::linux::processes;

const FILE: &str = "uprobe_events";
const PREFIX: &str = "lateralis_";
/// Folders of libraries, besides the directories of each architecture in `/lib` and `/usr/lib`.
const LIBRARIES: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Requested probes, found in their programs: not defined yet.
pub(super) struct Found(Vec<(String, Definition)>);

/// Definitions in the kernel; dropping removes them.
#[derive(Debug)]
pub(super) struct Probes {
    tracefs: PathBuf,
    group: String,
    /// Name in the kernel, program, and definition of each.
    events: Vec<(String, String, Definition)>,
}

/// Finds probes by name.
///
/// Errors: the program or the name does not exist; the error lists similar names.
/// Cost: one pass over the symbols of each program.
pub(super) fn find(words: &[String]) -> Result<Found, ProbeError> {
    let mut all = Vec::new();
    for word in words {
        let wish = Wish::parse(word)?;
        let path = locate(&wish)?;
        let error = |what: String, advice: &str| ProbeError {
            what,
            place: path.display().to_string(),
            advice: advice.to_owned(),
        };
        let text = path.to_str().filter(|text| !text.contains(char::is_whitespace));
        let text = text.ok_or_else(|| {
            error("the kernel probes no file with blanks in its name".to_owned(), "rename it")
        })?;
        let mapping = File::open(&path).and_then(|file| Mapping::of_file(&file, Access::Private));
        let mapping = mapping.map_err(|cause| {
            error(format!("cannot read the program: {cause}"), "name one that can be read")
        })?;
        let program = mapping.as_ref().and_then(|mapping| Program::read(mapping.bytes()));
        let program = program.ok_or_else(|| {
            error(
                "this is no program and no library".to_owned(),
                "a script has no functions of its own: name its interpreter",
            )
        })?;
        let system = system_name(&wish.program).to_owned();
        let found = wish.find(&program, text)?.into_iter();
        all.extend(found.map(|definition| (system.clone(), definition)));
    }
    Ok(Found(all))
}

/// The file of a program: a path, a command, or a library by the start of its name.
fn locate(wish: &Wish) -> Result<PathBuf, ProbeError> {
    let name = &wish.program;
    let is_file = |path: &PathBuf| path.is_file();
    let found = if name.contains('/') {
        Some(PathBuf::from(name)).filter(is_file)
    } else {
        let paths = env::var_os("PATH").unwrap_or_default();
        let commands = env::split_paths(&paths).map(|folder| folder.join(name)).find(is_file);
        commands.or_else(|| library(name))
    };
    found.and_then(|path| fs::canonicalize(path).ok()).ok_or_else(|| ProbeError {
        what: "there is no program and no library of that name".to_owned(),
        place: wish.word.clone(),
        advice: format!("write its whole path instead of {name}"),
    })
}

fn library(name: &str) -> Option<PathBuf> {
    let folders = LIBRARIES.iter().flat_map(|folder| {
        let own = Path::new(folder).join(format!("{}-linux-gnu", env::consts::ARCH));
        [own, PathBuf::from(folder)]
    });
    folders.into_iter().find_map(|folder| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter(|entry| {
            let file = entry.file_name();
            let rest = file.to_str().and_then(|file| file.strip_prefix(name));
            rest.is_some_and(|rest| rest.is_empty() || rest == ".so" || rest.starts_with(".so."))
        });
        // The shortest name is the link that programs use.
        let paths = names.map(|entry| entry.path()).filter(|path| is_elf(path));
        paths.min_by_key(|path| (path.as_os_str().len(), path.clone()))
    })
}

/// Next to libraries there are linker scripts with the same names: `libc.so`.
fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

/// Removes probes of recorders that have ended.
pub(super) fn remove_abandoned(tracefs: &Path) {
    let text = fs::read_to_string(tracefs.join(FILE)).unwrap_or_default();
    for line in text.lines() {
        let name = line.split_once(':').and_then(|(_, rest)| rest.split(' ').next());
        let owner = name.and_then(|name| name.strip_prefix(PREFIX));
        let owner = owner.and_then(|rest| rest.split(['_', '/']).next()?.parse::<u32>().ok());
        if let (Some(name), Some(pid)) = (name, owner)
            && !processes::exists(pid)
        {
            // A probe that is still in use stays for the next recorder.
            let _ = write(tracefs, &format!("-:{name}\n"));
        }
    }
}

/// Writes a single definition: the kernel's error then identifies the rejected one.
fn write(tracefs: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).open(tracefs.join(FILE))?.write_all(line.as_bytes())
}

impl Probes {
    /// Defines them.
    ///
    /// Errors: a sentence with the kernel's error; then none is defined.
    pub(super) fn define(tracefs: &Path, number: u32, found: Found) -> Result<Probes, String> {
        let pid = std::process::id();
        let group = format!("{PREFIX}{pid}_{number}");
        let mut probes = Probes { tracefs: tracefs.to_owned(), group, events: Vec::new() };
        for (index, (system, definition)) in found.0.into_iter().enumerate() {
            let name = format!("e{index}");
            let places = definition.places.clone();
            probes.events.push((name.clone(), system, definition));
            for place in places {
                let kind = probes.events[index].2.kind;
                let line = format!("{kind}:{}/{name} {place}\n", probes.group);
                write(tracefs, &line).map_err(|error| {
                    let path = tracefs.join(FILE).display().to_string();
                    instance::told("define a probe", Path::new(&path), &error)
                        + &format!(": {}: `error_log` beside it says more", line.trim_end())
                })?;
            }
        }
        Ok(probes)
    }

    /// System and name in the kernel.
    pub(super) fn names(&self) -> impl Iterator<Item = (String, String)> {
        self.events.iter().map(|(name, ..)| (self.group.clone(), name.clone()))
    }

    /// The kernel's descriptions, with the names of the program.
    pub(super) fn formats(&self, tracefs: &Path) -> Vec<KernelFormat> {
        let format = |(name, system, definition): &(String, String, Definition)| {
            let path = format!("events/{}/{name}/format", self.group);
            Some(definition.format(system, &instance::read(tracefs, &path).ok()?))
        };
        self.events.iter().filter_map(format).collect()
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        for (name, ..) in &self.events {
            let _ = write(&self.tracefs, &format!("-:{}/{name}\n", self.group));
        }
    }
}
