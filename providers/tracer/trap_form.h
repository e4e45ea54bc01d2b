// The code that probes are written as.
#pragma once

#include <cstdint>

namespace ringside::providers {

enum class TrapForm : std::uint8_t { Breakpoints, JumpsWhereTheyMay };

}  // namespace ringside::providers
