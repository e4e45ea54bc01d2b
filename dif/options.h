// The engine's run-time options, with dtrace's defaults; cli fills them in. Fire context: no.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::dif {

struct EngineOptions {
  std::size_t buffer_size = 4 << 20;  // bufsize: bytes per vCPU
  std::size_t aggregation_size =
      4 << 20;  // aggsize: bytes of distinct keys and values, per engine half
  std::size_t dynamic_size = 1 << 20;   // dynvarsize: bytes of self-> and associative elements
  std::uint32_t string_size = 256;      // strsize: bytes of a string with its NUL
  std::size_t scratch_size = 64 << 10;  // scratch of one firing
};

}  // namespace ringside::dif
