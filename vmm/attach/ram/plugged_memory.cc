#include "vmm/attach/ram/plugged_memory.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "vmm/base/unique_fd.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kMostTables = 4096;
constexpr std::size_t kMostParts = 16;

}  // namespace

PluggedMemory::PluggedMemory(std::shared_ptr<CopiedBytes> process)
    : process_(std::move(process)), missed_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  tables_.push_back(std::make_unique<const Table>());
  current_ = tables_.back().get();
}

bool PluggedMemory::set(std::vector<Block> blocks) {
  // Before the table changes: a look in vain from now on is to be heard.
  std::uint64_t count;
  (void)!::read(missed_event_.get(), &count, sizeof count);  // fails when nobody did
  missed_.store(false, std::memory_order_release);
  if (blocks == *current_.load(std::memory_order_relaxed)) return true;
  if (tables_.size() == kMostTables) {
    current_.store(tables_.front().get(), std::memory_order_release);
    return false;
  }
  tables_.push_back(std::make_unique<const Table>(std::move(blocks)));
  current_.store(tables_.back().get(), std::memory_order_release);
  return true;
}

/// 0: not all of it is plugged in, as one block.
std::uint64_t PluggedMemory::host_address(std::uint64_t offset, std::size_t size) const {
  for (const Block& block : *current_.load(std::memory_order_acquire)) {
    const std::uint64_t into = offset - block.base;  // huge when `offset` lies below
    if (into < block.size && size <= block.size - into) return block.host + into;
  }
  ask_for_look();
  return 0;
}

void PluggedMemory::ask_for_look() const {
  if (missed_.exchange(true, std::memory_order_acq_rel)) return;
  raise_event(missed_event_);
}

bool PluggedMemory::read(std::span<const CopyPart> parts) const {
  std::array<CopyPart, kMostParts> there;
  while (!parts.empty()) {
    const std::size_t now = std::min(parts.size(), there.size());
    for (std::size_t i = 0; i < now; ++i) {
      there[i] = {host_address(parts[i].offset, parts[i].out.size()), parts[i].out};
      if (there[i].offset == 0) return false;
    }
    if (!process_->read(std::span(there).first(now))) return false;
    parts = parts.subspan(now);
  }
  return true;
}

bool PluggedMemory::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t host = host_address(offset, bytes.size());
  return host != 0 && process_->write(host, bytes);
}

std::vector<ByteExtent> PluggedMemory::extents(ByteExtent of) const {
  std::vector<ByteExtent> found;
  for (const Block& block : *current_.load(std::memory_order_acquire)) {
    const std::uint64_t from = std::max(block.base, of.offset);
    const std::uint64_t to = std::min(block.base + block.size, of.offset + of.size);
    if (from >= to) continue;
    const std::uint64_t shift = block.host - block.base;  // wraps, and back
    for (const ByteExtent& part : process_->extents({from + shift, to - from})) {
      found.push_back({part.offset - shift, part.size});
    }
  }
  return found;
}

}  // namespace ringside::vmm
