// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Leaks memory, so that a leak check scans all of the process's memory. */
#include "../../examples/eg.h"

#include <stdlib.h>

int main(void)
{
    void *volatile lost = malloc(100);
    lost = malloc(200);
    lat_eg_queue(1);
    lost = NULL;
    return lost != NULL;
}
