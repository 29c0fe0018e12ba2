// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Every record path once, in functions whose arguments are not compile-time constants. Compiled by
 * every compiler and with every option, and never run. */
#include "../support/tests.h"

#include <lat/log.h>
#include <lat/packet.h>

void all_paths(const uint64_t *v, const char *text, float f, double d, bool b);

void all_paths(const uint64_t *v, const char *text, float f, double d, bool b)
{
    const uint16_t three[3] = {1, 2, 3};
    const int32_t two[2] = {4, 5};
    lat_t_empty();
    lat_t_one(v[0]);
    lat_t_small((uint8_t)v[0], (uint16_t)v[1]);
    lat_t_four(v[0], v[1], v[2], v[3]);
    lat_t_eight(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
    lat_t_sixteen(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12],
                  v[13], v[14], v[15]);
    lat_t_text(v[0], text);
    lat_t_sequence((uint16_t)v[0], v, 4);
    lat_t_blob(v, 12);
    lat_t_mixed((uint8_t)v[0], (int16_t)v[1], (uint32_t)v[2], (int64_t)v[3], f, d, b, text, three, two,
                2, v, 5, LAT_ENUM_T_MIXED_L_RED);
    lat_t_handler(v[0]);
    lat_other_first((uint32_t)v[0]);
    lat_other_second(7);
    if (lat_t_one_enabled())
        lat_mark(text);
    LAT_TRACE(t, one, v[1]);
    LAT_LOG("%s %f %f %d", text, (double)f, d, b);
    const struct lat_interface wire = {text, LAT_LINK_ETHERNET, (uint32_t)v[0]};
    lat_record_packet(&wire, LAT_PACKET_OUTBOUND, v, (size_t)v[1]);
    lat_record_packet_part(&wire, LAT_PACKET_UNKNOWN, v, (size_t)v[1], (size_t)v[2]);
}
