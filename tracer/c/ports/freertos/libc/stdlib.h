// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Included by the kernel for size_t. */
#include <stddef.h>
