// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The user of the other end.

use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};

use crate::diag::{self, Owner};

/// Bytes of a table of sockets: 100,000 of them.
const TABLE_BYTES_MAX: u64 = 16 << 20;
/// While sockets come and go a reader of the table may miss one.
const LOOKS: usize = 3;

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A user of this machine.
    User(u32),
    /// A peer on another machine, in another network namespace, or whose socket is closed already.
    Address(IpAddr),
}

impl Peer {
    /// Of a connection. `None`: it is none any more.
    ///
    /// Cost: some system calls. Where the kernel has no `sock_diag`, proportional to the number of
    /// TCP sockets of the machine.
    #[must_use]
    pub fn of(stream: &TcpStream) -> Option<Self> {
        let (theirs, ours) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
        let address = Self::Address(theirs.ip().to_canonical());
        if !theirs.ip().to_canonical().is_loopback() {
            return Some(address);
        }
        let user = match diag::owner(theirs, ours) {
            Owner::User(user) => Some(user),
            Owner::Nobody => None,
            Owner::Unknown => user_in_tables(theirs, ours),
        };
        Some(user.map_or(address, Self::User))
    }

    /// Whether it is the user of this process, root, or who became root by `sudo` to start this.
    #[must_use]
    pub fn is_own(self) -> bool {
        let Self::User(user) = self else { return false };
        let own = rustix::process::geteuid().as_raw();
        // Only root's own environment counts: it is set by the `sudo` that started this.
        let invoker = || std::env::var("SUDO_UID").ok()?.parse::<u32>().ok();
        user == 0 || user == own || (own == 0 && invoker() == Some(user))
    }

    /// Whether a connection comes over a loopback address from a user other than [`Peer::is_own`],
    /// or from an unknown one.
    #[must_use]
    pub fn is_foreign(self) -> bool {
        let is_local = match self {
            Self::User(_) => true,
            Self::Address(address) => address.is_loopback(),
        };
        is_local && !self.is_own()
    }
}

/// The user of a connection in the tables of `/proc/net`, which are read whole.
fn user_in_tables(theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    tables.iter().cycle().take(LOOKS * tables.len()).find_map(|path| {
        let mut text = String::new();
        File::open(path).ok()?.take(TABLE_BYTES_MAX).read_to_string(&mut text).ok()?;
        user_in(&text, theirs, ours)
    })
}

/// The user in a table of `/proc/net` whose socket goes from `theirs` to `ours`.
fn user_in(table: &str, theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    let is = |text: &str, wanted: SocketAddr| {
        let wanted = SocketAddr::new(wanted.ip().to_canonical(), wanted.port());
        address(text) == Some(wanted)
    };
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, remote) = (words.next()?, words.next()?);
        if !is(local, theirs) || !is(remote, ours) {
            return None;
        }
        let state = words.next()?;
        let user = words.nth(3)?.parse().ok()?;
        let inode = words.nth(1)?;
        // A socket that no process has any more is reported as root's.
        (state == "01" && inode != "0").then_some(user)
    })
}

/// `0100007F:1F90` is 127.0.0.1:8080: words of 32 bits in the byte order of the machine.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    if !ip.is_ascii() || !(ip.len() == 8 || ip.len() == 32) {
        return None;
    }
    let mut bytes = [0; 16];
    for (word, to) in ip.as_bytes().chunks(8).zip(bytes.chunks_mut(4)) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        to.copy_from_slice(&word.to_ne_bytes());
    }
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
        _ => IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical(),
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_user_of_a_connection_within_this_machine_is_known() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            let own = rustix::process::geteuid().as_raw();
            assert_eq!(Peer::of(&accepted), Some(Peer::User(own)), "{address}");
            let (theirs, ours) = (accepted.peer_addr().unwrap(), accepted.local_addr().unwrap());
            assert_eq!(user_in_tables(theirs, ours), Some(own), "{address}");
            assert!(Peer::User(own).is_own() && !Peer::User(own).is_foreign());
            // No process has its socket any more, and the system reports it as root's.
            drop(client);
            assert_eq!(
                Peer::of(&accepted),
                accepted.peer_addr().ok().map(|a| Peer::Address(a.ip()))
            );
        }
        assert!(Peer::User(4_000_000_001).is_foreign());
        let unknown = Peer::Address(Ipv4Addr::LOCALHOST.into());
        assert!(!unknown.is_own() && unknown.is_foreign(), "nobody vouches for it");
        assert!(!Peer::Address(Ipv4Addr::new(192, 0, 2, 1).into()).is_foreign());
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn only_a_connection_that_stands_tells_its_user() {
        let line = |state: &str, inode: &str| {
            format!(
                "  sl  local_address rem_address   st tx_queue rx_queue tr \
                 tm->when retrnsmt   uid  timeout inode\n   1: 0100007F:9C40 0100007F:1F90 {state} \
                 00000000:00000000 00:00000000 00000000  1001        0 {inode} 1\n"
            )
        };
        let (theirs, ours) =
            ("127.0.0.1:40000".parse().unwrap(), "127.0.0.1:8080".parse().unwrap());
        assert_eq!(user_in(&line("01", "77"), theirs, ours), Some(1001));
        assert_eq!(user_in(&line("01", "77"), ours, theirs), None, "the other direction");
        for (state, inode) in [("06", "77"), ("01", "0"), ("08", "77")] {
            assert_eq!(user_in(&line(state, inode), theirs, ours), None, "{state} {inode}");
        }
        let mapped = "0000000000000000FFFF00000100007F:1F90";
        assert_eq!(address(mapped), Some(ours));
        for text in ["", ":", "0100007F", "é:1", "0100007F:", "010000:1F90", "0100007F:1F901"] {
            assert_eq!(address(text), None, "{text}");
        }
    }
}
