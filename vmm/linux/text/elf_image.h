// An ELF executable as bytes: its segments, sections and symbols, and reads of what it puts into
// memory. System V ABI, "Object Files" (gABI 4.1) and the AMD64 and i386 supplements; classes 32
// and 64, little-endian.
// Used by the kernel from a file. Pure. The file is a user's and may be anything: every offset,
// size and count is checked, names are bounded, and what does not fit is left out.
// Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"

namespace ringside::guest_linux {

class ElfImage {
 public:
  /// More than this no kernel has.
  static constexpr std::size_t kMaxSegments = 256, kMaxSections = 8192, kMaxSymbols = 1 << 22;

  /// Invalid, with what is wrong, when `bytes` are no ELF executable with loadable segments. The
  /// bytes must outlive the image.
  static Result<ElfImage> parse(std::span<const std::byte> bytes);

  struct Segment {
    std::uint64_t address = 0, physical = 0;  // of its first byte
    std::uint64_t size = 0;                   // in memory; what the file lacks of it is zero
    std::span<const std::byte> bytes;         // in the file, at most `size`
    bool executable = false;
  };
  struct Section {
    std::string_view name;
    std::uint32_t type = 0;
    std::uint64_t flags = 0, address = 0, size = 0;
    std::uint32_t link = 0;            // of a symbol table: its strings
    std::span<const std::byte> bytes;  // empty without bytes in the file
  };
  struct ElfSymbol {
    std::string_view name;
    std::uint64_t address = 0, size = 0;
    char type = '?';  // nm's letter
  };

  std::span<const Segment> segments() const { return segments_; }
  std::span<const Section> sections() const { return sections_; }
  const Section* section(std::string_view name) const;
  /// Functions, data and labels of the symbol table; empty when the file was stripped.
  std::vector<ElfSymbol> symbols() const;

  /// Copies what the file puts at [at, at + out.size()). Empty gaps are not readable.
  Result<void, Fault> read(std::uint64_t at, std::span<std::byte> out) const;
  /// The same in place, if one segment's bytes in the file hold it all.
  std::optional<std::span<const std::byte>> bytes_at(std::uint64_t at, std::uint64_t size) const;
  /// From here on the bytes need not outlive the image, which keeps the segments' addresses only.
  void forget_bytes();
  /// Where the loader puts what is linked at `address`.
  std::optional<std::uint64_t> physical(std::uint64_t address) const;

 private:
  explicit ElfImage(std::span<const std::byte> bytes) : bytes_(bytes) {}

  struct Header;
  Result<Header> read_header() const;
  Result<void> read_segments(const Header& header);
  void read_sections(const Header& header);
  std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) const;
  std::string_view string_at(std::span<const std::byte> strings, std::uint64_t offset) const;
  char letter(std::uint8_t info, std::uint16_t section) const;
  const Segment* segment_of(std::uint64_t at) const;

  std::span<const std::byte> bytes_;
  bool is_64_ = true;
  std::vector<Segment> segments_;
  std::vector<Section> sections_;  // in the file's order: symbols name them by number
};

}  // namespace ringside::guest_linux
