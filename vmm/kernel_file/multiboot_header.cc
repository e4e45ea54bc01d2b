#include "vmm/kernel_file/multiboot_header.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ringside::vmm {
namespace {

constexpr std::size_t kSearched = 8192;
constexpr std::uint32_t kMagic = 0x1bad'b002;
constexpr std::uint32_t kHasAddresses = 1 << 16;

}  // namespace

std::optional<MultibootHeader> find_multiboot_header(std::span<const std::byte> file) {
  const auto searched = file.first(std::min(file.size(), kSearched));
  std::array<std::uint32_t, 3> words;
  for (std::size_t at = 0; at + sizeof words <= searched.size(); at += 4) {
    std::memcpy(words.data(), searched.data() + at, sizeof words);
    if (words[0] != kMagic || words[0] + words[1] + words[2] != 0) continue;
    MultibootHeader header{at, words[1], std::nullopt};
    if ((header.flags & kHasAddresses) == 0) return header;
    MultibootHeader::Addresses addresses;
    if (at + sizeof words + sizeof addresses > searched.size()) return std::nullopt;
    std::memcpy(&addresses, searched.data() + at + sizeof words, sizeof addresses);
    header.addresses = addresses;
    return header;
  }
  return std::nullopt;
}

}  // namespace ringside::vmm
