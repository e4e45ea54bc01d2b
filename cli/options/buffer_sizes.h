// Messages of -x bufresize about buffers that the host has no room for (dif/engine/buffer_plan.h).
#pragma once

#include <cstdint>
#include <string>

#include "dif/engine/buffer_plan.h"

namespace ringside::cli {

/// "buffer size lowered to 128m".
std::string lowered_text(const dif::LoweredBuffer& buffer);

}  // namespace ringside::cli
