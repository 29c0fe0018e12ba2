// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A compromised program that gave up its rights cannot use a recorder with more rights to act
//! for it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use lateralis_recorder::linux::Session;

use crate::program::{Workshop, command};
use crate::{SCHEMA, options};

/// A program with a gate that one of its instructions keeps closed, and with data at a known address that
/// looks like a list of patchable sites, one of which is that instruction.
const DEPUTY: &str = r#"
    #include <fcntl.h>
    #include <grp.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/wait.h>
    #include <unistd.h>
    struct fake { struct { uint64_t next, begin, end; } table;
                  struct { int32_t site, target, schema; uint32_t index; } site;
                  struct { uint64_t enabled; uint32_t base_id, event_count; } schema; };
    static struct fake fake;
    extern char gate_jmp[], gate_deny[];
    __attribute__((noinline)) static int gate_is_open(void) {
        __asm__ goto(".globl gate_jmp\ngate_jmp: .byte 0xe9\n .long %l0 - gate_jmp - 5\n"
                     : : : : deny);
        return 1;
    deny:
        return 0;
    }
    static void prepare(void) {
        int32_t distance;
        memcpy(&distance, gate_jmp + 1, 4);
        const char *target = gate_jmp + 5 + distance;
        fake.table.begin = (uint64_t)&fake.site;
        fake.table.end = (uint64_t)(&fake.site + 1);
        fake.site.site = (int32_t)(gate_jmp - (char *)&fake.site.site);
        fake.site.target = (int32_t)(target - (char *)&fake.site.target);
        fake.site.schema = (int32_t)((char *)&fake.schema - (char *)&fake.site.schema);
        fake.schema.base_id = 5000;
        fake.schema.event_count = 1;
    }
    static void forge(uint32_t pid, uint64_t table) {
        char line[512];
        char *area = 0;
        FILE *maps = fopen("/proc/self/maps", "r");
        while (maps && !area && fgets(line, sizeof line, maps))
            if (strstr(line, ".area")) area = (char *)strtoul(line, 0, 16);
        struct lat_area_process *slots = (void *)(area + LAT_AREA_PROCESSES_OFFSET);
        slots[100] = slots[0];
        slots[100].pid = pid;
        slots[100].patch_table = table;
    }
    static void drop_rights(void) {
        if (setgroups(0, 0) || setgid(65534) || setuid(65534)) _exit(9);
    }
    static int watch(void) {
        for (int i = 0; i < 30; i++) {
            if (gate_is_open()) return 7;
            usleep(100000);
        }
        return 0;
    }
    int main(int argc, char **argv) {
        prepare();
        if (strcmp(argv[1], "serve") == 0) {
            printf("%d %llu\n", (int)getpid(), (unsigned long long)(uintptr_t)&fake.table);
            fflush(stdout);
            return watch();
        }
        lat_app_tick(1);
        if (strcmp(argv[1], "attack") == 0) {
            drop_rights();
            forge((uint32_t)atoi(argv[2]), strtoull(argv[3], 0, 10));
            return watch();
        }
        /* A worker of a program that has its rights still: both map the area. */
        const pid_t parent = getpid();
        const pid_t worker = fork();
        if (worker == 0) {
            drop_rights();
            forge((uint32_t)parent, (uint64_t)(uintptr_t)&fake.table);
            _exit(0);
        }
        waitpid(worker, 0, 0);
        return watch();
    }
"#;

fn deputy(name: &str) -> Option<(Workshop, std::path::PathBuf)> {
    if !rustix::process::geteuid().is_root() || !cfg!(target_arch = "x86_64") {
        eprintln!("SKIPPED: {name}: needs root on x86-64");
        return None;
    }
    let workshop = Workshop::new(name)?;
    let binary = workshop.compile_with("deputy", SCHEMA, DEPUTY, &["-fno-reorder-blocks"]);
    Some((workshop, binary))
}

/// Records for a second: at its end all events are disabled, and sites are updated.
fn record(workshop: &Workshop, words: &[&str]) -> Option<i32> {
    let mut options = options(workshop, "out");
    options.duration = Some(Duration::from_secs(1));
    let mut session = Session::new(options).unwrap();
    session.launch(&command(words), &[]).unwrap();
    let summary = session.run(&mut |_| {}).unwrap();
    assert_eq!(summary.report.totals.events, 1);
    summary.exit_status
}

#[test]
fn a_process_that_has_no_part_in_an_area_is_never_changed() {
    let Some((workshop, binary)) = deputy("deputy-other") else { return };
    let mut victim = Command::new(&binary)
        .arg("serve")
        .env("LATERALIS_DISABLE", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(victim.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (pid, table) = line.trim().split_once(' ').unwrap();
    let status = record(&workshop, &[binary.to_str().unwrap(), "attack", pid, table]);
    assert_eq!(status, Some(0));
    assert_eq!(victim.wait().unwrap().code(), Some(0), "its gate was opened");
}

#[test]
fn a_worker_without_rights_gets_nothing_changed_in_its_parent() {
    let Some((workshop, binary)) = deputy("deputy-parent") else { return };
    let status = record(&workshop, &[binary.to_str().unwrap(), "worker"]);
    assert_eq!(status, Some(0), "the gate of its parent was opened");
}
