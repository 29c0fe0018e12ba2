// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Live streams over TLS: authentication of both sides, and the cost of unauthenticated peers.

use super::*;

const TOKEN: &str = "a secret that is long";

/// Starts a recorder that encrypts, and returns it with its address and fingerprint.
fn encrypted(
    place: &Place,
    options: &[&str],
) -> Option<(Running, BufReader<std::process::ChildStdout>, String, String)> {
    let (mut recorder, mut output) = record(place, options)?;
    let rest = recorder.told("live on ");
    let (address, command) = rest.split_once(": ").expect("an address");
    let mut words = command.split(' ').skip_while(|word| *word != "--fingerprint");
    let fingerprint = words.nth(1).expect("a fingerprint").to_owned();
    ready(&mut output);
    Some((recorder, output, address.to_owned(), fingerprint))
}

fn refused(place: &Place, arguments: &[&str], words: &[&str]) {
    let output = place.lat(arguments);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments:?}: {text}");
    }
}

#[test]
fn encrypted_copies_are_the_same_and_a_stopped_client_alone_loses() {
    let place = Place::new();
    let options = ["record", "-o", "here", "--live", "127.0.0.1:0", "--tls"];
    // The rings hold all events, so any loss would be caused by a client.
    let small = ["--live-window", "8M", "--packet", "4K", "--buffer", "64M"];
    let Some((mut recorder, mut output, address, known)) =
        encrypted(&place, &[&options[..], &small].concat())
    else {
        return;
    };
    let client = |name: &str| {
        let arguments = ["record", "--connect", &address, "--fingerprint", &known, "-o", name];
        let client = quiet(&place, &arguments);
        wait_for("a client", || place.0.join(name).join("report.json").exists());
        client
    };
    let (first, stopped) = (client("first"), client("stopped"));
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &stopped.0.id().to_string()]).status();
        assert!(status.expect("kill").success());
    };
    signal("-STOP");
    for _ in 0..40 {
        write(&mut recorder, &mut output, 20_000);
        sleep(Duration::from_millis(5));
    }
    let second = client("second");
    for _ in 0..40 {
        write(&mut recorder, &mut output, 20_000);
        sleep(Duration::from_millis(5));
    }
    drop(recorder.0.stdin.take());
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    signal("-CONT");
    let report = place.report("here");
    // The stuck client does not delay the program.
    assert_eq!(report["totals"]["lost"]["total"], 0);
    assert_eq!(report["live"]["fingerprint"], known.as_str());
    let complete = files(&place.0.join("here"));
    for (client, name) in [(first, "first"), (second, "second")] {
        let (status, text) = client.wait();
        let received = place.report(name);
        let dropped = received["received"]["dropped_of"].as_array().expect("a list");
        if !dropped.is_empty() {
            eprintln!("SKIPPED: {name} was too slow here: {dropped:?}");
            continue;
        }
        assert_eq!(status, Some(0), "{text}");
        assert!(files(&place.0.join(name)) == complete, "{name} differs");
        assert!(received["received"]["clock"].is_object(), "{received}");
    }
    let clients = report["live"]["clients"].as_array().expect("clients");
    assert_eq!(clients.len(), 3, "{clients:?}");
    let dropped_packets = |client: &&Value| client["dropped"]["packets"].as_u64();
    let stuck = clients.iter().max_by_key(dropped_packets).expect("clients");
    assert!(stuck["dropped"]["packets"].as_u64() > Some(0), "{stuck}");
    let number = |of: &Value, what: &str| of[what].as_u64().unwrap_or_else(|| panic!("{what}"));
    for what in ["packets", "bytes", "events"] {
        let sum = number(&stuck["sent"], what) + number(&stuck["dropped"], what);
        assert_eq!(sum, number(&report["totals"], what), "{what}: {stuck}");
    }
    // The recording of the stopped client is incomplete, and its report records this.
    assert_eq!(stopped.wait().0, Some(1));
    assert_eq!(place.report("stopped")["complete"], false);
}

