// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A port to a process of this machine whose clock is a variable, for the tests of the core. */
#ifndef LAT_PORT_H
#define LAT_PORT_H

#include <stdint.h>

#ifndef LAT_PORT_CORES
#define LAT_PORT_CORES 1u
#endif
extern uint64_t lat_port_area[];
#define LAT_PORT_AREA lat_port_area

#define LAT_PORT_CLOCK_HZ 1000000000u
extern uint64_t test_clock;
extern uint32_t test_context;
#ifndef LAT_PORT_CLOCK_BITS
#define LAT_PORT_CLOCK_BITS 32
#endif
#if LAT_PORT_CLOCK_BITS == 32
static inline uint32_t lat_port_clock(void)
{
    return (uint32_t)test_clock;
}
#else
static inline uint64_t lat_port_clock(void)
{
    return test_clock;
}
#endif
static inline uint32_t lat_port_context(void)
{
    return test_context;
}
#if LAT_PORT_CORES > 1
extern uint32_t test_core;
static inline uint32_t lat_port_core(void)
{
    return test_core;
}
#endif
typedef uint32_t lat_port_mask_t;
static inline lat_port_mask_t lat_port_mask(void)
{
    return 0;
}
static inline void lat_port_unmask(lat_port_mask_t before)
{
    (void)before;
}
void lat_port_put(const void *bytes, uint32_t count);

#endif
