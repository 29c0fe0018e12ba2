/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef GENODE_BASE_STDINT_H
#define GENODE_BASE_STDINT_H

#include <cstddef>
#include <cstdint>

namespace Genode {
using std::size_t;
using uint8_t = std::uint8_t;
using uint16_t = std::uint16_t;
using uint32_t = std::uint32_t;
using uint64_t = std::uint64_t;
using addr_t = std::uintptr_t;
}

#endif