#[test]
fn who_is_not_known_gets_nothing_and_is_told_why() {
    let place = Place::new();
    let options = ["live", "127.0.0.1:0", "--tls", "--token", TOKEN];
    let Some((mut recorder, mut output, address, known)) = encrypted(&place, &options) else {
        return;
    };
    let connect = ["record", "--connect", &address, "-o", "x"];
    let with = |more: &[&'static str]| [&connect[..], more].concat();
    // The server is rejected: no TLS, wrong certificate.
    refused(&place, &with(&["--token", TOKEN]), &["encrypted", "--fingerprint"]);
    let zeros = "0".repeat(64);
    let wrong = ["--token", TOKEN, "--fingerprint", &zeros];
    refused(&place, &[&connect[..], &wrong].concat(), &["not the one of --fingerprint"]);
    refused(&place, &with(&["--fingerprint", "12:34"]), &["64 digits"]);
    refused(&place, &with(&["--tls-ca", "missing.pem"]), &["missing.pem"]);
    // The client is rejected.
    let right = ["--fingerprint", &known];
    refused(&place, &[&connect[..], &right].concat(), &["token is wrong"]);
    let token = ["--token", "a secret that is lonG"];
    refused(&place, &[&connect[..], &right, &token].concat(), &["token is wrong"]);
    assert!(!place.0.join("x").exists());
    // The token is sent only to a verified server: no connection is made at all.
    let far = ["record", "--connect", "192.0.2.1:6660", "--token", TOKEN, "-o", "x"];
    refused(&place, &far, &["192.0.2.1:6660", "--fingerprint", "--tls-ca"]);

    // The fingerprint in the format of openssl, and a follower as the client.
    let pairs: Vec<&str> = (0..32).map(|n| &known[2 * n..2 * n + 2]).collect();
    let colons = pairs.join(":").to_uppercase();
    let follow = ["print", "-f", &address, "--event", "server:*"];
    let follower = start(
        &place,
        &[&follow[..], &["--fingerprint", &colons, "--token", TOKEN]].concat(),
        Stdio::null(),
        Stdio::from(fs::File::create(place.0.join("lines")).expect("a file")),
    );
    let arguments = [&connect[..], &right, &["--token", TOKEN]].concat();
    let client = quiet(&place, &arguments);
    wait_for("the client", || place.0.join("x/report.json").exists());
    write(&mut recorder, &mut output, 100);
    let lines = || fs::read_to_string(place.0.join("lines")).expect("text").lines().count();
    wait_for("lines", || lines() == 100);
    drop(recorder.0.stdin.take());
    assert_eq!(recorder.wait().0, Some(0));
    assert_eq!(client.wait().0, Some(0));
    assert_eq!(follower.wait().0, Some(0));
    assert_eq!(place.report("x")["totals"]["events"], 100);

    // A client that requires TLS connects to a server without it.
    let Some((mut recorder, mut output)) = record(&place, &["live", "127.0.0.1:0"]) else { return };
    let address = recorder.address();
    ready(&mut output);
    let connect = ["record", "--connect", &address, "--fingerprint", &known, "-o", "y"];
    refused(&place, &connect, &["no encrypted connection"]);
    drop(recorder.0.stdin.take());
    assert_eq!(recorder.wait().0, Some(0));
}

#[test]
fn half_a_handshake_is_dropped_in_time_and_holds_up_nobody() {
    let place = Place::new();
    let Some((mut recorder, mut output, address, known)) =
        encrypted(&place, &["record", "-o", "here", "--live", "127.0.0.1:0", "--tls"])
    else {
        return;
    };
    // The beginning of a 512-byte record that contains a ClientHello of 508 bytes [RFC 8446 §5.1, §4].
    let half = [&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3][..], &[0; 100]].concat();
    let peer = |bytes: &[u8]| {
        let mut peer = TcpStream::connect(&address).expect("a server");
        let _ = peer.write_all(bytes);
        peer.set_read_timeout(Some(LONG)).expect("a time limit");
        peer
    };
    let mut silent: Vec<TcpStream> =
        [&b""[..], &half[..1], &half[..7], &half].map(peer).into_iter().collect();
    // A peer that sends a byte from time to time.
    let slow_peer = peer(&half);
    let mut writer = slow_peer.try_clone().expect("the same socket");
    let slow = std::thread::spawn(move || {
        let began = Instant::now();
        while writer.write_all(&[0]).is_ok() && began.elapsed() < LONG {
            sleep(Duration::from_millis(50));
        }
        began.elapsed()
    });
    silent.push(slow_peer);
    for bytes in [&b"GET / HTTP/1.0\r\n\r\n"[..], b"LATLIVE\n", &[0; 300], &[22; 300]] {
        drop(peer(bytes));
    }
    write(&mut recorder, &mut output, 1_000);
    let good =
        quiet(&place, &["record", "--connect", &address, "--fingerprint", &known, "-o", "good"]);
    wait_for("the client", || place.0.join("good/report.json").exists());
    write(&mut recorder, &mut output, 1_000);
    // All of them are disconnected: the server closes or resets the connection.
    for mut peer in silent {
        let mut rest = Vec::new();
        let ended = peer.read_to_end(&mut rest);
        let late = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!ended.as_ref().is_err_and(late), "{ended:?}");
    }
    assert!(slow.join().expect("no panic") < LONG);
    // More than are served at once, for as long as the server lets them stay.
    let crowd: Vec<TcpStream> = (0..100).map(|_| peer(&half)).collect();
    write(&mut recorder, &mut output, 1_000);
    drop(crowd);
    drop(recorder.0.stdin.take());
    assert_eq!(good.wait().0, Some(0));
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(place.report("good")["totals"]["events"], 3_000);
    let live = &place.report("here")["live"];
    assert!(live["refused"].as_u64() >= Some(8), "{live}");
    assert_eq!(live["clients"].as_array().map(Vec::len), Some(1), "{live}");
}

