// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Runs traced programs from a test. A test program has two roles: started by the runner with
 * LATERALIS_DISABLE it only observes; it starts itself again, without that, as `PROGRAM ROLE …`,
 * in a directory of its own, and reads the areas of that run.
 */
#ifndef TEST_TRACED_H
#define TEST_TRACED_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct traced {
    char directory[128]; /* LATERALIS_DIR */
    char record[256];    /* LATERALIS_RECORD; empty: no request */
    char ring[16];       /* LATERALIS_RING */
    char output[160];    /* file for its standard output and error; empty: inherited */
    pid_t pid;
};

/** Creates a fresh private directory. `buffer` 0: nothing is recorded at start. */
void traced_make(struct traced *traced, uint64_t buffer, uint64_t packet, const char *mode);
/** Starts this program again in a role. Arguments end with NULL. */
void traced_start(struct traced *traced, const char *role, ...) __attribute__((sentinel));
/** Starts any program in the directory. */
void traced_exec(struct traced *traced, char *const arguments[]);
/** @return its wait status. */
int traced_wait(struct traced *traced);
/** Removes the directory with its content. */
void traced_remove(struct traced *traced);
/** The ring kind of TEST_RING in the environment: "cpu" or "thread". */
const char *traced_kind(void);
/** Whether per-CPU rings can be expected in this environment. */
int traced_has_rseq(void);

#ifdef __cplusplus
}
#endif

#endif
