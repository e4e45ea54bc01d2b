// The headers of an ELF file of which some bytes are there (file_bytes.h): segments, sections, the
// build id. System V ABI, "Object Files" (gABI 4.1); the build id is GNU's note of type 3. No
// process and no address of one matters.
// Hostile input: every byte is the file's. Counts are bounded; offsets and sizes may be anything,
// and what they lead to may not be in memory.
// Used by what reads symbols and notes of files.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/printable.h"
#include "vmm/linux/processes/file_bytes.h"

namespace ringside::guest_linux {

/// Objects that lie one after the other in the file; fewer where not all are in memory.
template <class T>
std::vector<T> read_all(const FileBytes& file, std::uint64_t offset, std::size_t count) {
  const std::uint64_t room = offset < file.size() ? file.size() - offset : 0;
  std::vector<T> found(std::min<std::uint64_t>(count, room / sizeof(T)));
  const std::size_t bytes = file.read(offset, std::as_writable_bytes(std::span(found)));
  found.resize(bytes / sizeof(T));
  return found;
}

/// A character of a name that can be a part of a probe description.
constexpr bool is_probe_character(char c) {
  return is_name_character(c) && c != '`' && c != ':';
}

/// A note (gABI 4.1, "Note Section"), in the text that it was taken from.
struct FileNote {
  Elf64_Word type = 0;
  std::string_view owner, text;
};
/// Takes the first note off `rest`; empty where none is whole. Both parts of a note are padded to
/// `alignment` bytes.
std::optional<FileNote> take_note(std::string_view& rest, std::uint64_t alignment = 4);

class FileElf {
 public:
  /// Empty where it is no ELF file of this architecture, or its first page is not in memory.
  static std::optional<FileElf> read(const FileBytes& file);
  /// The same of a file with which others share types, which is no program (dwarf_image.h).
  static std::optional<FileElf> read_shared_types(const FileBytes& file);

  /// Those that are loaded and lie in the file.
  std::span<const Elf64_Phdr> segments() const { return segments_; }
  /// None where their headers are not in memory.
  std::span<const Elf64_Shdr> sections() const { return sections_; }
  /// Empty where the names are not in memory.
  std::string_view name_of(const Elf64_Shdr& section) const;
  /// Null: there is none of this name.
  const Elf64_Shdr* section(std::string_view name) const;
  /// The headers of its symbol tables: .symtab before .dynsym, which has fewer.
  std::vector<const Elf64_Shdr*> symbol_tables() const;
  /// Where the file has the byte that is linked at this address, in a segment with all of these
  /// flags (PF_X, PF_W).
  std::optional<std::uint64_t> offset_of(std::uint64_t address, Elf64_Word flags) const;
  /// The address at which the byte with this offset is linked, in such a segment.
  std::optional<std::uint64_t> address_of(std::uint64_t offset, Elf64_Word flags) const;
  /// Whether it is a program that each process has at the addresses that it is linked at.
  bool is_fixed() const { return is_fixed_; }
  /// The address of .eh_frame_hdr (eh_frame.h).
  std::optional<std::uint64_t> unwind_index() const { return unwind_index_; }
  /// The bytes of its build id; empty where it has none, or its notes cannot be read.
  const std::string& build_id() const { return build_id_; }
  /// Whether there are notes that cannot be read, so that it may have a build id.
  bool hides_build_id() const { return build_id_.empty() && hides_notes_; }

 private:
  static FileElf read(const FileBytes& file, const Elf64_Ehdr& header);
  void read_build_id(const FileBytes& file, std::span<const Elf64_Phdr> headers);
  void read_build_id_in(const FileBytes& file, std::uint64_t offset, std::uint64_t size,
                        std::uint64_t alignment);

  std::vector<Elf64_Phdr> segments_;
  std::optional<std::uint64_t> unwind_index_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<char> names_;
  std::string build_id_;
  bool hides_notes_ = false, is_fixed_ = false;
};

/// A symbol table of the file, as far as it is in memory.
struct FileSymbols {
  std::vector<Elf64_Sym> symbols{};
  std::vector<char> names{};
  bool is_whole = false;

  /// `table`: one of elf.symbol_tables().
  static FileSymbols read(const FileBytes& file, const FileElf& elf, const Elf64_Shdr& table);
  /// Empty where the file does not define it, or its name is not in memory or has more than 4,095
  /// characters.
  std::string_view name_of(const Elf64_Sym& symbol) const;
};

}  // namespace ringside::guest_linux
