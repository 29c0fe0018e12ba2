// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's record of one connection [sock_diag(7)]. It finds it by its addresses at once, while
//! the tables of `/proc/net` have to be read whole: who opens thousands of connections would make
//! every other one slow.

use std::net::{IpAddr, SocketAddr};

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// `SOCK_DIAG_BY_FAMILY`, of questions and answers.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
const TCP: u8 = 6;
const ESTABLISHED: u8 = 1;
const HEADER_BYTES: usize = 16;
const QUESTION_BYTES: usize = HEADER_BYTES + 56;
/// Offsets in `struct inet_diag_msg`, after the header.
const STATE: usize = HEADER_BYTES + 1;
const PORTS: usize = HEADER_BYTES + 4;
const USER: usize = HEADER_BYTES + 64;
const INODE: usize = HEADER_BYTES + 68;

/// What the kernel says.
#[derive(Debug, PartialEq, Eq)]
pub enum Owner {
    /// The socket is this user's.
    User(u32),
    /// There is no such connection, or no process has that end any more.
    Nobody,
    /// It cannot be asked here.
    Unknown,
}

/// The user of the socket of this machine that is connected from `theirs` to `ours`.
pub fn owner(theirs: SocketAddr, ours: SocketAddr) -> Owner {
    match ask(theirs, ours) {
        Some(user) => Owner::User(user),
        // That there is no such connection, and that there is no such service, is one answer. The other
        // end of it is there for certain.
        None if ask_any(ours, theirs).is_some() => Owner::Nobody,
        None => Owner::Unknown,
    }
}

fn ask(from: SocketAddr, to: SocketAddr) -> Option<u32> {
    let answer = ask_any(from, to)?;
    let word = |at: usize| Some(u32::from_ne_bytes(*answer.get(at..)?.first_chunk()?));
    // The kernel gives root as the owner of a socket that no process has any more.
    (answer.get(STATE) == Some(&ESTABLISHED) && word(INODE)? != 0).then(|| word(USER))?
}

/// The kernel's reply about this socket, in any state.
fn ask_any(from: SocketAddr, to: SocketAddr) -> Option<Vec<u8>> {
    let question = question(from, to)?;
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(SOCK_DIAG),
    )
    .ok()?;
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, &question, SendFlags::empty(), &kernel).ok()?;
    // It has answered before it let the question go.
    let mut answer = vec![0; 4096];
    let (bytes, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::DONTWAIT).ok()?;
    answer.truncate(bytes);
    let kind = answer.get(4..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))?;
    // One that listens on the same port is another.
    let ports = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
    let is_it = kind == BY_FAMILY && answer.get(PORTS..PORTS + 4) == Some(&ports[..]);
    is_it.then_some(answer)
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`; `None`: addresses of two kinds.
fn question(from: SocketAddr, to: SocketAddr) -> Option<[u8; QUESTION_BYTES]> {
    let address = |ip: IpAddr| {
        let mut bytes = [0; 16];
        match ip {
            IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes = ip.octets(),
        }
        bytes
    };
    let (from_ip, to_ip) = (from.ip().to_canonical(), to.ip().to_canonical());
    let family = match (from_ip, to_ip) {
        (IpAddr::V4(_), IpAddr::V4(_)) => AddressFamily::INET,
        (IpAddr::V6(_), IpAddr::V6(_)) => AddressFamily::INET6,
        _ => return None,
    };
    let mut bytes = Vec::with_capacity(QUESTION_BYTES);
    bytes.extend((QUESTION_BYTES as u32).to_ne_bytes());
    bytes.extend([BY_FAMILY.to_ne_bytes(), REQUEST.to_ne_bytes()].concat());
    bytes.extend([0; 8]);
    bytes.extend([u8::try_from(family.as_raw()).ok()?, TCP, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend([from.port().to_be_bytes(), to.port().to_be_bytes()].concat());
    bytes.extend([address(from_ip), address(to_ip)].concat());
    // Any interface, no cookie.
    bytes.extend([0; 4]);
    bytes.extend([0xff; 8]);
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_has_an_owner_as_long_as_somebody_has_its_end() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let ours = listener.local_addr().unwrap();
            let client = TcpStream::connect(ours).unwrap();
            let (accepted, theirs) = listener.accept().unwrap();
            let own = rustix::process::geteuid().as_raw();
            if owner(theirs, ours) == Owner::Unknown {
                eprintln!("SKIPPED: the kernel does not list sockets here");
                return;
            }
            assert_eq!(owner(theirs, ours), Owner::User(own), "{address}");
            drop(client);
            assert_eq!(owner(theirs, ours), Owner::Nobody, "{address}");
            drop(accepted);
            // A listening socket is no end of a connection.
            assert_eq!(ask(ours, theirs), None);
        }
        let (v4, v6) = ("127.0.0.1:1".parse().unwrap(), "[::1]:1".parse().unwrap());
        assert_eq!((question(v4, v6), owner(v4, v6)), (None, Owner::Unknown));
    }
}
