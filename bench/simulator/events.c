// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The events of tracer/c/counts in a machine without a recorder, which would create the directory of
 * rings. */
#include "../../tracer/c/counts/record.c"

#include <sys/stat.h>

#define RINGS "/dev/shm/lateralis-events"

static __attribute__((constructor(101))) void make_directory(void)
{
    if (mkdir(RINGS, 0700) == 0)
        setenv("LATERALIS_DIR", RINGS, 1);
#ifdef LAT_RING_THREAD
    setenv("LATERALIS_RING", "thread", 1);
#endif
}
