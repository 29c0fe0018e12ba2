// SPDX-License-Identifier: Apache-2.0 OR MIT
/* As record_cpu.c, for rings of threads. */
#define LAT_RING_THREAD
#include "record_cpu.c"
