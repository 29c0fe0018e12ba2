// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Heads of HTTP requests: parsing, and permission checks.

use std::net::{IpAddr, SocketAddr};

use crate::trace_server::Method;

/// Maximum size of a head in bytes.
pub const HEAD_MAX: usize = 16 << 10;
/// Maximum size of a body in bytes, enough for a list of a hundred thousand entries.
pub const BODY_MAX: usize = 1 << 20;
/// Path of the Trace Server Protocol.
pub const TRACE_SERVER: &str = "/tsp/api";
/// Path of the numbers for Prometheus.
pub const METRICS: &str = "/metrics";
/// Maximum number of header lines.
const HEADERS_MAX: usize = 64;

/// Head of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Method; `None` for `OPTIONS`, by which a browser asks which pages have permission.
    pub method: Option<Method>,
    /// Path without the query.
    pub path: String,
    /// Query parameters, decoded.
    pub query: Vec<(String, String)>,
    /// `Host`.
    pub host: Option<String>,
    /// `Origin`.
    pub origin: Option<String>,
    /// `Sec-Fetch-Site`: the browser reports whether the request was caused by a page of another
    /// site, also for requests without an origin.
    pub site: Option<String>,
    /// `Sec-WebSocket-Key`, if a WebSocket is requested.
    pub key: Option<String>,
    /// Length of the body in bytes.
    pub length: usize,
}

/// Reason for refusing a request, with its HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// 400
    Bad,
    /// 401
    NoToken,
    /// 403
    Forbidden,
    /// 404
    NotFound,
    /// 405
    Method,
    /// 413
    TooLong,
    /// 503
    NotReady,
    /// 503
    TooMany,
}

impl Refused {
    /// Status line, and message to the user.
    #[must_use]
    pub fn status(self) -> (&'static str, &'static str) {
        match self {
            Self::Bad => ("400 Bad Request", "this is no request that lat view understands"),
            Self::NoToken => {
                ("401 Unauthorized", "open the address that lat view has printed, token and all")
            }
            Self::Forbidden => {
                ("403 Forbidden", "another page, or a name that is not served, asks")
            }
            Self::NotFound => ("404 Not Found", "there is no such file"),
            Self::NotReady => ("503 Service Unavailable", "there is nothing to be shown yet"),
            Self::TooMany => ("503 Service Unavailable", "too many connections are open"),
            Self::Method => ("405 Method Not Allowed", "only GET is served here"),
            Self::TooLong => ("413 Content Too Large", "a request has a mebibyte at most"),
        }
    }
}

