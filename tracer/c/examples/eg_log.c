// SPDX-License-Identifier: Apache-2.0 OR MIT
/* <lat/log.h>: events without a schema. */
#include <lat/log.h>

#include <stdio.h>

int main(void)
{
    for (unsigned attempt = 1; attempt <= 3; attempt++)
        LAT_LOG("attempt %u of %s took %.1f ms", attempt, "connect", attempt * 0.5);
    LAT_LOG("gave up");
    puts("done");
    return 0;
}
