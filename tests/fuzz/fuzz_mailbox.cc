// Any bytes as what a guest does to the mailboxes that the host serves.
#include <cstdint>
#include <span>

#include "tests/fuzz/host_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringside::fuzz::serve_mailboxes(std::as_bytes(std::span(data, size)));
  return 0;
}
