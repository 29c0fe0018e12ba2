// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two communicating machines: their recordings share one timeline, within the reported clock error.
//!
//! The machines are network namespaces joined by a virtual cable; the packets are real. The second one has
//! its own host name and boot id, another date, and a counter with another start and a higher rate.
//! `hosts/other_host.c` is preloaded into its recorder and its program, so that both read these clocks. Its
//! counter is therefore an exact function of the counter of this machine.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::place::Place;
use serde_json::Value;

const OTHER_TICKS: i128 = 7_000_000_000_000;
const OTHER_PPM: i128 = 120;
const OTHER_NS: i128 = -5_500_000_000;
const QUESTIONS: u64 = 200;
const TOKEN: &str = "only for this one test";
/// Time limit of every step.
const LONG: Duration = Duration::from_secs(60);

/// Two namespaces and the cable between them, removed at the end.
struct Network {
    names: [String; 2],
    addresses: [String; 2],
}

impl Network {
    /// Prints a message and returns `None` if they cannot be made.
    fn new() -> Option<Network> {
        let id = std::process::id();
        let names = ["a", "b"].map(|side| format!("lat{id}{side}"));
        let net = |host: u8| format!("10.{}.{}.{host}", 64 + id % 64, id / 64 % 256);
        let network = Network { names, addresses: [net(1), net(2)] };
        let [a, b] = &network.names;
        let made = ip(&["netns", "add", a])
            && ip(&["netns", "add", b])
            && ip(&["link", "add", "eth0", "netns", a, "type", "veth", "peer", "eth0", "netns", b])
            && network.names.iter().zip(&network.addresses).all(|(name, address)| {
                ip(&["-n", name, "address", "add", &format!("{address}/24"), "dev", "eth0"])
                    && ip(&["-n", name, "link", "set", "eth0", "up"])
            });
        if !made {
            eprintln!("SKIPPED: network namespaces cannot be made here");
        }
        made.then_some(network)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "del", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> bool {
    let run = Command::new("ip").args(arguments).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

struct Running(Child);

impl Running {
    fn ends(mut self) {
        let until = Instant::now() + LONG;
        while self.0.try_wait().expect("its status").is_none() {
            assert!(Instant::now() < until, "it does not end");
            sleep(Duration::from_millis(10));
        }
        let mut error = String::new();
        if let Some(stderr) = &mut self.0.stderr {
            let _ = stderr.read_to_string(&mut error);
        }
        assert!(self.0.wait().expect("its status").success(), "{error}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn compiled(place: &Place, name: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(name);
    let to = place.0.join(name).with_extension("so");
    let run = Command::new("cc").args(options).arg(source).arg("-o").arg(&to).arg("-ldl").output();
    let output = run.expect("cc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    to
}

/// Compiles the program, if there is a compiler.
fn talk(place: &Place) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts");
    for name in ["talk.pleco", "talk.c"] {
        fs::copy(folder.join(name), place.0.join(name)).expect("a copy");
    }
    let made = place.lat(&["pleco", "gen", "talk.pleco", "--c", "talk.h"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    place.compile("talk", &place.0.join("talk.c"), "lockio")
}

fn lat(place: &Place, namespace: &str, arguments: &[&str]) -> Running {
    let child = Command::new("ip")
        .args(["netns", "exec", namespace, env!("CARGO_BIN_EXE_lat")])
        .args(arguments)
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .env("LATERALIS_TOKEN", TOKEN)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    Running(child.expect("ip"))
}

/// Starts the other machine, which records its program live. Returns its address and fingerprint.
fn other_host(place: &Place, network: &Network, program: &Path) -> (Running, String, String) {
    let preload = compiled(place, "other_host.c", &["-O2", "-shared", "-fPIC"]);
    fs::write(place.0.join("boot_id"), "11111111-2222-4333-8444-555555555555\n").expect("a file");
    // Areas are in another place there.
    let script = "hostname elsewhere && mount --bind boot_id /proc/sys/kernel/random/boot_id && \
                  mkdir -m 700 areas-there && exec env LD_PRELOAD=$PRELOAD \"$@\"";
    let lat = [env!("CARGO_BIN_EXE_lat"), "record", "-o", "theirs", "--live"];
    let address = format!("{}:0", network.addresses[1]);
    let mut child = Command::new("ip")
        .args(["netns", "exec", &network.names[1], "unshare", "--uts", "--mount"])
        .args(["sh", "-c", script, "sh"])
        .args(lat)
        .args([&address, "--"])
        .arg(program)
        .args(["answer", &network.addresses[1]])
        .current_dir(&place.0)
        .env("PRELOAD", preload)
        .env("LATERALIS_DIR", place.0.join("areas-there"))
        .env("LATERALIS_TOKEN", TOKEN)
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .env("OTHER_TICKS", OTHER_TICKS.to_string())
        .env("OTHER_PPM", OTHER_PPM.to_string())
        .env("OTHER_NS", OTHER_NS.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ip");
    let mut told = BufReader::new(child.stderr.take().expect("its errors"));
    let running = child.stdout.take().expect("its output");
    let mut other = Running(child);
    let mut line = String::new();
    while !line.starts_with("live on ") {
        line.clear();
        let read = told.read_line(&mut line).expect("text");
        assert!(read > 0, "it is not live: {:?}", other.0.wait());
    }
    let rest = line.strip_prefix("live on ").and_then(|rest| rest.split_once(": "));
    let (address, command) = rest.expect("an address");
    let mut words = command.split_whitespace().skip_while(|word| *word != "--fingerprint");
    let fingerprint = words.nth(1).expect("others can reach it: it is encrypted").to_owned();
    let address = address.to_owned();
    let mut ready = String::new();
    BufReader::new(running).read_line(&mut ready).expect("text");
    assert_eq!(ready.trim(), "ready");
    // Reads the rest of the pipe: a write to a pipe without a reader would end the process.
    std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    (other, address, fingerprint)
}

/// A clock as reported by `lat info`.
#[derive(Debug, Clone, Copy)]
struct Clock {
    frequency_hz: i128,
    /// UTC of tick 0.
    zero_ns: i128,
}

const SECOND: i128 = 1_000_000_000;

impl Clock {
    fn of(place: &Place, recording: &str) -> Clock {
        let info = place.json(&["info", recording, "--json"]);
        let number = |name: &str| i128::from(info["clocks"][0][name].as_i64().expect("a number"));
        let frequency_hz = number("frequency_hz");
        let zero_ns = number("offset_s") * SECOND + number("offset_ticks") * SECOND / frequency_hz;
        Clock { frequency_hz, zero_ns }
    }

    fn ns(self, ticks: i128) -> i128 {
        self.zero_ns + ticks * SECOND / self.frequency_hz
    }

    fn ticks(self, ns: i128) -> i128 {
        (ns - self.zero_ns) * self.frequency_hz / SECOND
    }
}

/// Returns name, number and time of each event of the program.
fn events(place: &Place, arguments: &[&str]) -> Vec<(String, u64, i128)> {
    let all = [&["print", "--format", "json", "--event", "talk:*"], arguments].concat();
    let output = place.lat(&all);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let event = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a row");
        let name = row["name"].as_str().expect("a name").to_owned();
        let number = row["fields"]["number"].as_u64().expect("a number");
        (name, number, i128::from(row["time_ns"].as_i64().expect("a time")))
    };
    text.lines().map(event).collect()
}

fn time_of(events: &[(String, u64, i128)], name: &str, number: u64) -> Option<i128> {
    let mut found = events.iter().filter(|(n, k, _)| n.ends_with(name) && *k == number);
    found.next().map(|(_, _, time)| *time)
}

/// Checks that both recordings, with this clock relation, are at their true times within the reported error.
fn check(place: &Place, how: &str, relation: &str) -> i128 {
    let both = ["mine", "received", "--relate", how];
    let info = place.json(&[&["info", "--json"], &both[..]].concat());
    let theirs = &info["traces"][1];
    assert_eq!(theirs["clock_relation"], relation, "{theirs}");
    let error = i128::from(theirs["clock_error_ns"].as_u64().expect("a bound"));
    let (mine_clock, their_clock) = (Clock::of(place, "mine"), Clock::of(place, "received"));
    let (alone, joined) = (events(place, &["received"]), events(place, &both));
    let mut most = 0;
    for (name, number, time) in &alone {
        let theirs = their_clock.ticks(*time);
        // Value of this machine's counter at that time.
        let mine = (theirs - OTHER_TICKS) * 1_000_000 / (1_000_000 + OTHER_PPM);
        let truth = mine_clock.ns(mine);
        let name = name.rsplit(':').next().expect("a name");
        let said = time_of(&joined, name, *number).expect("it is in both");
        most = most.max((said - truth).abs());
        assert!((said - truth).abs() <= error + 10, "{name} {number}: {} > {error}", said - truth);
    }
    let mut pairs = 0;
    for number in 0..QUESTIONS {
        for (sent, received) in [("ASK", "ASKED"), ("TELL", "TOLD")] {
            let sent = time_of(&joined, &format!(":{sent}"), number);
            if let Some((sent, received)) =
                sent.zip(time_of(&joined, &format!(":{received}"), number))
            {
                pairs += 1;
                assert!(received >= sent - error, "{number}: {received} < {sent} - {error}");
            }
        }
    }
    assert!(pairs > QUESTIONS, "{pairs}");
    eprintln!("{how}: {} events, off by {most} ns at most, said: {error} ns", alone.len());
    error
}

#[test]
fn two_machines_that_talk_come_on_one_time_line() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("SKIPPED: the other machine's counter is trapped on x86-64 only");
        return;
    }
    let place = Place::new();
    let Some(program) = talk(&place) else { return };
    let Some(network) = Network::new() else { return };
    let (other, address, known) = other_host(&place, &network, &program);
    let connect = ["record", "--connect", &address, "--fingerprint", &known, "-o", "received"];
    let receiver = lat(&place, &network.names[0], &connect);
    let until = Instant::now() + LONG;
    while !place.0.join("received/ctf/metadata").exists() {
        assert!(Instant::now() < until, "nothing is received");
        sleep(Duration::from_millis(10));
    }
    let program = program.to_str().expect("a path of letters");
    let ask = ["ask", &network.addresses[1], &QUESTIONS.to_string()];
    let record = [&["record", "--quiet", "-o", "mine", "--", program][..], &ask].concat();
    lat(&place, &network.names[0], &record).ends();
    other.ends();
    receiver.ends();

    let report = place.report("received");
    assert_eq!(report["complete"], true);
    assert!(report["received"]["exchanges"]["made"].as_u64() > Some(5), "{report}");
    let offset = i128::from(report["received"]["clock"]["offset_ns"].as_i64().expect("an offset"));
    let error = i128::from(report["received"]["clock"]["error_ns"].as_i64().expect("a bound"));
    assert!((offset - OTHER_NS).abs() <= error, "{offset} ± {error}");

    // With the date alone the clock error is unknown, and the result is wrong.
    let by_date = place.json(&["info", "--json", "mine", "received", "--relate", "date"]);
    assert_eq!(by_date["traces"][1]["clock_relation"], "epoch");
    assert_eq!(by_date["traces"][1]["clock_error_ns"], Value::Null);
    for (how, relation) in [("exchange", "exchange"), ("messages", "messages")] {
        let error = check(&place, how, relation);
        assert!(error < -OTHER_NS / 2, "{how}: {error} ns say nothing");
    }
    // Their own folder is aligned like the copy, because it has the same counter.
    let three = ["info", "--json", "mine", "received", "theirs"];
    let three = place.json(&three);
    assert_eq!(three["traces"][2]["clock_relation"], "exchange", "{}", three["traces"]);
}
