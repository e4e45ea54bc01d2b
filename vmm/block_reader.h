// Reads a guest's memory in blocks: what lies in a block that was read before is not read again.
// For one pass over many small places near each other (the sites that a table names, a list): where
// guest RAM is only copied, each read is a system call, or five with its page walk.
// It answers from its first copy for ever, so make a new one for each pass.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "vmm/base/guest_reader.h"

namespace ringside::vmm {

class BlockReader final : public GuestReader {
 public:
  static constexpr std::size_t kBlock = 64 << 10;
  static constexpr std::size_t kMostBlocks = 2048;  // later ones are read as they are asked for

  explicit BlockReader(const GuestReader& below) : below_(below) {}

  /// A block that is not readable as a whole is read as it is asked for.
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override;

 private:
  const std::byte* block(std::uint64_t number) const;

  const GuestReader& below_;
  mutable std::unordered_map<std::uint64_t, std::unique_ptr<std::byte[]>> blocks_;  // null: in part
};

}  // namespace ringside::vmm
