// SPDX-License-Identifier: Apache-2.0 OR MIT
/* <lat/abi.h>: reads an area as a recorder does. `eg_abi FILE.area` prints its content. */
#include <lat/abi.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    static char tables[LAT_AREA_RINGS_OFFSET];
    const struct lat_area_header *header = (const struct lat_area_header *)(const void *)tables;
    FILE *file = count > 1 ? fopen(arguments[1], "rb") : NULL;
    if (file == NULL || fread(tables, sizeof tables, 1, file) != 1 ||
        header->magic != LAT_AREA_MAGIC || header->abi_version != LAT_ABI_VERSION) {
        fprintf(stderr, "usage: eg_abi FILE.area\n");
        return 2;
    }
    fclose(file);
    printf("%.255s, process %" PRIu32 "\n", header->exe, header->creator_pid);
    const struct lat_area_schema *schema =
        (const struct lat_area_schema *)(const void *)(tables + LAT_AREA_SCHEMAS_OFFSET);
    for (unsigned i = 0; i < LAT_AREA_SCHEMA_COUNT; i++)
        if (schema[i].state == LAT_SLOT_READY)
            printf("schema %.31s: events %" PRIu32 " to %" PRIu32 "\n", schema[i].name,
                   schema[i].base_id, schema[i].base_id + schema[i].event_count - 1);
    return 0;
}
