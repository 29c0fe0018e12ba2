// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Sandboxed programs: after a seccomp filter that kills for every system call except those that the programs
 * make themselves, they record, and end as without the tracer. */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/ledger.h"
#include "../support/traced_drain.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#define EVENTS 3000u

/* ---- roles ----------------------------------------------------------------------- */

/* Kills the process for every system call that is not in the list, which ends with -1. */
static int lock_in(const int *allowed)
{
    struct sock_filter program[64];
    unsigned short length = 0;
    program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                     offsetof(struct seccomp_data, nr));
    for (; *allowed >= 0; allowed++) {
        program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                         (unsigned)*allowed, 0, 1);
        program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    const struct sock_fprog filter = {length, program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

static const int only_exit[] = {SYS_exit_group, -1};
static void emit_all(uint64_t writer)
{
    for (uint64_t i = 0; i < EVENTS; i++)
        value_emit(writer, i);
}

/* The first event is recorded in the sandbox. */
static int alone(void)
{
    if (!lock_in(only_exit))
        return 77;
    emit_all(0);
    return 3;
}

static int no_event(void)
{
    return lock_in(only_exit) ? 3 : 77;
}

/* A worker whose parent has recorded and whose sibling runs; it ends by exit. */
static int worker(int events_before)
{
    int status;
    if (events_before)
        value_emit(1, 0);
    const pid_t brother = fork();
    if (brother == 0) {
        pause();
        _exit(0);
    }
    const pid_t pid = fork();
    if (pid == 0) {
        if (!lock_in(only_exit))
            exit(77);
        emit_all(0);
        exit(3);
    }
    if (waitpid(pid, &status, 0) != pid)
        return 1;
    kill(brother, SIGKILL);
    waitpid(brother, NULL, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The process created without libc differs from its parent: it records under its own pid. */
static int raw_fork(void)
{
    int status;
    const pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        emit_all(0);
        _exit(3);
    }
    value_emit(1, 0);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static volatile int locked;
static void *thread_in_sandbox(void *unused)
{
    value_emit(1, 0); /* from here on its id is known */
    while (!locked)
        usleep(100);
    emit_all(0);
    return unused;
}

static int threads(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_in_sandbox, NULL) != 0)
        return 1;
    usleep(20000);
    /* The system calls of libc for a thread that ends and one that joins it. */
    const int allowed[] = {SYS_exit_group,      SYS_exit,        SYS_futex,       SYS_madvise,
                           SYS_munmap,          SYS_rt_sigprocmask, SYS_sched_yield,
                           SYS_clock_nanosleep, SYS_set_robust_list, -1};
    if (!lock_in(allowed))
        return 77;
    locked = 1;
    pthread_join(thread, NULL);
    return 3;
}

/* ---- facts ------------------------------------------------------------------------ */

static void sandboxed(const char *name, const char *role, uint64_t before, uint64_t events)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    traced_make(&traced, 1 << 20, 16384, "discard");
    traced_start(&traced, role, NULL);
    const int status = traced_wait(&traced);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip_fact(name, "no seccomp filters here");
        traced_remove(&traced);
        return;
    }
    CHECK(!WIFSIGNALED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 3);
    if (CHECK(find_traced(&reader, &traced))) {
        ledger_make(&ledger, &reader, 2, EVENTS);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        reader_drain(&reader, 0);
        check(reader.problem[0] == 0, "%s", reader.problem);
        CHECK_EQUAL(reader_losses(&reader), 0);
        CHECK_EQUAL(ledger.found, events);
        CHECK_EQUAL(ledger.misattributed, 0);
        if (before != 0 && strcmp(role, "threads") != 0)
            CHECK(ledger.tid[0] != ledger.tid[1]);
        ledger_free(&ledger);
        reader_close(&reader);
    }
    fact(name);
    traced_remove(&traced);
}

/* Without a recorder: the program leaves its area, marked as over, and the next program removes
 * it. */
static void areas_of_programs_that_are_over(void)
{
    struct traced traced;
    traced_make(&traced, 0, 0, "");
    for (int i = 0; i < 5; i++) {
        traced_start(&traced, "no-event", NULL);
        const int status = traced_wait(&traced);
        CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 77));
        CHECK_EQUAL(reader_count_areas(traced.directory), 1);
    }
    fact("areas of programs that are over do not pile up");
    traced_remove(&traced);
}

int main(int count, char **arguments)
{
    const char *role = count > 1 ? arguments[1] : "";
    if (strcmp(role, "alone") == 0)
        return alone();
    if (strcmp(role, "no-event") == 0)
        return no_event();
    if (strcmp(role, "worker") == 0)
        return worker(1);
    if (strcmp(role, "worker-first") == 0)
        return worker(0);
    if (strcmp(role, "threads") == 0)
        return threads();
    if (strcmp(role, "raw-fork") == 0)
        return raw_fork();
    sandboxed("the first event in a sandbox that allows nothing", "alone", 0, EVENTS);
    sandboxed("no event in a sandbox", "no-event", 0, 0);
    sandboxed("a worker in a sandbox", "worker", 1, EVENTS + 1);
    sandboxed("a worker in a sandbox that writes first", "worker-first", 0, EVENTS);
    sandboxed("a thread in a sandbox", "threads", 1, EVENTS + 1);
    sandboxed("a process forked past libc", "raw-fork", 1, EVENTS + 1);
    areas_of_programs_that_are_over();
    return check_status();
}
