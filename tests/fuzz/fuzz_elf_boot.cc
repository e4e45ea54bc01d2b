// Any bytes as an ELF or flat kernel: refused in one line, or in RAM with the entry point there
// too.
#include <cstdint>
#include <span>

#include "tests/fuzz/boot_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::boot(std::as_bytes(std::span(data, size)));
  return 0;
}
