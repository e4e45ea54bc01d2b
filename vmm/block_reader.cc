#include "vmm/block_reader.h"

#include <algorithm>

namespace ringside::vmm {

/// Null for one that has to be read in pieces.
const std::byte* BlockReader::block(std::uint64_t number) const {
  const auto known = blocks_.find(number);
  if (known != blocks_.end()) return known->second.get();
  if (blocks_.size() >= kMostBlocks) return nullptr;
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(kBlock);
  if (!below_.read(GuestVirt(number * kBlock), std::span(bytes.get(), kBlock))) bytes.reset();
  return blocks_.emplace(number, std::move(bytes)).first->second.get();
}

Result<void, Fault> BlockReader::read(GuestVirt at, std::span<std::byte> out) const {
  const std::uint64_t offset = at.raw() % kBlock;
  const bool in_one = out.size() <= kBlock - offset;
  const std::byte* const bytes = in_one ? block(at.raw() / kBlock) : nullptr;
  if (bytes == nullptr) return below_.read(at, out);
  std::copy_n(bytes + offset, out.size(), out.begin());
  return {};
}

}  // namespace ringside::vmm
