// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A minimal port, for compiling the core for machines without a port of their own: a template. */
#ifndef LAT_PORT_H
#define LAT_PORT_H

#include <stdint.h>

#define LAT_PORT_CORES 1u
extern uint64_t lat_port_area[];
#define LAT_PORT_AREA lat_port_area
#define LAT_PORT_CLOCK_BITS 64
#define LAT_PORT_CLOCK_HZ 0u
uint64_t lat_port_clock(void);
uint32_t lat_port_context(void);
typedef uint32_t lat_port_mask_t;
lat_port_mask_t lat_port_mask(void);
void lat_port_unmask(lat_port_mask_t before);
/* Needed only if small/serial.c is used. */
void lat_port_put(const void *bytes, uint32_t count);

#endif
