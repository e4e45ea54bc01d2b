// The pieces of code that an ELF file's unwind table describes (eh_frame.h), by their offsets in
// the file: functions, and parts of functions that the compiler has put somewhere else. Stripped
// files have this table, too, so it tells where functions without a symbol begin and end. It is
// read through the page cache (page_cache.h).
// Hostile input: every byte is the file's; steps are bounded.
// Used by providers/trap_points/user_point_table.h.
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/linux/processes/eh_frame.h"
#include "vmm/linux/processes/file_elf.h"
#include "vmm/linux/processes/page_cache.h"

namespace ringside::guest_linux {

struct FilePiece {
  std::uint64_t offset = 0, size = 0;  // in the file; bytes
  /// Whether at its beginning the return address is all that the stack has of its frame. If not,
  /// it is certainly not a function's beginning.
  bool may_be_called = false;
};

class FilePieces {
 public:
  /// Empty where the file has no such table, or its headers are not in memory.
  static std::optional<FilePieces> read(const FileBytes& file);

  /// The piece that has this byte. Empty where the table does not describe it, or is not in memory.
  std::optional<FilePiece> at(const FileBytes& file, std::uint64_t offset) const;

 private:
  FilePieces(FileElf elf, const EhFrameIndex& index) : elf_(std::move(elf)), index_(index) {}

  FileElf elf_;
  EhFrameIndex index_;
};

}  // namespace ringside::guest_linux
