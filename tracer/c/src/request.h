// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Interface between the requests of a recorder (request.c) and the creation of the area (area.c). */
#ifndef LAT_REQUEST_H
#define LAT_REQUEST_H

#include "lat/abi.h"

struct lat_i_request {
    uint64_t session, buffer_bytes, packet_bytes, cap_bytes;
    uint32_t mode;       /* enum lat_ring_mode */
    uint32_t recorder;   /* 0: the parent */
    uint32_t waits;      /* the recorder makes the rings, and enables events */
    uint32_t grows;      /* it adds memory to rings as they are used */
    uint32_t locked;     /* its recorder holds a lock during the session */
    uint32_t cpus;       /* possible CPUs of the machine; 0: not specified */
    uint32_t prepared;   /* names under which the recorder may have prepared areas */
    uint64_t pid_namespace; /* of the recorder, an inode; 0: not specified */
    const char *enable;  /* patterns, until the next request is read */
};

/** Reads the request of LATERALIS_RECORD to this program. @return whether it requests records. */
int lat_i_request_of_launcher(struct lat_i_request *request);

/** Opens the file next to the areas on which the recorder holds a lock during its session.
 * `room`: PATH_MAX bytes for its path. @return a descriptor, or -1 if the file does not exist. */
int lat_i_session_lock_open(const struct lat_i_request *request, const char *directory, char *room);
/** Whether the session still has its recorder. Without a lock this is unknown: returns yes. */
int lat_i_session_lives(const struct lat_i_request *request, int lock);
/** The PID namespace of this process if it is the recorder's; 0 if it is another one, or unknown. */
uint64_t lat_i_session_namespace(const struct lat_i_request *request, int lock);
/** Closes the descriptor. */
void lat_i_session_lock_close(int lock);
/** Reads a recorder's request to every program, from the file in the directory of areas. @return as
 * above. */
int lat_i_request_standing(const char *directory, struct lat_i_request *request);

#endif
