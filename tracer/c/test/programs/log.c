// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Format-string events in C: the decoded text equals the output of printf. */
#define _GNU_SOURCE
#include "../support/log_cases.h"
#include "../support/log_test.h"

#include <dlfcn.h>

/* Three formats on one line, and copies of them: three events. */
#define TEN(x) x x x x x x x x x x
#define THREE LAT_LOG("a %d", n++); LAT_LOG("b %d", n++); LAT_LOG("c %d", n++);
static int many(void)
{
    int n = 0;
    TEN(TEN(THREE))
    for (int i = 0; i < n; i++)
        printf("%c %d\n", 'a' + i % 3, i);
    return 0;
}

static int in_plugin(void)
{
    void *plugin = dlopen(getenv("TEST_PLUGIN"), RTLD_NOW);
    if (plugin == NULL)
        return 1;
    void (*plugin_log)(int) = NULL;
    *(void **)(uintptr_t)&plugin_log = dlsym(plugin, "plugin_log");
    plugin_log(1);
    plugin_log(-2);
    printf("plug-in 1\nplug-in -2\n");
    return 0;
}

/* A program whose log events are disabled: the arguments are not even evaluated. */
static int disabled(void)
{
    LAT_LOG("%d", log_count_up());
    return log_counter;
}

int main(int count, char **arguments)
{
    if (count > 1) {
        const char *role = arguments[1];
        if (strcmp(role, "cases") == 0)
            return log_cases(), 0;
        if (strcmp(role, "odd") == 0)
            return log_odd_cases(), 0;
        if (strcmp(role, "many") == 0)
            return many();
        return strcmp(role, "plugin") == 0 ? in_plugin() : disabled();
    }
    compare_with_printf("formats as printf prints them", "cases", "log_log", "log_cases_");
    compare_with_printf("formats that do not suit", "odd", "log_log", NULL);
    compare_with_printf("many places on one line", "many", "log_log", "_3 ");
    if (getenv("TEST_PLUGIN") != NULL)
        compare_with_printf("places in a plug-in", "plugin", "log_plugin", "plugin_");
    struct traced traced;
    traced_make(&traced, 65536, 4096, "discard");
    strcpy(strstr(traced.record, "enable="), "enable=!*");
    traced_start(&traced, "disabled", NULL);
    CHECK_EQUAL(traced_wait(&traced), 0);
    fact("arguments of a disabled place are not evaluated");
    traced_remove(&traced);
    return check_status();
}
