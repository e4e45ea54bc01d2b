// Any bytes after the magic number of a bzImage: refused in one line, or in RAM with the entry
// point there too; and what its payload unpacks to.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/fuzz/boot_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMagicAt = 0x202;
  constexpr std::array<std::uint8_t, 4> kMagic{'H', 'd', 'r', 'S'};
  std::vector<std::uint8_t> file(data, data + size);
  // Without it, the bytes are what the other target tries.
  if (file.size() >= kMagicAt + kMagic.size())
    std::copy(kMagic.begin(), kMagic.end(), file.begin() + kMagicAt);
  ringside::fuzz::boot(std::as_bytes(std::span(file)));
  return 0;
}
