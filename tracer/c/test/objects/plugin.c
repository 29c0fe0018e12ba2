// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A shared object with events of its own, for programs/life.c to load and unload. */
#include "../support/values.h"

#include <lat/log.h>

void plugin_emit(uint64_t writer, uint64_t number);
void plugin_log(int number);

void plugin_emit(uint64_t writer, uint64_t number)
{
    lat_t_one(value_make(writer, number));
}

void plugin_log(int number)
{
    LAT_LOG("plug-in %d", number);
}
