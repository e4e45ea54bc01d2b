// Any bytes as kernel text that probes are to stand in.
#include <cstdint>
#include <span>

#include "tests/fuzz/kernel_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::read_text(std::as_bytes(std::span(data, size)));
  return 0;
}
