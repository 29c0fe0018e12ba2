// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Limits of the machine, for comparison: MB/s of memcpy, and of write() to a new file.
 *
 *     machine memcpy
 *     machine write FILE MEGABYTES     pieces of 1 MiB, without and then with fsync
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIECE_BYTES (1u << 20)
#define COPY_BYTES (64u << 20) /* more than the caches hold */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int measure_memcpy(void)
{
    char *from = malloc(COPY_BYTES), *to = malloc(COPY_BYTES);
    double best = 0;
    if (from == NULL || to == NULL)
        return 2;
    memset(from, 1, COPY_BYTES);
    memset(to, 2, COPY_BYTES);
    for (int i = 0; i < 20; i++) {
        const double begin = now_s();
        memcpy(to, from, COPY_BYTES);
        __asm__ volatile("" : : "r"(to) : "memory");
        const double rate = COPY_BYTES / (now_s() - begin) / 1e6;
        best = rate > best ? rate : best;
    }
    printf("%.0f\n", best);
    free(from);
    free(to);
    return 0;
}

static int measure_write(const char *path, unsigned long megabytes)
{
    static char piece[PIECE_BYTES];
    memset(piece, 3, sizeof piece);
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0) {
        perror(path);
        return 2;
    }
    const double begin = now_s();
    for (unsigned long i = 0; i < megabytes; i++) {
        if (write(file, piece, sizeof piece) != (ssize_t)sizeof piece) {
            perror(path);
            return 2;
        }
    }
    const double written = now_s();
    fsync(file);
    const double synced = now_s();
    close(file);
    unlink(path);
    const double bytes = (double)megabytes * PIECE_BYTES / 1e6;
    printf("%.0f %.0f\n", bytes / (written - begin), bytes / (synced - begin));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "memcpy") == 0)
        return measure_memcpy();
    if (argc == 4 && strcmp(argv[1], "write") == 0)
        return measure_write(argv[2], strtoul(argv[3], NULL, 10));
    fprintf(stderr, "usage: machine memcpy | machine write FILE MEGABYTES\n");
    return 2;
}
