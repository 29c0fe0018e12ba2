// SPDX-License-Identifier: Apache-2.0 OR MIT
/* As record_cpu.c, for sites that are patched: while disabled, one instruction each. */
#define LAT_PATCHABLE
#include "record_cpu.c"
