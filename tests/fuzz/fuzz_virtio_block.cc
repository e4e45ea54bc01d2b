// Any bytes as what a guest does to a virtio disk and its rings.
#include <cstdint>
#include <span>

#include "tests/fuzz/device_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::drive_block(std::as_bytes(std::span(data, size)));
  return 0;
}
