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
    uint32_t grows;      /* it gives rings memory as they are used */
    uint32_t locked;     /* its recorder holds a lock as long as the session goes on */
    uint32_t cpus;       /* that the machine can have; 0: not said */
    uint32_t prepared;   /* names under which the recorder may have prepared areas */
    uint64_t pid_namespace; /* of the recorder, an inode; 0: not said */
    const char *enable;  /* patterns, until the next request is read */
};

/** What LATERALIS_RECORD says to this program. @return whether it asks for records. */
int lat_i_request_of_launcher(struct lat_i_request *request);

/** The recorder holds a lock on a file beside the areas as long as its session goes on. Opens that file.
 * `room`: PATH_MAX bytes for its path. @return a descriptor, -1 where the file is not there. */
int lat_i_session_lock_open(const struct lat_i_request *request, const char *directory, char *room);
/** Whether the session still has its recorder; of one without a lock this is not known: yes. */
int lat_i_session_lives(const struct lat_i_request *request, int lock);
/** The PID namespace of this process if it is the recorder's; 0: it is another one, or not known. */
uint64_t lat_i_session_namespace(const struct lat_i_request *request, int lock);
/** Ends the use of the descriptor. */
void lat_i_session_lock_close(int lock);
/** What a recorder wants of every program, from the file in the directory of areas. @return as
 * above. */
int lat_i_request_standing(const char *directory, struct lat_i_request *request);

#endif