impl Head {
    /// Parses a head; `None` if it is incomplete.
    ///
    /// # Errors
    /// If it is not a valid head.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Refused> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(bytes).map_err(|_| Refused::Bad)? {
            httparse::Status::Partial => return Ok(None),
            httparse::Status::Complete(length) => length,
        };
        let method = match request.method {
            Some("GET") => Some(Method::Get),
            Some("POST") => Some(Method::Post),
            Some("PUT") => Some(Method::Put),
            Some("DELETE") => Some(Method::Delete),
            Some("OPTIONS") => None,
            _ => return Err(Refused::Method),
        };
        let target = request.path.unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut head = Self { method, ..Self::default() };
        // Programs that append a path to an address cannot add a query: the token may be in the path.
        let within = path.strip_prefix("/token/").and_then(|rest| rest.split_once('/'));
        if let Some((token, _)) = within {
            head.query.push(("token".to_owned(), decoded(token)));
        }
        head.path = within.map_or_else(|| path.to_owned(), |(_, rest)| format!("/{rest}"));
        if head.method != Some(Method::Get) && head.trace_server().is_none() {
            return Err(Refused::Method);
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            head.query.push((decoded(name), decoded(value)));
        }
        let mut content_length = None;
        for header in request.headers.iter() {
            let place = match header.name.to_ascii_lowercase().as_str() {
                "host" => &mut head.host,
                "origin" => &mut head.origin,
                "sec-fetch-site" => &mut head.site,
                "sec-websocket-key" => &mut head.key,
                "content-length" => &mut content_length,
                // Trace viewers send a length; chunked bodies are not supported.
                "transfer-encoding" => return Err(Refused::Bad),
                _ => continue,
            };
            // Duplicate headers are ambiguous.
            if place.is_some() {
                return Err(Refused::Bad);
            }
            let text = std::str::from_utf8(header.value).map_err(|_| Refused::Bad)?;
            *place = Some(text.trim().to_owned());
        }
        if let Some(text) = content_length {
            head.length = text.parse().map_err(|_| Refused::Bad)?;
        }
        if head.length > BODY_MAX {
            return Err(Refused::TooLong);
        }
        Ok(Some((head, length)))
    }

    /// The path below that of the Trace Server Protocol, if the request is for it.
    #[must_use]
    pub fn trace_server(&self) -> Option<&str> {
        let rest = self.path.strip_prefix(TRACE_SERVER)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }

    /// The origin of the request if it is a page of another site that may use the Trace Server
    /// Protocol: `friends` contains it, or a pattern for it with `*` at the end. The `*` matches a
    /// port or, right after `://`, the name; it never extends a name: `http://localhost*` does not
    /// match `http://localhost.evil.example`.
    #[must_use]
    pub fn friend(&self, friends: &[String]) -> Option<&str> {
        self.trace_server()?;
        let origin = self.origin.as_deref()?;
        let is = |friend: &String| match friend.strip_suffix('*') {
            Some(begin) => origin.strip_prefix(begin).is_some_and(|rest| {
                begin.ends_with("://")
                    || rest.is_empty()
                    || rest.strip_prefix(':').is_some_and(is_port)
                    || (begin.ends_with(':') && is_port(rest))
            }),
            None => origin == friend,
        };
        friends.iter().any(is).then_some(origin)
    }

    /// Whether the request is for data, rather than for the files of the page.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.trace_server().is_some() || matches!(&*self.path, "/ws" | "/export" | METRICS)
    }

    /// Value of a query parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn token(&self) -> Option<&str> {
        self.parameter("token")
    }

    /// Checks whether a server at `address` may answer the request; if the server has a token, the
    /// request must contain it. Pages of other sites are refused unless they are friends and use
    /// the Trace Server Protocol.
    ///
    /// # Errors
    /// If the request is refused.
    pub fn check(
        &self,
        address: SocketAddr,
        token: Option<&str>,
        friends: &[String],
    ) -> Result<(), Refused> {
        let host = self.host.as_deref().ok_or(Refused::Forbidden)?;
        if !is_served(host, address) {
            return Err(Refused::Forbidden);
        }
        if let Some(origin) = &self.origin
            && origin.strip_prefix("http://") != Some(host)
            && self.friend(friends).is_none()
        {
            return Err(Refused::Forbidden);
        }
        // Opening the page by a link from another site is permitted; only data is protected.
        let is_elsewhere = matches!(self.site.as_deref(), Some("cross-site" | "same-site"));
        if is_elsewhere && self.is_data() && self.friend(friends).is_none() {
            return Err(Refused::Forbidden);
        }
        match token {
            Some(token) if !self.token().is_some_and(|given| is_same(given, token)) => {
                Err(Refused::NoToken)
            }
            _ => Ok(()),
        }
    }
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

/// Whether a host name and port belong to the address. Only names that cannot be redirected by DNS
/// are accepted: numeric addresses, and `localhost` on this machine.
fn is_served(host: &str, address: SocketAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port.parse::<u16>().ok()),
        _ => (host, Some(80)),
    };
    if port != Some(address.port()) {
        return false;
    }
    let ip = address.ip();
    let is_here = ip.is_loopback() || ip.is_unspecified();
    match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(named) => named == ip || ip.is_unspecified() || (is_here && named.is_loopback()),
        Err(_) => is_here && name.eq_ignore_ascii_case("localhost"),
    }
}

