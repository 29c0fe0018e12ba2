// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Handshakes with honest and with hostile peers.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use super::super::tls::{self, TlsServer};
use super::super::wire::Wire;
use super::*;
use crate::options::{Fingerprint, TlsIdentity, TlsTrust};

const PATIENCE: Patience<'_> =
    Patience { time: Duration::from_secs(20), look: Duration::from_millis(50), is_over: &|| false };

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let one = TcpStream::connect(listener.local_addr().expect("its address")).expect("a peer");
    (one, listener.accept().expect("a peer").0)
}

fn server() -> TlsServer {
    TlsServer::new(&TlsIdentity::Generated).expect("a certificate")
}

fn client(fingerprint: Fingerprint, stream: TcpStream) -> io::Result<Wire> {
    let trust = TlsTrust::Fingerprint(fingerprint);
    let name = tls::server_name("host_with_an_odd name:1", &trust).expect("any name");
    let config = tls::client(&trust).expect("a configuration");
    let mut wire = Wire::to_server(stream, config, name)?;
    wire.handshake(&PATIENCE, false).map(|()| wire)
}

/// Reads until `bytes` have arrived.
fn read_all(wire: &mut Wire, bytes: usize) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 3000]);
    while all.len() < bytes {
        if wire.wait(true, false, None, Duration::from_secs(20)).reads {
            match wire.read_some(&mut buffer) {
                Ok(0) => break,
                Ok(read) => all.extend(&buffer[..read]),
                Err(error) => assert!(is_later(&error), "{error}"),
            }
        }
    }
    all
}

#[test]
fn bytes_arrive_as_they_were_and_what_is_held_back_is_told() {
    let server = server();
    let (near, far) = pair();
    let config = server.config.clone();
    let sent: Vec<u8> = (0..20_000_000u32).map(|n| ((n * 31) >> 3) as u8).collect();
    let expected = sent.clone();
    let (begin, begun) = std::sync::mpsc::channel();
    let served = std::thread::spawn(move || {
        let mut wire = Wire::to_client(far, config).expect("a session");
        wire.handshake(&PATIENCE, true).expect("a handshake");
        let mut bytes = &sent[..];
        // The peer does not read yet: writes until the connection is full and the last piece fits only in
        // part.
        while let Ok(taken) = wire.write_some(bytes) {
            bytes = &bytes[taken..];
        }
        assert!(wire.holds_back() && !bytes.is_empty());
        begin.send(()).expect("a reader");
        while !bytes.is_empty() || wire.holds_back() {
            let ready = wire.wait(false, true, None, Duration::from_millis(50));
            if ready.writes && !bytes.is_empty() {
                match wire.write_some(bytes) {
                    Ok(taken) => bytes = &bytes[taken..],
                    Err(error) => assert!(is_later(&error), "{error}"),
                }
            }
        }
        assert_eq!(read_all(&mut wire, 4), b"fine");
        wire.end_writing();
    });
    let mut wire = client(server.fingerprint, near).expect("the right server");
    begun.recv().expect("a writer");
    let all = read_all(&mut wire, expected.len());
    assert!(all == expected);
    assert_eq!(wire.write_some(b"fine").expect("a connection"), 4);
    assert_eq!(read_all(&mut wire, 1), b"", "the end is told");
    served.join().expect("no panic");
}

#[test]
fn another_certificate_is_refused_by_the_client_and_the_server_hears_of_it() {
    let (server, other) = (server(), server());
    let (near, far) = pair();
    let served = std::thread::spawn(move || {
        let mut wire = Wire::to_client(far, server.config).expect("a session");
        wire.handshake(&PATIENCE, true).and_then(|()| wire.read_some(&mut [0; 10]))
    });
    let refused = client(other.fingerprint, near).expect_err("another certificate");
    assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
    assert!(refused.to_string().contains("--fingerprint"), "{refused}");
    assert!(served.join().expect("no panic").is_err());
}

