// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat-helper`: root starts it, members of a group may then trace the kernel with `lat`.

#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lateralis_helper::{LOANS_MAX, Lender, SOCKET};

/// Connections at a time. Most are over at once, with a refusal: instances are counted by [`Lender`].
const CONNECTIONS_MAX: usize = 4 * LOANS_MAX;

const HELP: &str =
    "Lets members of a group trace the kernel with `lat record --kernel` and `--system`

Usage: lat-helper --group GROUP [--socket PATH] [--tracefs PATH]

Options:
      --group <GROUP>    Who may: name or number of a group. They see what all programs do
      --socket <PATH>    Where it listens [default: /run/lateralis/helper.sock]
      --tracefs <PATH>   The kernel's tracing file system [default: /sys/kernel/tracing]
  -h, --help             Print help
  -V, --version          Print version

It runs until it is ended. Recordings go on without it.";

struct Options {
    group: u32,
    socket: PathBuf,
    tracefs: PathBuf,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["-h" | "--help"] => {
            println!("{HELP}");
            Ok(())
        }
        ["-V" | "--version"] => {
            println!("lat-helper {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        _ => options(&arguments).and_then(|options| listen(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", printable(&error));
            ExitCode::from(2)
        }
    }
}

/// For the terminal of root: names and paths from clients and options without control characters
/// and without controls of the writing direction.
fn printable(text: &str) -> String {
    let hostile = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}')
    };
    text.chars().map(|c| if hostile(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn options(arguments: &[String]) -> Result<Options, String> {
    let (mut group, mut socket) = (None, PathBuf::from(SOCKET));
    let mut tracefs = PathBuf::from("/sys/kernel/tracing");
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{name}: a value is missing: see --help"))?;
        match name.as_str() {
            "--group" => group = Some(group_number(value)?),
            "--socket" => socket = value.into(),
            "--tracefs" => tracefs = value.into(),
            _ => return Err(format!("unknown option: {name}: see --help")),
        }
    }
    let group = group.ok_or("who may use it: --group is missing: name a group, see --help")?;
    Ok(Options { group, socket, tracefs })
}

/// By its number, or by its name in /etc/group.
fn group_number(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let number = |line: &str| {
        let mut parts = line.split(':');
        (parts.next() == Some(text)).then(|| parts.nth(1)?.parse().ok())?
    };
    groups
        .lines()
        .find_map(number)
        .ok_or_else(|| format!("no such group: {text}: name one of /etc/group, or give its number"))
}

fn listen(options: &Options) -> Result<(), String> {
    let told = |what: &str, path: &Path, error: io::Error| {
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => ": run it as root",
            io::ErrorKind::NotFound => {
                ": as root, run `mount -t tracefs nodev /sys/kernel/tracing`"
            }
            _ => "",
        };
        format!("cannot {what}: {}: {error}{advice}", path.display())
    };
    let lender = Lender::new(&options.tracefs)
        .map_err(|error| told("lend tracing of the kernel", &options.tracefs, error))?;
    lender.remove_abandoned();
    let socket = &options.socket;
    let listener = bind(socket, options.group).map_err(|error| told("listen", socket, error))?;
    println!("listening: {}: group {}", printable(&socket.display().to_string()), options.group);
    let open = Arc::new(AtomicUsize::new(0));
    for client in listener.incoming() {
        let Ok(client) = client else {
            // Too many descriptors, for instance: they become fewer in time only.
            std::thread::sleep(std::time::Duration::from_millis(100));
            continue;
        };
        // No other memory is published by this count.
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            let _ = io::Write::write_all(&mut &client, b"error: too many recordings at a time\n");
            continue;
        }
        let (lender, open) = (lender.clone(), Arc::clone(&open));
        std::thread::spawn(move || {
            if let Err(error) = lender.serve(client) {
                eprintln!("warning: a loan ended: {}", printable(&error.to_string()));
            }
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
    Ok(())
}

/// A socket for the members of a group alone.
fn bind(socket: &Path, group: u32) -> io::Result<UnixListener> {
    if let Some(folder) = socket.parent()
        && !folder.exists()
    {
        fs::create_dir_all(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    }
    // Left by one that was killed; one that lives answers.
    if std::os::unix::net::UnixStream::connect(socket).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another helper listens there"));
    }
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(socket);
    rustix::process::umask(mask);
    let listener = listener?;
    chown(socket, None, Some(group))?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}
