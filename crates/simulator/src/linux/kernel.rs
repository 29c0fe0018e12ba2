// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel of the machine: from the distribution's package of a cloud kernel. It is unpacked into the
//! user's cache, never installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lateralis_files::{NewFolder, create_folder, is_own_folder};

use super::Error;

/// Metapackage that depends on the newest kernel: names of the others change with each release.
const NEWEST: &str = "linux-image-cloud-amd64";
/// Prefix of the names of kernel packages.
const PREFIX: &str = "linux-image-";
const WHAT: &str = "cannot get a kernel for the simulated machine";

/// A kernel that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Name of its package.
    pub name: String,
    /// Path of its file.
    pub path: PathBuf,
}

impl Kernel {
    /// The distribution's kernel; downloaded if necessary, in which case `fetches` is called before.
    ///
    /// # Errors
    /// If the system has no such package, or it cannot be downloaded.
    pub fn of_distribution(fetches: &mut dyn FnMut(&str)) -> Result<Self, Error> {
        let cache = cache()?;
        let newest = newest();
        if let Some(kernel) = newest.as_deref().and_then(|name| kept(&cache, name)) {
            return Ok(kernel);
        }
        let fetched = newest.ok_or_else(no_package).and_then(|name| {
            fetches(&name);
            fetch(&cache, &name)
        });
        // Without a network, an older one is used.
        fetched.or_else(|error| any(&cache).ok_or(error))
    }

    /// The distribution's kernel, if it has been downloaded.
    #[must_use]
    pub fn kept() -> Option<Self> {
        let cache = place().ok().filter(|folder| is_own_folder(folder))?;
        newest().and_then(|name| kept(&cache, &name)).or_else(|| any(&cache))
    }
}

fn no_package() -> Error {
    let place = format!("this system has no package {NEWEST}");
    Error::new(WHAT, place, "apt-get update; other distributions than Debian are not supported")
}

const ADVICE: &str = "set XDG_CACHE_HOME to a folder that is yours alone";

/// Path for the user's kernels; the folder may not exist yet.
fn place() -> Result<PathBuf, Error> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let folder = user.ok_or_else(|| Error::new(WHAT, "there is no folder for it", ADVICE))?;
    Ok(folder.join("lateralis").join("kernels"))
}

/// The user's folder for kernels.
fn cache() -> Result<PathBuf, Error> {
    let folder = place()?;
    create_folder(&folder).map_err(|cause| Error::io(WHAT, &folder, &cause))?;
    if !is_own_folder(&folder) {
        return Err(Error::new(WHAT, folder.display().to_string(), ADVICE));
    }
    Ok(folder)
}

/// Name of the newest package.
fn newest() -> Option<String> {
    let output = Command::new("apt-cache").args(["depends", NEWEST]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    dependency(&text).map(str::to_owned)
}

fn dependency(text: &str) -> Option<&str> {
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.into_iter().find(|name| is_name(name))
}

/// Whether it is a plausible name of a kernel package and of a file.
fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-+.".contains(letter);
    name.starts_with(PREFIX) && name.chars().all(is_plain)
}

fn kept(cache: &Path, name: &str) -> Option<Kernel> {
    let path = cache.join(name).join("vmlinuz");
    path.is_file().then(|| Kernel { name: name.to_owned(), path })
}

/// The most recent one.
fn any(cache: &Path) -> Option<Kernel> {
    let entries = fs::read_dir(cache).ok()?.flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok().filter(|name| is_name(name))?;
        Some((entry.metadata().ok()?.modified().ok()?, name))
    });
    let (_, name) = names.max()?;
    kept(cache, &name)
}

fn fetch(cache: &Path, name: &str) -> Result<Kernel, Error> {
    let target = cache.join(name);
    let folder = NewFolder::beside(&target).map_err(|cause| Error::io(WHAT, &target, &cause))?;
    let inside = folder.path();
    run(Command::new("apt-get").args(["download", "-q", name]).current_dir(inside))?;
    let mut packages = fs::read_dir(inside).into_iter().flatten().flatten();
    let package = packages.find(|entry| entry.path().extension().is_some_and(|of| of == "deb"));
    let missing = |what: &str| Error::new(WHAT, name, format!("{what}: remove it from the cache"));
    let package = package.ok_or_else(|| missing("apt-get has fetched nothing"))?.path();
    let unpacked = inside.join("unpacked");
    run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&unpacked))?;
    let mut boot = fs::read_dir(unpacked.join("boot")).into_iter().flatten().flatten();
    let image = boot.find(|entry| entry.file_name().to_string_lossy().starts_with("vmlinuz-"));
    let image = image.ok_or_else(|| missing("the package has no kernel"))?.path();
    let io = |cause| Error::io(WHAT, &target, &cause);
    fs::rename(image, inside.join("vmlinuz")).map_err(io)?;
    fs::remove_dir_all(&unpacked).map_err(io)?;
    fs::remove_file(&package).map_err(io)?;
    // Another process may have been faster.
    let published = folder.publish();
    kept(cache, name).ok_or_else(|| match published {
        Ok(()) => missing("it is not there"),
        Err(cause) => io(cause),
    })
}

fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.map_err(|_| {
        Error::new(
            WHAT,
            format!("{program} is not there"),
            "only Debian and its like are supported",
        )
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
    let advice = "is there a network? `apt-get update` may help";
    Err(Error::new(WHAT, format!("{program}: {last}"), advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_resolved_by_name() {
        let text = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n  \
                    Breaks: initramfs-tools\n";
        assert_eq!(dependency(text), Some("linux-image-6.1.0-56-cloud-amd64"));
        assert_eq!(dependency("  Depends: <linux-image>"), None);
        assert_eq!(dependency("  Depends: linux-image-../../x"), None);
        assert!(!is_name("linux-image-a/b") && is_name("linux-image-6.12.1+deb13-cloud-amd64"));
    }
}