#[test]
fn who_speaks_without_tls_is_recognised() {
    let server = server();
    let (mut near, far) = pair();
    near.write_all(b"LATLIVE\n").expect("a peer");
    let mut wire = Wire::to_client(far, server.config).expect("a session");
    let error = wire.handshake(&PATIENCE, true).expect_err("no TLS");
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    assert_eq!(wire.write_some(b"plain").expect("a peer"), 5);
    let mut got = [0; 5];
    near.read_exact(&mut got).expect("an answer");
    assert_eq!(&got, b"plain");
}

/// The first bytes of an honest client.
fn hello() -> Vec<u8> {
    let trust = TlsTrust::Fingerprint(Fingerprint([0; 32]));
    let name = tls::server_name("localhost:1", &trust).expect("a name");
    let mut session =
        ClientConnection::new(tls::client(&trust).expect("a configuration"), name).expect("one");
    let mut bytes = Vec::new();
    session.write_tls(&mut bytes).expect("memory");
    bytes
}

#[test]
fn no_bytes_of_a_stranger_do_more_than_end_its_connection() {
    let server = server();
    let hello = hello();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        // xorshift64 [Marsaglia 2003]
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..400 {
        let mut bytes = hello.clone();
        match round % 4 {
            0 => bytes.truncate(random() as usize % hello.len()),
            1 => bytes.iter_mut().for_each(|byte| *byte = random() as u8),
            // Records of any length and kind, including ones that claim to be handshakes.
            2 => bytes[..5].copy_from_slice(&[22, 3, 3, random() as u8, random() as u8]),
            _ => {}
        }
        for _ in 0..round % 7 {
            if !bytes.is_empty() {
                let at = random() as usize % bytes.len();
                bytes[at] ^= 1 << (random() % 8);
            }
        }
        let (mut near, far) = pair();
        let config = server.config.clone();
        let _ = near.write_all(&bytes);
        let _ = near.shutdown(Shutdown::Write);
        let mut wire = Wire::to_client(far, config).expect("a session");
        assert!(wire.handshake(&PATIENCE, true).is_err(), "round {round}: nobody was there");
    }
}

#[test]
fn who_says_nothing_or_half_is_waited_for_no_longer_than_said() {
    let server = server();
    let hello = hello();
    for bytes in [&b""[..], &hello[..1], &hello[..hello.len() - 1], &hello] {
        let (mut near, far) = pair();
        near.write_all(bytes).expect("a peer");
        let mut wire = Wire::to_client(far, server.config.clone()).expect("a session");
        let short = Patience { time: Duration::from_millis(60), ..PATIENCE };
        let error = wire.handshake(&short, true).expect_err("half of it");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let over = Patience { is_over: &|| true, ..PATIENCE };
        let error = wire.handshake(&over, true).expect_err("the recording is over");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}

#[test]
fn what_is_not_ciphered_right_ends_a_connection_that_stood() {
    let server = server();
    let (near, far) = pair();
    let mut stranger = near.try_clone().expect("the same socket");
    let config = server.config.clone();
    let served = std::thread::spawn(move || {
        let mut wire = Wire::to_client(far, config).expect("a session");
        // Later data may be read together with the end of the handshake.
        wire.handshake(&PATIENCE, true)?;
        loop {
            match wire.wait(true, false, None, Duration::from_secs(20)).reads {
                true => match wire.read_some(&mut [0; 100]) {
                    Err(error) if is_later(&error) => {}
                    end => return end,
                },
                false => return Ok(1),
            }
        }
    });
    let _wire = client(server.fingerprint, near).expect("the right server");
    stranger.write_all(&[23, 3, 3, 0, 40]).expect("a peer");
    stranger.write_all(&[7; 40]).expect("a peer");
    let end = served.join().expect("no panic").expect_err("not ciphered with the key");
    assert_eq!(end.kind(), io::ErrorKind::InvalidData);
}
