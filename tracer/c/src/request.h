// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Between what a recorder asks for (request.c) and the making of the area (area.c). */
#ifndef LAT_REQUEST_H
#define LAT_REQUEST_H

#include "lat/abi.h"

struct lat_i_request {
    uint64_t session, buffer_bytes, packet_bytes, cap_bytes;
    uint32_t mode;       /* enum lat_ring_mode */
    uint32_t recorder;   /* 0: the parent */
    uint32_t waits;      /* the recorder makes the rings, and says what is enabled */
    const char *enable;  /* patterns, until the next request is read */
};

/** What LATERALIS_RECORD says to this program. @return whether it is asked to record. */
int lat_i_request_of_launcher(struct lat_i_request *request);
/** What a recorder wants of every program, from the file in the directory of areas. @return as
 * above. */
int lat_i_request_standing(const char *directory, struct lat_i_request *request);

#endif
