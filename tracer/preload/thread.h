// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef PRELOAD_THREAD_H
#define PRELOAD_THREAD_H

#include "real.h"

/** In a forked child: discards the threads that were about to start in the parent. */
PRELOAD_HIDDEN void preload_threads_forked(void);

#endif
