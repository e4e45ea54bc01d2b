// The form in which probes are written into the text: int3s or jumps.
#pragma once

#include <cstdint>

namespace ringside::providers {

enum class TrapForm : std::uint8_t { Breakpoints, JumpsWhereTheyMay };

}  // namespace ringside::providers
