// Any bytes as the DWARF of a file.
#include <cstdint>
#include <span>

#include "tests/fuzz/kernel_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::read_dwarf(std::as_bytes(std::span(data, size)));
  return 0;
}
