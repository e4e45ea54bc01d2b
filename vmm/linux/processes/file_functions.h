// The functions of an ELF file that the guest's kernel has in memory, by their offsets in the file:
// those of .symtab, or of .dynsym where there is no other table, or its pages are not in memory.
// System V ABI, "Object Files" (gABI 4.1). It is read through the page cache (page_cache.h), so no
// process and no address of one matters.
// Hostile input: every byte is the file's; counts are bounded, and what contradicts itself is left
// out. Used by the provider pid.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/linux/processes/file_elf.h"

namespace ringside::guest_linux {

struct FileFunction {
  std::string_view name;     // owned by the table; printable
  std::uint64_t offset = 0;  // in the file
  std::uint64_t size = 0;    // bytes; 0: the table does not say
};

class FileFunctions {
 public:
  /// Which table they are of.
  enum class Source : std::uint8_t { None, Symbols, DynamicSymbols };

  FileFunctions() = default;
  FileFunctions(FileFunctions&&) = default;
  FileFunctions& operator=(FileFunctions&&) = default;
  /// None where the file is no ELF file of this architecture, or its headers are not in memory.
  static FileFunctions read(const FilePages& file);

  Source source() const { return source_; }
  /// Whether the table was in memory to its end.
  bool is_whole() const { return is_whole_; }
  /// By offset; of several at one offset each.
  std::span<const FileFunction> all() const { return functions_; }
  /// The function that has this byte, by its best name (a function's plain name before names that
  /// begin with underscores, then the shorter one); null: no symbol says.
  const FileFunction* at(std::uint64_t offset) const;
  /// Bytes that it takes.
  std::size_t bytes() const { return functions_.size() * sizeof(FileFunction) + names_.size(); }
  /// Whether Go's compiler made it: its runtime wants to know each address at which a signal may
  /// find a thread (section .gopclntab).
  bool is_of_go() const { return is_of_go_; }
  /// Whether bytes of the file may be executed: in a loaded segment with PF_X.
  bool is_text(std::uint64_t offset) const;

 private:
  struct Text {
    std::uint64_t offset = 0, bytes = 0;
  };
  bool take(FileSymbols table, const FileElf& elf);

  std::vector<Text> text_;
  std::vector<FileFunction> functions_;
  std::vector<char> names_;
  Source source_ = Source::None;
  bool is_whole_ = false, is_of_go_ = false;
};

}  // namespace ringside::guest_linux
