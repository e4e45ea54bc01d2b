#include "vmm/table_copies.h"

#include <algorithm>
#include <span>

#include "vmm/base/align.h"

namespace ringside::vmm {

using arch::kPageSize;

std::optional<std::uint64_t> TableCopies::load64(GuestPhys at) {
  const GuestPhys table(round_down(at.raw(), kPageSize));
  auto copy = std::ranges::find(copies_, std::optional(table), &Copy::at);
  if (copy == copies_.end()) {
    copy = copies_.begin() + static_cast<std::ptrdiff_t>(next_++ % kKept);
    const bool is_there = memory_->read(table, std::as_writable_bytes(std::span(copy->entries)));
    copy->at = is_there ? std::optional(table) : std::nullopt;
    if (!is_there) return std::nullopt;
  }
  return copy->entries[at.raw() % kPageSize / sizeof(std::uint64_t)];
}

std::optional<Translation> TableCopies::translate(const PageTable& table, GuestVirt at) {
  return arch::translation(
      arch::walk([this](GuestPhys entry) { return load64(entry); }, table, at, 1), at);
}

std::optional<std::uint64_t> TableCopies::entry(const PageTable& table, GuestVirt at,
                                                unsigned level) {
  if (level < 1 || level > table.levels) return std::nullopt;
  const auto found =
      arch::walk([this](GuestPhys entry) { return load64(entry); }, table, at, level);
  if (!found || found->level != level) return std::nullopt;
  return found->value;
}

}  // namespace ringside::vmm
