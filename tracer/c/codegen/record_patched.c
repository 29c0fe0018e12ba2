// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Like record_cpu.c, for patchable sites: one instruction each while disabled. */
#define LAT_PATCHABLE
#include "record_cpu.c"
