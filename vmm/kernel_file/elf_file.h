// An ELF executable as bytes: its segments, sections, symbols, PVH entry, and the memory that it
// fills. libelf reads the tables; classes 32 and 64, little-endian.
// Used to boot a file and to read its symbols. Pure. The file is a user's and may be anything:
// every offset, size and count is checked, and names are bounded. Does not: read ELF files of the
// guest's processes (vmm/linux/processes/user_elf.h). Only some pages of those are in memory, and
// libelf needs whole files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"

struct Elf;  // libelf.h

namespace ringside::vmm {

class ElfFile {
 public:
  /// Limits; no kernel comes near them.
  static constexpr std::size_t kMaxSegments = 256, kMaxSections = 8192, kMaxSymbols = 1 << 22;

  /// `bytes` must outlive the result. Invalid, with the reason, unless they are an ELF executable
  /// that holds all its segments.
  static Result<ElfFile> parse(std::span<const std::byte> bytes);

  struct Segment {
    std::uint64_t address = 0, physical = 0;  // of its first byte
    std::uint64_t size = 0;                   // in memory; zero after the bytes of the file
    std::span<const std::byte> bytes;         // in the file, at most `size`
    bool executable = false;
  };
  struct Section {
    std::string_view name;
    std::uint32_t type = 0;
    std::uint64_t flags = 0, address = 0, size = 0;
    std::span<const std::byte> bytes;  // empty without bytes in the file
  };
  struct Symbol {
    std::string_view name;
    std::uint64_t address = 0, size = 0;
    char type = '?';  // nm's letter
  };

  /// e_entry: a virtual or a physical address, as the kernel's linker script chose.
  std::uint64_t entry() const { return entry_; }
  /// The physical address where a PVH loader starts the kernel: the note of Xen's type 18,
  /// XEN_ELFNOTE_PHYS32_ENTRY.
  std::optional<std::uint32_t> pvh_entry() const;

  std::span<const Segment> segments() const { return segments_; }
  std::span<const Section> sections() const { return sections_; }
  const Section* section(std::string_view name) const;
  /// Functions, data and labels of the symbol table; empty when the file was stripped.
  std::vector<Symbol> symbols() const;

  /// Copies the bytes that the file puts at [at, at + out.size()), zeros of a segment's end
  /// included. BadAddress, at the first byte outside all segments.
  Result<void, Fault> read(std::uint64_t at, std::span<std::byte> out) const;
  /// The same in place; empty unless the bytes of one segment in the file hold all of it.
  std::optional<std::span<const std::byte>> bytes_at(std::uint64_t at, std::uint64_t size) const;
  /// Keeps only the addresses of the segments; the bytes may go from here on.
  void forget_bytes();
  /// The physical address where the loader puts the code or data linked at `address`.
  std::optional<std::uint64_t> physical(std::uint64_t address) const;

 private:
  ElfFile(std::span<const std::byte> bytes, std::shared_ptr<Elf> elf)
      : bytes_(bytes), elf_(std::move(elf)) {}

  Result<void> read_segments();
  void read_sections();
  std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) const;
  std::string_view string_at(std::size_t section, std::size_t offset) const;
  char letter(std::uint8_t info, std::uint16_t section) const;
  const Segment* segment_of(std::uint64_t at) const;

  std::span<const std::byte> bytes_;
  std::shared_ptr<Elf> elf_;  // refers to bytes_
  std::uint64_t entry_ = 0;
  std::vector<Segment> segments_;
  std::vector<Section> sections_;  // in the file's order: symbols name them by number
};

}  // namespace ringside::vmm
