// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The sender of small/serial.c as a process of this machine, with standard output as its line:
 *
 *   send stream PACKETS TEXTS RUN   events WIDE that count up, 13 a packet of 256 bytes; packets are sent
 *                                   as they are closed, from the cores in turn
 *   send overwrite PACKETS          a flight recorder that has wrapped, sent at the end
 *   send left PACKETS               the area left by a program that was reset inside a packet
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <items.h>
#include <lat/small_serial.h>

#include "lat_port.h"

#define AREA_BYTES (1u << 16)
_Alignas(64) uint64_t lat_port_area[AREA_BYTES / 8u];
uint64_t test_clock = 0xfffff000u; /* wraps soon */
uint32_t test_context = 7;
#if LAT_PORT_CORES > 1
uint32_t test_core;
#endif

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(items)};
#define EVENTS_PER_PACKET 13u

void lat_port_put(const void *bytes, uint32_t count)
{
    if (fwrite(bytes, 1, count, stdout) != count)
        exit(1);
}

static void set_up(uint32_t mode)
{
    const struct lat_small_setup setup = {AREA_BYTES, 256, 8, mode, schemas, 1};
    if (lat_small_init(&setup) != LAT_SMALL_OK)
        exit(1);
    lat_small_enable(LAT_SCHEMA(items), LAT_SMALL_ALL, 1);
}

static void fill_packet(uint64_t packet)
{
    for (uint32_t i = 0; i < EVENTS_PER_PACKET; i++) {
        test_clock += 10;
        lat_small_keep_time();
        lat_items_wide(packet * EVENTS_PER_PACKET + i);
    }
}

int main(int count, char **arguments)
{
    struct lat_serial serial;
    if (count < 3)
        return 2;
    const uint64_t packets = strtoull(arguments[2], NULL, 10);
    if (strcmp(arguments[1], "stream") == 0 && count >= 5) {
        set_up(LAT_SMALL_MODE_DISCARD);
        const uint32_t texts = arguments[3][0] == '1' ? LAT_SERIAL_TEXTS : 0;
        lat_serial_begin(&serial, 100, (uint32_t)strtoul(arguments[4], NULL, 10), texts);
        for (uint64_t n = 0; n < packets; n++) {
#if LAT_PORT_CORES > 1
            test_core = (uint32_t)(n % LAT_PORT_CORES);
#endif
            fill_packet(n);
            while (lat_serial_send(&serial) != 0) {
            }
        }
#if LAT_PORT_CORES > 1
        for (test_core = LAT_PORT_CORES - 1u; test_core != 0; test_core--)
            lat_small_close();
#endif
        lat_serial_end(&serial);
        lat_serial_end(&serial);
        return 0;
    }
    if (strcmp(arguments[1], "overwrite") == 0 || strcmp(arguments[1], "left") == 0) {
        set_up(LAT_SMALL_MODE_OVERWRITE);
        for (uint64_t n = 0; n < packets; n++)
            fill_packet(n);
        lat_items_wide(packets * EVENTS_PER_PACKET); /* one more, in the open packet */
        if (arguments[1][0] == 'o')
            lat_small_close();
        lat_serial_begin(&serial, 4, 0, LAT_SERIAL_TEXTS);
        if (lat_serial_send(&serial) != 0) /* no packet can be taken in this mode */
            return 1;
        return lat_serial_send_area(&serial, AREA_BYTES) == 8 ? 0 : 1;
    }
    return 2;
}
