// Any bytes as what QEMU's monitor says.
#include <cstdint>
#include <span>

#include "tests/fuzz/host_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::talk_to_monitor(std::as_bytes(std::span(data, size)));
  return 0;
}
