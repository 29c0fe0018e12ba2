// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Trace Server Protocol over HTTP.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::Instant;

use super::{Head, PATIENCE, refuse, respond_with};
use crate::Session;
use crate::serving::http::Refused;
use crate::trace_server;

/// Answers one request; `body` contains the part of its body that was received with the head.
pub fn serve(
    stream: &mut TcpStream,
    head: &Head,
    mut body: Vec<u8>,
    session: &Session,
    friends: &[String],
) -> io::Result<()> {
    let begun = Instant::now();
    let mut piece = [0; 8192];
    while body.len() < head.length {
        let count = stream.read(&mut piece)?;
        if count == 0 || begun.elapsed() > PATIENCE {
            return refuse(stream, Refused::Bad);
        }
        body.extend_from_slice(&piece[..count]);
    }
    body.truncate(head.length);
    // CORS headers are sent to permitted origins only; without them, the browser withholds the
    // response from the page.
    let mut more = String::from("Vary: Origin\r\n");
    if let Some(origin) = head.friend(friends) {
        more += &format!(
            "Access-Control-Allow-Origin: {origin}\r\nAccess-Control-Allow-Headers: Content-Type\r\n\
             Access-Control-Allow-Methods: GET, POST, PUT, DELETE\r\n"
        );
    }
    let Some(method) = head.method else {
        return respond_with(stream, "204 No Content", "application/json", &more, b"");
    };
    let path = head.trace_server().unwrap_or_default();
    let (status, answer) = match trace_server::answer(session, method, path, &body) {
        Ok(answer) => ("200 OK", answer),
        Err(refusal) => {
            let status = match refusal.status {
                403 => "403 Forbidden",
                404 => "404 Not Found",
                405 => "405 Method Not Allowed",
                _ => "400 Bad Request",
            };
            (status, refusal.json())
        }
    };
    // The viewers' client accepts only this exact content type, without parameters.
    respond_with(stream, status, "application/json", &more, answer.to_string().as_bytes())
}
