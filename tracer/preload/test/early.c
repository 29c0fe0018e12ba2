// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A library that runs before and after all others: its constructor allocates, locks and
 * starts a thread, its destructor releases. Also loaded by dlopen with RTLD_DEEPBIND (loader.c).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *text;

static void *work(void *unused)
{
    pthread_mutex_lock(&lock);
    text = strdup("made early");
    pthread_mutex_unlock(&lock);
    return unused;
}

static __attribute__((constructor)) void begins(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) == 0)
        pthread_join(thread, NULL);
}

/* Blocks are passed in both directions: both sides must use the same allocator. */
char *early_text(void);
char *early_text(void)
{
    return strdup(text);
}
void early_free(void *block);
void early_free(void *block)
{
    free(block);
}

static __attribute__((destructor)) void ends(void)
{
    free(text);
}
