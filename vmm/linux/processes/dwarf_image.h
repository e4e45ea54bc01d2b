// The DWARF of an ELF file of which some bytes are there (file_bytes.h), for libdw, which wants a
// whole file: an ELF image of our own with those sections that types are read from, unpacked. It
// has no .gnu_debugaltlink and no name, so that libdw opens no file of the host. Hostile input:
// sizes are bounded before anything is allocated. After each section are zeros, where a string ends
// that the section does not end. Used by DwarfTypes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/linux/processes/file_bytes.h"
#include "vmm/linux/processes/file_elf.h"

struct Dwarf;  // elfutils/libdw.h
struct Elf;

namespace ringside::guest_linux {

class DwarfImage {
 public:
  /// NotFound: it has no DWARF, or not all of it is in memory. Limit: it has more than `most`
  /// bytes, unpacked. Invalid: it contradicts itself.
  static Result<DwarfImage> build(const FileBytes& file, const FileElf& elf, std::uint64_t most);

  ::Dwarf* dwarf() const { return dwarf_.get(); }
  /// Bytes of the unit section and the type section: no more entries can be there.
  std::uint64_t unit_bytes() const { return unit_bytes_; }

 private:
  struct End {
    void operator()(::Elf* elf) const;
    void operator()(::Dwarf* dwarf) const;
  };

  std::vector<std::byte> bytes_;  // where the others point to
  std::unique_ptr<::Elf, End> elf_;
  std::unique_ptr<::Dwarf, End> dwarf_;
  std::uint64_t unit_bytes_ = 0;
};

/// The file with which another one shares types (dwz).
struct SharedTypesLink {
  std::string path;  // of the machine for which it was made; may begin at the other one's folder
  std::string build_id;
};
/// By the section .gnu_debugaltlink. Empty: there is none, or it is not in memory.
std::optional<SharedTypesLink> shared_types_link(const FileBytes& file, const FileElf& elf);

}  // namespace ringside::guest_linux
