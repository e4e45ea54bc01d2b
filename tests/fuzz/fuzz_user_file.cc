// Any memory as a kernel's page cache, with an ELF file in it.
#include <cstdint>
#include <span>

#include "tests/fuzz/guest_input.h"
#include "tests/fuzz/kernel_input.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  return ringside::fuzz::mutate_guest(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::read_user_file(std::as_bytes(std::span(data, size)));
  return 0;
}
