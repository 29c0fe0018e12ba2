// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The example as a process: the first argument is the file that gets the memory of the area. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "board.h"
#include "machine.h"

#ifndef AREA_BYTES
#define AREA_BYTES 65536u
#endif
uint64_t lat_port_area[AREA_BYTES / 8u];
const uint32_t board_area_bytes = AREA_BYTES;
static const char *memory_file;

void board_put(char c)
{
    putchar(c);
}

_Noreturn void board_stop(void)
{
    FILE *const file = fopen(memory_file, "wb");
    if (file == NULL || fwrite(lat_port_area, 1, sizeof lat_port_area, file) != sizeof lat_port_area ||
        fclose(file) != 0) {
        fprintf(stderr, "error: %s: cannot write\n", memory_file);
        exit(2);
    }
    exit(0);
}

static void *end(void *unused)
{
    pthread_exit(unused);
}

/* The kernel's port ends the threads of deleted tasks. The first thread to end in this way loads a library
 * under a lock; a tick at that time would switch to a thread that waits for that lock forever. */
void machine_begin(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, end, NULL) == 0)
        pthread_join(thread, NULL);
}

/* The tick is the only interrupt, and its hook runs in it. */
void machine_interrupt_soon(void)
{
    example_interrupt();
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    memory_file = argv[1];
    program();
}
