// SPDX-License-Identifier: Apache-2.0 OR MIT
/* <lat/build.h>: the code of generated headers for events whose length is known only at run time, written
 * by hand for a schema written by hand. */
#include <lat/lat.h>

#include <stdio.h>

#define TEXT "schema eg_build;\nsubsystem hand {\nevent PAIR (key: string, value: i64),\n};\n"
LAT_SCHEMA_DEFINE(eg_build, 1, UINT64_C(0x64926debd9908206), "eg_build", TEXT, sizeof TEXT - 1)

static void pair(const char *key, int64_t value)
{
    LAT_SITE(lat_schema_eg_build, 0u, on);
    struct lat_i_build build;
    lat_i_build_init(&build);
    lat_i_put_string(&build, key);
    lat_i_put_u64(&build, (uint64_t)value);
    lat_i_build_emit(&lat_schema_eg_build, on, 0u, &build);
}

int main(void)
{
    pair("answer", 42);
    pair("question", -1);
    puts("done");
    return 0;
}
