// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Drains a traced program's rings while it runs. */
#ifndef TEST_TRACED_DRAIN_H
#define TEST_TRACED_DRAIN_H

#include "area_reader.h"
#include "traced.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/** Finds the program's area, once its schema is registered. */
static inline int find_traced(struct reader *reader, const struct traced *traced)
{
    if (!reader_find(reader, traced->directory))
        return 0;
    for (int tries = 0; tries < 2000 && reader->tests_base == 0; tries++) {
        reader->tests_base = reader_schema(reader, "tests", NULL, NULL, NULL);
        usleep(reader->tests_base == 0 ? 1000 : 0);
    }
    return reader->tests_base != 0;
}

/** Drains until the program has ended; kills it at the first problem. @return its wait status. */
static inline int drain_until_end(struct reader *reader, const struct traced *traced, int give_back)
{
    int status = -1;
    while (waitpid(traced->pid, &status, WNOHANG) == 0) {
        reader_drain(reader, give_back);
        if (reader->problem[0] != 0)
            kill(traced->pid, SIGKILL);
        usleep(500);
    }
    reader_drain(reader, give_back);
    return status;
}

#endif
