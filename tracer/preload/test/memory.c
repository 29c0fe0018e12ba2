// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Every way to allocate. Prints how many blocks were made in each of them. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 2000 };

/* Volatile, so that calls are neither optimised away nor warned about. */
static void *(*volatile malloc_)(size_t) = malloc;
static void *(*volatile calloc_)(size_t, size_t) = calloc;
static void *(*volatile realloc_)(void *, size_t) = realloc;
static void *(*volatile reallocarray_)(void *, size_t, size_t) = reallocarray;
static void (*volatile free_)(void *) = free;

static void *churn(void *unused)
{
    unsigned char *blocks[16] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char **block = &blocks[i % 16];
        const size_t size = (size_t)(i * 37 % 5000);
        free_(*block);
        *block = malloc_(size);
        CHECK(*block != NULL);
        memset(*block, i, size);
        CHECK(size == 0 || (*block)[size - 1] == (unsigned char)i);
    }
    for (int i = 0; i < 16; i++)
        free_(blocks[i]);
    return unused;
}

static void is_aligned(void *block, size_t align)
{
    CHECK(block != NULL && (uintptr_t)block % align == 0);
    memset(block, 1, 100);
    free_(block);
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);

    unsigned char *zeros = calloc_(100, 10);
    for (int i = 0; i < 1000; i++)
        CHECK(zeros[i] == 0);
    errno = 0;
    CHECK(calloc_(SIZE_MAX / 2, 4) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(malloc_(PTRDIFF_MAX) == NULL && errno == ENOMEM);

    strcpy((char *)zeros, "kept");
    errno = 5;
    zeros = realloc_(zeros, 100000);
    CHECK(zeros != NULL && strcmp((char *)zeros, "kept") == 0 && errno == 5);
    CHECK(realloc_(zeros, PTRDIFF_MAX) == NULL && errno == ENOMEM);
    CHECK(strcmp((char *)zeros, "kept") == 0);
    zeros = realloc_(zeros, 1);
    CHECK(malloc_usable_size(zeros) >= 1);
    CHECK(realloc_(zeros, 0) == NULL);
    zeros = realloc_(NULL, 50);
    zeros = reallocarray_(zeros, 10, 10);
    CHECK(zeros != NULL);
    CHECK(reallocarray_(zeros, SIZE_MAX, 10) == NULL && errno == ENOMEM);
    errno = 5;
    free_(zeros);
    free_(NULL);
    CHECK(errno == 5);

    void *block = &block;
    CHECK(posix_memalign(&block, 256, 100) == 0);
    is_aligned(block, 256);
    block = &block;
    CHECK(posix_memalign(&block, 3, 100) == EINVAL && block == &block);
    is_aligned(aligned_alloc(64, 128), 64);
    is_aligned(memalign(4096, 100), 4096);
    is_aligned(valloc(100), (size_t)getpagesize());
    is_aligned(pvalloc(100), (size_t)getpagesize());
    free_(strdup("by the C library"));

    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100; i++)
            free_(malloc_(100));
        _exit(3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    printf("churned %d\n", THREADS * ROUNDS + 100);
    return 0;
}
