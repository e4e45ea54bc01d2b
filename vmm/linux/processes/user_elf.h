// An ELF image that a process has mapped: what its first page says of it, and its dynamic symbols.
// System V ABI, "Object Files" and "Dynamic Linking" (gABI 4.1), with GNU's hash table.
// Used by UserNames. Read through the process's own page table: what is not in memory is unknown,
// and the section .symtab never is. Every byte is the process's and may be anything: it is copied,
// counts are bounded, and nothing outside the image is read.
// Fire context: no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/guest_reader.h"

namespace ringside::guest_linux {

/// What the first page of a 64-bit image says.
struct UserElf {
  std::string page;        // the page itself, which tells the image from others (headers, build id)
  GuestVirt begin;         // where the file's first byte lies
  std::uint64_t bias = 0;  // what the loader added to the image's own addresses
  std::uint64_t size = 0;  // bytes from `begin` that its segments take, with .bss
  std::uint64_t dynamic = 0;  // PT_DYNAMIC, from `begin` on; 0: there is none
  std::uint64_t dynamic_size = 0;

  /// Empty when no such image is mapped at `begin`, or its first page is not in memory.
  static std::optional<UserElf> read(const GuestReader& process, GuestVirt begin);
};

/// Functions and data that the image shows to the link editor, by their distance from its begin.
class DynamicSymbols {
 public:
  DynamicSymbols() = default;
  static DynamicSymbols read(const GuestReader& process, const UserElf& elf);

  /// Whether every page that was looked for was in memory.
  bool whole() const { return whole_; }
  std::size_t count() const { return symbols_.size(); }
  /// What keeping it takes at most, in bytes, and what reading it cost: all that the image says
  /// there is counts, in memory or not.
  std::size_t bytes() const { return bytes_; }

  struct Found {
    std::string_view name;     // owned by the table; printable
    std::uint64_t offset = 0;  // into the symbol
  };
  /// The symbol that covers this place; of several that begin at the same, a function, then the one
  /// with the fewest underscores before it, then the shortest.
  std::optional<Found> at(std::uint64_t distance) const;

 private:
  struct Symbol {
    std::uint64_t begin = 0, size = 0;
    std::uint32_t name = 0, length = 0;  // in names_
    bool function = false;
  };
  class Reader;

  std::vector<Symbol> symbols_;  // sorted; of those that begin at the same, the best last
  std::string names_;
  std::size_t bytes_ = 0;
  bool whole_ = false;
};

}  // namespace ringside::guest_linux
