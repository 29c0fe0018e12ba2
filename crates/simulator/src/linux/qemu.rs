// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds QEMU.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::Error;

const PROGRAM: &str = "qemu-system-x86_64";
/// The first version whose plugins can read registers and memory as ours does.
const VERSION_MIN: u32 = 10;

/// A QEMU that loads our plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qemu {
    /// The program.
    pub path: PathBuf,
}

impl Qemu {
    /// The QEMU on the search path.
    ///
    /// # Errors
    /// If there is none, or it is too old; the advice contains how to install one.
    pub fn find() -> Result<Self, Error> {
        let what = "cannot simulate a machine";
        let output = Command::new(PROGRAM).arg("--version").output();
        let Ok(output) = output else {
            return Err(Error::new(what, format!("{PROGRAM} is not installed"), install()));
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match version(&text) {
            Some(version) if version >= VERSION_MIN => Ok(Self { path: PathBuf::from(PROGRAM) }),
            version => {
                let version = version.map_or("of no known version".to_owned(), |of| of.to_string());
                let place = format!("{PROGRAM} is {version}, {VERSION_MIN} or later is needed");
                Err(Error::new(what, place, install()))
            }
        }
    }
}

/// The number before the first dot.
fn version(text: &str) -> Option<u32> {
    let number = text.split_once("version ")?.1;
    number.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// The command that installs it.
fn install() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    install_on(&release).to_owned()
}

fn install_on(release: &str) -> &'static str {
    let is_bookworm = release.lines().any(|line| line == "VERSION_CODENAME=bookworm");
    match is_bookworm {
        true => "apt-get install -t bookworm-backports qemu-system-x86",
        false => "apt-get install qemu-system-x86",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let debian = "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\nCopyright (c)";
        assert_eq!(version(debian), Some(10));
        assert_eq!([version(""), version("QEMU emulator version x")], [None, None]);
    }

    #[test]
    fn older_distributions_have_it_elsewhere() {
        let bookworm = "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\n";
        assert!(install_on(bookworm).contains("backports"));
        assert_eq!(install_on("VERSION_CODENAME=trixie"), "apt-get install qemu-system-x86");
    }
}
