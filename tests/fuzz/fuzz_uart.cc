// Any bytes as what a guest and its terminal do to a serial port.
#include <cstdint>
#include <span>

#include "tests/fuzz/device_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::drive_uart(std::as_bytes(std::span(data, size)));
  return 0;
}
