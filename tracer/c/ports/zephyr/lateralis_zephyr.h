// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Records Zephyr's kernel in the small area: README.md has the steps. The hooks that CONFIG_TRACING_USER
 * leaves to the application are in lateralis_zephyr.c.
 */
#ifndef LATERALIS_ZEPHYR_H
#define LATERALIS_ZEPHYR_H

#include <stdint.h>

#include <lat/zephyr_events.h>

/* Interrupt n is recorded as thread LAT_ZEPHYR_INTERRUPTS + n. */
#define LAT_ZEPHYR_INTERRUPTS 0x10000u

/** Bytes of the area, lat_port_area. */
#ifndef LAT_ZEPHYR_AREA_BYTES
#define LAT_ZEPHYR_AREA_BYTES 16384u
#endif

/**
 * Calls lat_small_init and enables the kernel's events: `setup` lists LAT_SCHEMA(zephyr) and
 * schemas of the application, which stay off. Names the existing threads (CONFIG_THREAD_MONITOR).
 * Context: a thread, before a second CPU traces.
 */
enum lat_small_error lat_zephyr_begin(const struct lat_small_setup *setup);

/** The context that runs on this CPU, for lat_port_context. */
uint32_t lat_zephyr_context(void);

#endif
