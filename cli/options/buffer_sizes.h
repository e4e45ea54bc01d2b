// Messages of -x bufresize about buffers that the host has no room for (dif/engine/buffer_plan.h).
#pragma once

#include <cstdint>
#include <string>

#include "dif/engine/buffer_plan.h"

namespace ringside::cli {

/// "128m": a size as dtrace writes it, in the largest unit that divides it.
std::string size_text(std::uint64_t bytes);

/// "buffer size lowered to 128m".
std::string lowered_text(const dif::LoweredBuffer& buffer);

}  // namespace ringside::cli
