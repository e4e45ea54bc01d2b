// Any bytes as what QEMU's monitor says of its guest's memory.
#include <cstdint>
#include <span>

#include "tests/fuzz/host_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::read_monitor_memory(std::as_bytes(std::span(data, size)));
  return 0;
}
