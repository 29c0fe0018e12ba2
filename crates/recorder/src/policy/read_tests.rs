// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;

const ALL: &str = r#"
# Two servers and nothing else.
[[policy]]
name = "web"
program = "nginx"
command_pattern = "*--port 80*"
label_suffix = "bash -> nginx"
cgroup_prefix = "/user.slice"
user = 1000
enable = ["http", "db:QUERY*"]
disable = "http:BYTE"
filter = ["http:GET: bytes > 4096 and not status == 200"]
with = ["mutex", "io"]
buffer = "1M"
packet = 8192
mode = "overwrite"

[[policy]]
record = false
"#;

#[test]
fn everything_that_can_be_said_is_understood() {
    let policies = parse("p.toml", ALL).unwrap();
    assert_eq!(policies.with, ["mutex", "io"]);
    let [web, none] = &policies.list[..] else { panic!("two policies") };
    assert_eq!((web.name.as_str(), none.name.as_str()), ("web", "policy 2"));
    assert_eq!(web.conditions.len(), 5);
    let choice = web.choice.as_ref().unwrap();
    assert_eq!(choice.enable.to_string(), "http,db:QUERY*,mutex,io,!http:BYTE");
    assert_eq!((choice.buffer_bytes, choice.packet_bytes), (Some(1 << 20), Some(8192)));
    assert_eq!(choice.mode, Some(RingMode::Overwrite));
    assert_eq!(choice.filters[0].event, "http:GET");
    assert_eq!(none.choice, None);
}

#[test]
fn threads_and_writers_are_understood() {
    let text = "[[policy]]\nprogram = \"a\"\nthread = \"ep\"\nthread_pattern = \"e*\"\noutput = \"x\"\n\
        live = \"127.0.0.1:0\"\n[[policy]]\nthread_prefix = \"w\"\n[[policy]]\n";
    let list = parse("p.toml", text).unwrap().list;
    assert!(list[0].threads.iter().all(|one| one.holds("ep") && !one.holds("w1")));
    assert!(list[1].threads[0].holds("w1") && list[2].threads.is_empty());
    let choice = list[0].choice.as_ref().unwrap();
    assert_eq!(choice.output.as_deref(), Some(std::path::Path::new("x")));
    assert_eq!(choice.live.as_deref(), Some("127.0.0.1:0"));
}

fn check(text: &str, line: usize, column: usize, said: &str) {
    let faults = parse("p.toml", text).expect_err(text);
    let first = &faults[0];
    let all = first.to_string();
    assert_eq!((first.line, first.column), (line, column), "{all}");
    assert!(all.contains(said), "{all}");
}

#[test]
fn faults_have_their_place_and_what_would_be_right() {
    check("", 1, 1, "[[policy]]");
    check("[[policy]]\nenabel = []", 2, 1, "did you mean `enable`");
    check("[[policy]]\nprogram_sufix = \"x\"", 2, 1, "`program_suffix`");
    check("[[polcy]]\n", 1, 3, "unknown key `polcy`");
    check("policy = 1", 1, 1, "[[policy]]");
    check("[[policy]]\nprogram = 3", 2, 11, "not a text");
    check("[[policy]]\nprogram = \"\"", 2, 11, "nothing can be compared");
    check("[[policy]]\nenable = [\"a\", \"b c\"]", 2, 16, "SUBSYSTEM:EVENT");
    check("[[policy]]\nenable = [\"a,b\"]", 2, 11, "SUBSYSTEM:EVENT");
    check("[[policy]]\nwith = [\"mutx\"]", 2, 9, "did you mean `mutex`");
    check("[[policy]]\nmode = \"overwrit\"", 2, 8, "did you mean `overwrite`");
    check("[[policy]]\nbuffer = \"4X\"", 2, 10, "not a size");
    check("[[policy]]\npacket = 12", 2, 10, "from 4096");
    check("[[policy]]\nfilter = \"a:B: x >\"", 2, 10, "a number or a label");
    check("[[policy]]\nfilter = [\"a:B: x > 1\", \"a:B: x > 2\"]", 2, 25, "second filter");
    check("[[policy]]\nrecord = 1", 2, 10, "true or false");
    check("[[policy]]\nrecord = false\nbuffer = \"1M\"", 2, 1, "`buffer` means nothing");
    check("[[policy]]\nthread = \"sixteen bytes so\"", 2, 10, "at most 15 bytes");
    check("[[policy]]\nthread_sufix = \"x\"", 2, 1, "`thread_suffix`");
    check("[[policy]]\nthread = \"\"", 2, 10, "nothing can be compared");
    check(
        "[[policy]]\nthread = \"a\"\nmode = \"discard\"\n[[policy]]\nmode = \"overwrite\"",
        5,
        1,
        "share",
    );
    check("[[policy]]\nlive = \"127.0.0.1:0\"", 2, 8, "needs a folder");
    check("[[policy]]\noutput = 3", 2, 10, "not a text");
    check("[[policy]]\nrecord = false\noutput = \"x\"", 2, 1, "`output` means nothing");
    check("[[policy]]\n[[policy]]\n", 2, 1, "never reached");
    check("[[policy]]\nprogram = \"a", 2, 13, "");
    check("[[policy]]\nprogram = \"a\"\nprogram = \"b\"", 3, 1, "duplicate");
}

#[test]
fn all_faults_are_told_at_once() {
    let text = "[[policy]]\nenabel = []\nmode = 3\n[[policy]]\nprogramm = \"x\"\n";
    let lines: Vec<usize> = parse("p.toml", text).unwrap_err().iter().map(|f| f.line).collect();
    assert_eq!(lines, [2, 3, 5]);
}

#[test]
fn sizes_are_read_as_people_write_them() {
    assert_eq!(bytes_of("64K"), Some(65536));
    assert_eq!(bytes_of("4MiB"), Some(4 << 20));
    assert_eq!(bytes_of("12"), Some(12));
    assert_eq!(bytes_of("K"), None);
    assert_eq!(bytes_of("99999999999999999999G"), None);
    assert_eq!(bytes_of("18446744073709551615K"), None);
}