/// Runs openssl in the folder; prints a message and returns `None` if it is missing.
fn openssl(place: &Place, arguments: &str) -> Option<()> {
    let run = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(&place.0)
        .stderr(Stdio::null())
        .status();
    if !run.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: openssl does not make certificates here");
        return None;
    }
    Some(())
}

#[test]
fn certificates_of_an_authority_are_checked_with_their_name() {
    let place = Place::new();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test";
    for name in ["ca", "other"] {
        let made = openssl(&place, &format!("req -x509 {key} -keyout {name}.key -out {name}.pem"));
        if made.is_none() {
            return;
        }
    }
    fs::write(place.0.join("ext"), "subjectAltName=IP:127.0.0.1\n").expect("a file");
    openssl(&place, &format!("req -new {key} -keyout own.key -out own.csr")).expect("a request");
    let sign = "x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2";
    openssl(&place, &format!("{sign} -extfile ext -out own.pem")).expect("a certificate");

    let own = |certificate, key| {
        let live = ["live", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key];
        [&live[..], &["--", "true"]].concat()
    };
    refused(&place, &own("own.pem", "missing.key"), &["missing.key"]);
    refused(&place, &own("own.key", "own.key"), &["own.key", "PEM"]);
    refused(&place, &own("own.pem", "other.key"), &["certificate"]);

    let options = ["live", "127.0.0.1:0", "--tls-cert", "own.pem", "--tls-key", "own.key"];
    let Some((mut recorder, mut output, address, known)) = encrypted(&place, &options) else {
        return;
    };
    let port = address.rsplit_once(':').expect("a port").1.to_owned();
    let connect = |to: &str, more: [&str; 2], name: &str| -> Vec<String> {
        let all = ["record", "--connect", to, more[0], more[1], "-o", name];
        all.map(str::to_owned).to_vec()
    };
    let by_name = format!("localhost:{port}");
    for (to, authority) in [(&address, "other.pem"), (&by_name, "ca.pem"), (&address, "own.key")] {
        let arguments = connect(to, ["--tls-ca", authority], "x");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        refused(&place, &arguments, &["ertificate"]);
    }
    let clients = [["--tls-ca", "ca.pem"], ["--fingerprint", &known]].map(|how| {
        let name = how[0].trim_start_matches('-');
        let arguments = connect(&address, how, name);
        let client = quiet(&place, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        wait_for("a client", || place.0.join(name).join("report.json").exists());
        (client, name.to_owned())
    });
    write(&mut recorder, &mut output, 100);
    drop(recorder.0.stdin.take());
    assert_eq!(recorder.wait().0, Some(0));
    for (client, name) in clients {
        assert_eq!(client.wait().0, Some(0));
        assert_eq!(place.report(&name)["totals"]["events"], 100);
    }
}
