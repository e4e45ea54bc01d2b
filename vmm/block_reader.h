// Reads a guest's memory in blocks, and reads each block once. For one pass over many small places
// near each other (the sites of a table, a list). If guest RAM is only copied, each read is a
// system call, or five with its page walk. It never reads a block again, so make a new one for each
// pass.
#pragma once

#include <array>
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

  /// Pages of a block that are not readable are asked for each time.
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override;

 private:
  static constexpr std::size_t kPage = 4 << 10;
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::array<bool, kBlock / kPage> has{};  // each page
  };
  const Block* block(std::uint64_t number) const;

  const GuestReader& below_;
  mutable std::unordered_map<std::uint64_t, Block> blocks_;
};

}  // namespace ringside::vmm
