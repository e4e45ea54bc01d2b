#include "vmm/block_reader.h"

#include <algorithm>

namespace ringside::vmm {

/// Null where there is no room for more.
const BlockReader::Block* BlockReader::block(std::uint64_t number) const {
  const auto known = blocks_.find(number);
  if (known != blocks_.end()) return &known->second;
  if (blocks_.size() >= kMostBlocks) return nullptr;
  Block fresh{std::make_unique_for_overwrite<std::byte[]>(kBlock)};
  const GuestVirt begin(number * kBlock);
  const std::span bytes(fresh.bytes.get(), kBlock);
  if (below_.read(begin, bytes)) {
    fresh.has.fill(true);
  } else {
    for (std::size_t page = 0; page < fresh.has.size(); ++page) {
      const auto part = bytes.subspan(page * kPage, kPage);
      fresh.has[page] = below_.read(begin.wrapping_add(page * kPage), part).has_value();
    }
  }
  return &blocks_.emplace(number, std::move(fresh)).first->second;
}

Result<void, Fault> BlockReader::read(GuestVirt at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::uint64_t offset = at.raw() % kBlock, in_page = at.raw() % kPage;
    const Block* const from = block(at.raw() / kBlock);
    // The rest is the other reader's to answer, with its fault.
    if (from == nullptr || !from->has[offset / kPage]) return below_.read(at, out);
    const std::size_t length = std::min<std::size_t>(out.size(), kPage - in_page);
    std::copy_n(from->bytes.get() + offset, length, out.begin());
    out = out.subspan(length);
    at = at.wrapping_add(length);
  }
  return {};
}

}  // namespace ringside::vmm