/// Compares in constant time, so that the time does not reveal how many bytes are correct.
fn is_same(given: &str, token: &str) -> bool {
    let differs = given.bytes().zip(token.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && differs == 0
}

/// Decodes a query: `%41+b` is `A b`; invalid escapes stay unchanged.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let escaped = || {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            digits.bytes().all(|b| b.is_ascii_hexdigit()).then_some(())?;
            u8::from_str_radix(digits, 16).ok()
        };
        match first {
            b'+' => bytes.push(b' '),
            b'%' => match escaped() {
                Some(byte) => {
                    bytes.push(byte);
                    rest = &after[2..];
                }
                None => bytes.push(b'%'),
            },
            other => bytes.push(*other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Head, Refused> {
        Head::parse(text.as_bytes()).map(|head| head.expect("a whole head").0)
    }

    #[test]
    fn a_head_tells_its_parts() {
        let text = "GET /export?a=1&b=x%20y+z%2 HTTP/1.1\r\nHost: localhost:80\r\n\
                    Cookie: x=1\r\n\r\n";
        let head = head(text).unwrap();
        assert_eq!((head.path.as_str(), head.parameter("b")), ("/export", Some("x y z%2")));
        assert_eq!(head.token(), None);
        assert_eq!(Head::parse(b"GET / HTTP/1.1\r\nHost"), Ok(None));
        assert_eq!(Head::parse(b"\0\0\0\r\n\r\n"), Err(Refused::Bad));
        assert_eq!(Head::parse(b"POST / HTTP/1.1\r\n\r\n"), Err(Refused::Method));
        assert_eq!(Head::parse(b"PATCH /tsp/api/traces HTTP/1.1\r\n\r\n"), Err(Refused::Method));
        let twice = b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n";
        assert_eq!(Head::parse(twice), Err(Refused::Bad));
    }

    #[test]
    fn only_who_knows_the_address_is_answered() {
        let here: SocketAddr = "127.0.0.1:9000".parse().unwrap();
        let ask = |host: &str, origin: Option<&str>| {
            let head = Head {
                host: Some(host.into()),
                origin: origin.map(str::to_owned),
                ..Head::default()
            };
            head.check(here, None, &[])
        };
        assert_eq!(ask("127.0.0.1:9000", None), Ok(()));
        assert_eq!(ask("localhost:9000", Some("http://localhost:9000")), Ok(()));
        assert_eq!(ask("[::1]:9000", None), Ok(()));
        for host in ["evil.example:9000", "127.0.0.1:9001", "127.0.0.1", "", "localhost.evil:9000"]
        {
            assert_eq!(ask(host, None), Err(Refused::Forbidden), "{host}");
        }
        for origin in
            ["http://evil.example", "null", "http://127.0.0.1:9000", "https://localhost:9000"]
        {
            assert_eq!(ask("localhost:9000", Some(origin)), Err(Refused::Forbidden), "{origin}");
        }
        assert_eq!(Head::default().check(here, None, &[]), Err(Refused::Forbidden));
        // An image element in a page of another site sends no origin.
        for (path, site, answer) in [
            ("/export", "cross-site", Err(Refused::Forbidden)),
            ("/tsp/api/traces", "same-site", Err(Refused::Forbidden)),
            ("/export", "same-origin", Ok(())),
            ("/export", "none", Ok(())),
            ("/", "cross-site", Ok(())),
        ] {
            let head = Head {
                path: path.into(),
                host: Some("127.0.0.1:9000".into()),
                site: Some(site.into()),
                ..Head::default()
            };
            assert_eq!(head.check(here, None, &[]), answer, "{path} {site}");
        }
    }

    #[test]
    fn a_token_is_wanted_whole() {
        let there: SocketAddr = "192.0.2.1:9000".parse().unwrap();
        let ask = |token: &str| {
            let query = vec![("token".to_owned(), token.to_owned())];
            let head = Head { host: Some("192.0.2.1:9000".into()), query, ..Head::default() };
            head.check(there, Some("secret"), &[])
        };
        assert_eq!(ask("secret"), Ok(()));
        for wrong in ["", "secre", "secret2", "Secret"] {
            assert_eq!(ask(wrong), Err(Refused::NoToken), "{wrong}");
        }
    }

    #[test]
    fn only_the_trace_server_protocol_is_sent_to() {
        let long = |length: &str| {
            head(&format!("POST /tsp/api/traces HTTP/1.1\r\nContent-Length: {length}\r\n\r\n"))
        };
        let asked = long("12").unwrap();
        assert_eq!((asked.trace_server(), asked.length), (Some("/traces"), 12));
        assert_eq!(asked.method, Some(Method::Post));
        assert_eq!(long("1048577"), Err(Refused::TooLong));
        assert_eq!(long("-1"), Err(Refused::Bad));
        assert_eq!(head("POST /tsp/apix HTTP/1.1\r\n\r\n"), Err(Refused::Method));
        let pieces = "POST /tsp/api/traces HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(head(pieces), Err(Refused::Bad));
        let within = head("GET /token/a%20b/tsp/api/health HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!((within.trace_server(), within.token()), (Some("/health"), Some("a b")));
    }

    #[test]
    fn friends_may_ask_the_trace_server_protocol_only() {
        let here: SocketAddr = "127.0.0.1:9000".parse().unwrap();
        let friends =
            ["http://localhost:3000", "vscode-webview://*", "http://127.0.0.2*", "http://[::1]:*"];
        let friends = friends.map(str::to_owned);
        let ask = |path: &str, origin: &str| {
            let head = Head {
                path: path.into(),
                host: Some("127.0.0.1:9000".into()),
                origin: Some(origin.into()),
                ..Head::default()
            };
            head.check(here, None, &friends)
        };
        for origin in [
            "http://localhost:3000",
            "vscode-webview://0a1b",
            "http://127.0.0.2",
            "http://127.0.0.2:80",
            "http://[::1]:3000",
        ] {
            assert_eq!(ask("/tsp/api/traces", origin), Ok(()));
            assert_eq!(ask("/ws", origin), Err(Refused::Forbidden), "{origin}");
        }
        for origin in [
            "http://localhost:30001",
            "https://localhost:3000",
            "vscode-webview:/",
            "null",
            "http://127.0.0.2.evil.example",
            "http://127.0.0.22",
            "http://[::1]:3000.evil.example",
        ] {
            assert_eq!(ask("/tsp/api/traces", origin), Err(Refused::Forbidden), "{origin}");
        }
    }
}
