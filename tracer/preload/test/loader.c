// SPDX-License-Identifier: Apache-2.0 OR MIT
/* loader LIBRARY: loads it in every way, and checks for leftovers of a tracer. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static void use(const char *path, int flags)
{
    void *library = dlopen(path, flags);
    CHECK(library != NULL);
    char *(*text)(void);
    void (*release)(void *);
    *(void **)&text = dlsym(library, "early_text");
    *(void **)&release = dlsym(library, "early_free");
    CHECK(text != NULL && release != NULL);
    char *made = text();
    CHECK(strcmp(made, "made early") == 0);
    free(made);
    release(malloc(10));
    CHECK(dlclose(library) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    CHECK(errno == 0);
    CHECK(dlerror() == NULL);
    for (int i = 0; i < 5; i++) {
        use(argv[1], RTLD_NOW | RTLD_LOCAL);
        use(argv[1], RTLD_LAZY | RTLD_GLOBAL);
        use(argv[1], RTLD_NOW | RTLD_DEEPBIND);
    }
    puts("loaded");
    return 3;
}
