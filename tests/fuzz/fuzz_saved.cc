// Any bytes as a file that is said to be a saved guest.
#include <cstdint>
#include <span>

#include "tests/fuzz/host_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::read_saved_memory(std::as_bytes(std::span(data, size)));
  return 0;
}
