// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Several processes: children of a fork write into the area and the rings of their parent. */
#include "eg.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    for (unsigned child = 0; child < 3; child++) {
        if (fork() == 0) {
            LAT_SPAN_EG_WORK(child);
            lat_eg_queue(child);
            return 0;
        }
    }
    while (wait(NULL) > 0)
        lat_mark("a child has ended");
    puts("done");
    return 0;
}
