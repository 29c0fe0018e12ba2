// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Policies on threads, writers of policies, and filters of programs that write at once: the files
//! contain exactly the selected events, from the first one on.

use std::ffi::OsString;
use std::path::Path;

use lateralis_recorder::linux::{Request, Session, Summary, recorders};
use lateralis_recorder::report::Origin;
use lateralis_recorder::{Error, Filter, RecordOptions, Report, policy};

use crate::policy::until;
use crate::program::{Workshop, command};
use crate::{SCHEMA, check, options};

/// Writes ticks and pairs at once, and then creates a file.
const AT_ONCE: &str = r#"
    #include <stdio.h>
    int main(int argc, char **argv) {
        for (uint32_t n = 0; n < 2000; n++) { lat_app_tick(n); lat_app_pair(n % 10, n); }
        return argc < 2 || fopen(argv[1], "w") == 0;
    }
"#;

/// Threads of several names, each of which writes a thousand ticks and pairs; then creates a file.
const NAMED: &str = r#"
    #include <pthread.h>
    #include <stdio.h>
    #include <sched.h>
    #include <sys/prctl.h>
    static void write_all(void) {
        for (uint32_t n = 0; n < 1000; n++) {
            lat_app_tick(n);
            lat_app_pair(1, n);
            if (n % 100 == 0) sched_yield();
        }
    }
    static void *work(void *name) {
        prctl(PR_SET_NAME, name, 0, 0, 0);
        write_all();
        return 0;
    }
    int main(int argc, char **argv) {
        char *names[] = {"ep", "worker-1", "worker-2", "ep-2"};
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, names[i]);
        write_all();
        for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
        return argc < 2 || fopen(argv[1], "w") == 0;
    }
"#;

/// Records a program that has ended before its recorder searches for it the first time.
fn after_its_end(
    workshop: &Workshop,
    options: RecordOptions,
    program: &Path,
    ring: &str,
) -> Summary {
    let done = workshop.path("done");
    let _ = std::fs::remove_file(&done);
    let mut session = Session::new(options).unwrap();
    let environment = [(OsString::from("LATERALIS_RING"), OsString::from(ring))];
    let words = command(&[program.to_str().unwrap(), done.to_str().unwrap()]);
    session.launch(&words, &environment).unwrap();
    until("the program has written", || done.exists());
    session.run(&mut |_| {}).unwrap()
}

fn policies(text: &str) -> Option<policy::Policies> {
    Some(policy::parse("test.toml", text).unwrap_or_else(|faults| panic!("{}", faults[0])))
}

#[test]
fn a_filter_holds_from_the_first_event_of_a_program_that_is_started() {
    let Some(workshop) = Workshop::new("filter-launched") else { return };
    let program = workshop.compile("at_once", SCHEMA, AT_ONCE);
    for ring in ["cpu", "thread"] {
        let mut options = options(&workshop, ring);
        let texts = ["app:TICK: n >= 1995 or n == 3", "app:PAIR: thread == 7"];
        options.filters = texts.map(|text| Filter::parse(text).unwrap()).to_vec();
        let summary = after_its_end(&workshop, options, &program, ring);
        let report = &summary.report;
        assert_eq!((report.events["app:TICK"], report.events["app:PAIR"]), (6, 200));
        assert_eq!((report.totals.lost.total, &report.problems), (0, &Vec::new()));
        assert_eq!(report.areas[0].filters, texts);
        // No recorder could filter in the program: all of them had been in its rings.
        assert_eq!(report.areas[0].left_out, 4000 - 206);
        if let Some(read) = check(&summary) {
            assert_eq!(read.warnings, "");
        }
    }
}

#[test]
fn each_thread_has_its_own_policy() {
    let Some(workshop) = Workshop::new("policy-threads") else { return };
    let program = workshop.compile("named", SCHEMA, NAMED);
    for ring in ["cpu", "thread"] {
        let mut options = options(&workshop, ring);
        options.policies = policies(
            "[[policy]]\nprogram = \"named\"\nthread = \"ep\"\nenable = \"app:TICK\"\n\
             [[policy]]\nprogram = \"named\"\nthread_prefix = \"worker\"\nrecord = false\n\
             [[policy]]\nprogram = \"named\"\nthread_pattern = \"ep-?\"\n\
             filter = [\"app:TICK: n < 10\", \"app:PAIR: n < 5\"]\n\
             [[policy]]\nprogram = \"named\"\nenable = \"app:PAIR\"\n",
        );
        let summary = after_its_end(&workshop, options, &program, ring);
        let report = &summary.report;
        assert_eq!((report.totals.lost.total, &report.problems), (0, &Vec::new()));
        // `ep` has its ticks, `ep-2` ten and five, the first thread its pairs, the workers nothing.
        assert_eq!((report.events["app:TICK"], report.events["app:PAIR"]), (1010, 1005));
        assert_eq!(report.areas[0].left_out, 10_000 - 2015);
        check(&summary);
    }
}

