// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The kernel includes it for size_t. */
#include <stddef.h>
