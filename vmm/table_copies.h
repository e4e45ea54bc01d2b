// Walks a guest's page tables for many addresses. Each table is copied whole when it is first
// needed: if guest RAM is only copied, each entry would be a system call of its own. The last few
// tables are kept. The guest may change its tables, so make a new one for each search. Used by
// searches of page tables and by long reads. Fire context: yes (it takes 32 KiB of stack).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "vmm/page_walk.h"

namespace ringside::vmm {

class TableCopies {
 public:
  explicit TableCopies(const GuestMemory& memory) : memory_(&memory) {}

  std::optional<Translation> translate(const PageTable& table, GuestVirt at);
  /// The value of the entry of `level` for `at`; empty where entry_address() is.
  std::optional<std::uint64_t> entry(const PageTable& table, GuestVirt at, unsigned level);

 private:
  static constexpr std::size_t kEntries = arch::kPageSize / sizeof(std::uint64_t);
  static constexpr std::size_t kKept = 8;  // a path has five at most
  struct Copy {
    std::optional<GuestPhys> at;
    std::array<std::uint64_t, kEntries> entries;
  };
  std::optional<std::uint64_t> load64(GuestPhys at);

  const GuestMemory* memory_;
  std::array<Copy, kKept> copies_;
  std::size_t next_ = 0;  // the one that the next table replaces
};

}  // namespace ringside::vmm
