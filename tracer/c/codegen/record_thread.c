// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Like record_cpu.c, for per-thread rings. */
#define LAT_RING_THREAD
#include "record_cpu.c"
