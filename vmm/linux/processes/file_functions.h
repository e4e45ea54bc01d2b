// The functions of an ELF file of the guest, by their offsets in the file: those of .symtab, or of
// .dynsym where there is no other table, or its pages are not in memory. Where the guest has no
// whole .symtab in memory, the host's copies of the file are asked (host_files.h), and the table
// with most functions is taken.
// System V ABI, "Object Files" (gABI 4.1). It is read through the page cache (page_cache.h), so no
// process and no address of one matters.
// Hostile input: every byte is the file's; counts are bounded, and what contradicts itself is left
// out. Used by the provider pid.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/linux/processes/file_bytes.h"
#include "vmm/linux/processes/file_elf.h"
#include "vmm/linux/processes/host_files.h"

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
  /// `host`: where copies of it are; null: nowhere. `path`: of the file, in the guest.
  static FileFunctions read(const FileBytes& file, HostFiles* host = nullptr,
                            std::string_view path = {},
                            HostFiles::Servers servers = HostFiles::Servers::NotAsked);

  /// Whether it is a whole .symtab, which nothing can add to.
  bool has_all() const { return table_.source == Source::Symbols && table_.is_whole; }
  Source source() const { return table_.source; }
  /// Whether the table was there to its end.
  bool is_whole() const { return table_.is_whole; }
  /// Where they were looked for, and what was there: "120 functions by .dynsym in the page cache,
  /// 11,020 by .symtab of /srv/root/usr/bin/x". One line.
  const std::string& searched() const { return searched_; }
  /// By offset; of several at one offset each.
  std::span<const FileFunction> all() const { return table_.functions; }
  /// The function that has this byte, by its best name (a function's plain name before names that
  /// begin with underscores, then the shorter one); null: no symbol says.
  const FileFunction* at(std::uint64_t offset) const;
  /// Bytes that it takes.
  std::size_t bytes() const {
    return table_.functions.size() * sizeof(FileFunction) + table_.names.size();
  }
  /// Whether Go's compiler made it: its runtime wants to know each address at which a signal may
  /// find a thread (section .gopclntab).
  bool is_of_go() const { return is_of_go_; }
  /// Whether bytes of the file may be executed: in a loaded segment with PF_X.
  bool is_text(std::uint64_t offset) const { return text_at(offset) != nullptr; }
  /// The address at which a byte of its text is linked; empty: it is none.
  std::optional<GuestVirt> address_of(std::uint64_t offset) const;
  /// The same, if each process has it there.
  std::optional<GuestVirt> fixed_address(std::uint64_t offset) const {
    return is_fixed_ ? address_of(offset) : std::nullopt;
  }

 private:
  struct Text {
    std::uint64_t offset = 0, bytes = 0, address = 0;
  };
  const Text* text_at(std::uint64_t offset) const;
  struct Table {
    std::vector<FileFunction> functions{};
    std::vector<char> names{};  // which the functions' are in
    Source source = Source::None;
    bool is_whole = false;
  };
  static Table functions_in(FileSymbols symbols, const FileElf& in_guest);
  static Table best_in(const FileBytes& file, const FileElf& elf, const FileElf& in_guest);
  void ask_host(const HostFiles::Wanted& wanted, HostFiles& host);

  std::vector<Text> text_;
  Table table_;
  std::string searched_;
  bool is_of_go_ = false, is_fixed_ = false;
};

}  // namespace ringside::guest_linux
