/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef GENODE_TRACE_TIMESTAMP_H
#define GENODE_TRACE_TIMESTAMP_H

#include <base/stdint.h>

#include <lat/lat.h>

#include <lat/clock.h>

namespace Genode::Trace {
using Timestamp = uint64_t;
/** The processor's counter: the clock of the recording. */
inline Timestamp timestamp()
{
    return lat_i_clock();
}
}

#endif