/// The separate recording of a policy, from its report.
fn written(path: &Path) -> Summary {
    let text = std::fs::read_to_string(path.join("report.json")).unwrap();
    let report = Report::from_json(&text).unwrap();
    Summary { output: path.to_owned(), report, exit_status: None }
}

#[test]
fn a_policy_has_a_recording_of_its_own() {
    let Some(workshop) = Workshop::new("policy-writer") else { return };
    let [one, two] = ["one", "two"].map(|name| workshop.compile(name, SCHEMA, AT_ONCE));
    let elsewhere = workshop.path("elsewhere");
    let text = format!(
        "[[policy]]\nprogram = \"one\"\noutput = {:?}\nlive = \"127.0.0.1:0\"\nfilter = \
         \"app:TICK: n < 7\"\n[[policy]]\n",
        elsewhere
    );
    let mut chosen = options(&workshop, "out");
    chosen.policies = policies(&text);
    let done = workshop.path("done");
    let script =
        format!("{} {done}; {} {done}", one.display(), two.display(), done = done.display());
    let mut session = Session::new(chosen.clone()).unwrap();
    let outputs = session.policy_outputs();
    assert!(outputs[0].path.ends_with("elsewhere") && outputs[0].live.is_some(), "{outputs:?}");
    session.launch(&command(&["sh", "-c", &script]), &[]).unwrap();
    let summary = session.run(&mut |_| {}).unwrap();
    check(&summary);
    let own = written(&elsewhere);
    check(&own);
    assert_eq!(own.report.origin, Origin::Recorded);
    assert_eq!((own.report.events["app:TICK"], own.report.events["app:PAIR"]), (7, 2000));
    assert_eq!(
        (summary.report.events["app:TICK"], summary.report.events["app:PAIR"]),
        (2000, 2000)
    );
    assert_ne!(own.report.trace_uuid, summary.report.trace_uuid);
    // Each report describes the other recording.
    let said = &summary.report.outputs[0];
    assert_eq!((said.complete, said.totals), (true, own.report.totals));
    assert_eq!(summary.report.areas.len(), 2);
    let elsewhere_areas = summary.report.areas.iter().filter(|area| area.output.is_some());
    assert_eq!(elsewhere_areas.count(), 1);
    // The recorder can reach the program while it writes; events that the program's own filter rejects
    // from then on are not counted.
    assert!(own.report.areas[0].left_out <= 2000 - 7, "{:?}", own.report.areas);
    assert!(own.report.processes.iter().all(|process| process.exe.ends_with("/one")));
    // Existing output is not overwritten, and nothing is started.
    chosen.output = workshop.path("again");
    assert!(matches!(Session::new(chosen), Err(Error::OutputExists(_))));
}

#[test]
fn who_records_what_can_be_asked() {
    let Some(workshop) = Workshop::new("recorders") else { return };
    let areas = workshop.areas();
    assert!(recorders(Some(&areas)).is_empty());
    let start = |name: &str| {
        let mut options = options(&workshop, name);
        options.policies = policies("[[policy]]\nrecord = false\n");
        std::thread::spawn(move || {
            let mut session = Session::new(options).unwrap();
            // Nothing is selected: it continues until it is ended from outside.
            session.watch().unwrap();
            session.run(&mut |_| {}).unwrap()
        })
    };
    let first = start("first");
    until("the recorder answers", || recorders(Some(&areas)).len() == 1);
    let found = recorders(Some(&areas)).remove(0);
    assert_eq!(found.pid, std::process::id());
    let output = found.answer.output.as_deref();
    assert_eq!(output, Some(workshop.path("first").canonicalize().unwrap().as_path()));
    assert!(found.ask(Request::Stop).unwrap().paused && !found.ask(Request::Start).unwrap().paused);
    found.ask(Request::End).unwrap();
    first.join().unwrap();
    assert!(recorders(Some(&areas)).is_empty());
    assert!(found.ask(Request::Status).is_err());
}
