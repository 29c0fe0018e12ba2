// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several programs in one set of rings, and the effect of the limits of an area's tables.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::{Workshop, command};
use crate::{SCHEMA, check, options, record};

/// Writes a thousand events with its number; half of them from a thread.
const WRITER: &str = r#"
    #include <pthread.h>
    #include <stdlib.h>
    static uint32_t number;
    static void *half(void *first) {
        for (uint32_t n = 0; n < 500; n++) lat_app_pair(number, (uint32_t)(uintptr_t)first + n);
        return 0;
    }
    int main(int argc, char **argv) {
        pthread_t thread;
        number = (uint32_t)atoi(argv[argc - 1]);
        pthread_create(&thread, 0, half, (void *)500);
        half(0);
        pthread_join(thread, 0);
        return 0;
    }
"#;

/// The two fields of a pair in a line of babeltrace2.
fn pair(line: &str) -> Option<(u32, u32)> {
    let fields = line.contains("app:PAIR").then(|| line.rsplit_once('{'))??.1;
    let mut numbers = fields.split([',', '}', ' ']).filter_map(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

#[test]
fn programs_share_their_rings() {
    let Some(workshop) = Workshop::new("shared") else { return };
    let names = ["one", "two", "three"];
    let programs = names.map(|name| workshop.compile(name, SCHEMA, WRITER));
    let [one, two, three] = programs.each_ref().map(|path| path.to_str().unwrap());
    // Three at the same time, then one after the other: the area outlives them all.
    let script = format!("{one} 0 & {two} 1 & {three} 2 & wait; {one} 3; sleep 0.3; {two} 4");
    for kind in ["cpu", "thread"] {
        let mut options = options(&workshop, kind);
        options.shared = true;
        let mut session = lateralis_recorder::linux::Session::new(options).unwrap();
        session
            .launch(&command(&["sh", "-c", &script]), &[("LATERALIS_RING".into(), kind.into())])
            .unwrap();
        let summary = session.run(&mut |_| {}).unwrap();
        let report = &summary.report;
        assert_eq!(report.problems, Vec::<String>::new());
        assert_eq!(report.areas.len(), 1, "{kind}");
        assert_eq!(report.events["app:PAIR"], 5000, "{kind}");
        assert_eq!(report.totals.lost.total, 0, "{kind}");
        assert_eq!(report.totals.damaged_packets, 0, "{kind}");
        // One schema, registered once although each program contains it.
        assert_eq!(report.areas[0].schemas, ["app"]);
        let mut by_name: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for process in &report.processes {
            by_name.entry(&process.name).or_default().insert(process.pid);
        }
        let counts: Vec<_> = by_name.iter().map(|(name, pids)| (*name, pids.len())).collect();
        assert_eq!(counts, [("one", 2), ("three", 1), ("two", 2)], "{kind}");
        assert_eq!(workshop.areas_left(), Vec::<std::path::PathBuf>::new(), "{kind}");
        let Some(read) = check(&summary) else { continue };
        let mut numbers: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (number, n) in read.lines.iter().filter_map(|line| pair(line)) {
            assert!(numbers.entry(number).or_default().insert(n), "{number} {n} twice");
        }
        let whole: BTreeSet<u32> = (0..1000).collect();
        assert_eq!(numbers.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert!(numbers.values().all(|found| *found == whole), "{kind}");
    }
}

#[test]
fn a_process_that_executes_another_program_has_its_name() {
    let Some(workshop) = Workshop::new("renamed") else { return };
    let writer = workshop.compile("writer", SCHEMA, WRITER);
    let launcher = workshop.compile(
        "launcher",
        SCHEMA,
        r#"
        #include <sys/wait.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            if (fork() == 0) {
                lat_app_named("before", 0);
                execl(argv[1], argv[1], "0", (char *)0);
                _exit(1);
            }
            lat_app_named("parent", (uint32_t)argc);
            wait(0);
            return 0;
        }
        "#,
    );
    let mut options = options(&workshop, "out");
    options.shared = true;
    let words = [launcher.to_str().unwrap(), writer.to_str().unwrap()];
    let summary = record(options, &command(&words));
    let report = &summary.report;
    assert_eq!(summary.exit_status, Some(0));
    assert_eq!(report.areas.len(), 1);
    assert_eq!(report.events["app:NAMED"], 2);
    assert_eq!(report.events["app:PAIR"], 1000);
    assert_eq!(report.totals.lost.total, 0);
    let names: BTreeSet<&str> = report.processes.iter().map(|process| &*process.name).collect();
    assert_eq!(names, BTreeSet::from(["launcher", "writer"]));
    assert_eq!(report.processes.len(), 2);
    check(&summary);
}

#[test]
fn more_processes_than_places_are_recorded_and_told() {
    let Some(workshop) = Workshop::new("many") else { return };
    let binary = workshop.compile(
        "many",
        SCHEMA,
        r#"
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            int gate[2];
            char c;
            if (pipe(gate) != 0) return 1;
            for (uint32_t child = 0; child < 140; child++) {
                if (fork() == 0) {
                    close(gate[1]);
                    lat_app_pair(child, 0);
                    if (read(gate[0], &c, 1) != 0) return 1;
                    usleep(50000); /* longer than the parent */
                    for (uint32_t n = 1; n < 50; n++) lat_app_pair(child, n);
                    _exit(0);
                }
            }
            usleep(100000);
            return 0;
        }
        "#,
    );
    let mut options = options(&workshop, "out");
    options.follow = true;
    let summary = record(options, &command(&[binary.to_str().unwrap()]));
    let report = &summary.report;
    assert_eq!(report.events["app:PAIR"], 140 * 50);
    assert_eq!(report.totals.lost.total, 0);
    assert_eq!(report.processes.len(), 141);
    assert_eq!(report.areas[0].lost_schemas, 0);
    let told = report.problems.iter().any(|text| text.contains("names of 13 processes"));
    assert!(told, "{:?}", report.problems);
    check(&summary);
}

#[test]
fn more_schemas_than_places_are_told() {
    let Some(workshop) = Workshop::new("schemas") else { return };
    let binary = workshop.compile(
        "schemas",
        SCHEMA,
        r#"
        #include <stdio.h>
        #include <stdlib.h>
        static const uint8_t zeros[1];
        int main(void) {
            for (unsigned i = 0; i < 260; i++) {
                struct lat_schema *schema = calloc(1, sizeof *schema);
                char *text = malloc(200), *name = malloc(16);
                sprintf(name, "s%u", i);
                const int bytes = sprintf(text, "schema s%u; subsystem s%u { event E (), };",
                                          i, i);
                *schema = (struct lat_schema){zeros, 0, 1, 0x5000000000u + i, name, text,
                                              (uint32_t)bytes, 0};
                lat_register(schema);
                if (schema->enabled[0]) lat_i_emit_words(schema->base_id, 0, 0);
            }
            lat_app_tick(1);
            return 0;
        }
        "#,
    );
    let summary = record(options(&workshop, "out"), &command(&[binary.to_str().unwrap()]));
    let report = &summary.report;
    assert_eq!(report.events["app:TICK"], 1);
    assert_eq!(report.totals.events, 1 + 255);
    assert_eq!(report.totals.lost.total, 0);
    assert_eq!(report.areas[0].lost_schemas, 5);
    let told = report.problems.iter().any(|text| text.contains("schemas=256"));
    assert!(told, "{:?}", report.problems);
    check(&summary);
}
