// Any bytes as what a guest does to a PC's small port devices.
#include <cstdint>
#include <span>

#include "tests/fuzz/device_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::drive_ports(std::as_bytes(std::span(data, size)));
  return 0;
}
