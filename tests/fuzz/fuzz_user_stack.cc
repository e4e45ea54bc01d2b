// Any memory as a thread of a process with its stack, its files and their unwind tables.
#include <cstdint>
#include <span>

#include "tests/fuzz/guest_input.h"
#include "tests/fuzz/kernel_input.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  return ringside::fuzz::mutate_guest(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::walk_user_stack(std::as_bytes(std::span(data, size)));
  return 0;
}
