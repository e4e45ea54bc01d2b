// An ELF image that a process has mapped: the headers in its first page, and its dynamic symbols.
// System V ABI, "Object Files" and "Dynamic Linking" (gABI 4.1), with GNU's hash table.
// It is read through the process's own page table, so pages that are not in memory are unknown; the
// section .symtab never is in memory. Every byte is the process's and may be anything: it is
// copied, counts are bounded, and nothing outside the image is read. Not libelf: it wants the whole
// file, with sections. Used by UserNames.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/guest_reader.h"

namespace ringside::guest_linux {

/// Whether this is the header of a 64-bit program or library. Its counts and offsets may be
/// anything. Fire context: yes.
bool is_elf64(const Elf64_Ehdr& header);

/// Whether a first page begins with this header of a 64-bit program or library, whose program
/// headers lie in that page, too. Fire context: yes.
bool is_user_elf(const Elf64_Ehdr& header);

/// The headers in the first page of a 64-bit image.
struct UserElf {
  std::string page;           // the page itself; headers and build id identify the image
  GuestVirt begin;            // the address of the file's first byte
  std::uint64_t bias = 0;     // the loader added it to the image's own addresses
  std::uint64_t size = 0;     // bytes from `begin` that its segments take, with .bss
  std::uint64_t dynamic = 0;  // offset of PT_DYNAMIC from `begin`; 0: there is none
  std::uint64_t dynamic_size = 0;

  /// Empty when no such image is mapped at `begin`, or its first page is not in memory.
  static std::optional<UserElf> read(const GuestReader& process, GuestVirt begin);
};

/// The functions and data of the image's dynamic symbol table, by their distance from its begin.
class DynamicSymbols {
 public:
  DynamicSymbols() = default;
  static DynamicSymbols read(const GuestReader& process, const UserElf& elf);

  /// Whether every page of the table was in memory.
  bool whole() const { return whole_; }
  std::size_t count() const { return symbols_.size(); }
  /// Bytes that it takes at most, and that reading it took: the size that the image claims, whether
  /// its pages were in memory or not.
  std::size_t bytes() const { return bytes_; }

  struct Found {
    std::string_view name;     // owned by the table; printable
    std::uint64_t offset = 0;  // into the symbol
  };
  /// The symbol that covers this place. If several begin at the same place: a function first, then
  /// the one with the fewest leading underscores, then the shortest name.
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
