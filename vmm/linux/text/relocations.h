// The words of a kernel image that change when the kernel moves (KASLR): the table that follows the
// vmlinux in a bzImage's payload. The decompressor applies it backwards from its end
// (arch/x86/boot/compressed/misc.c, handle_relocations(); written by arch/x86/tools/relocs.c):
//   0, 64-bit places..., 0, inverse 32-bit places..., 0, 32-bit places...     s32 each, linked
// Since Linux 6.15 there is no inverse list. Applying the table turns the file's bytes into those
// of a moved kernel.
// Used by the kernel from a file. Pure. Hostile input: a table with a place outside of the image is
// ignored.
// Fire context: apply() yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vmm/kernel_file/elf_file.h"

namespace ringside::guest_linux {

class Relocations {
 public:
  /// `payload`: the bytes of `image` and the rest of the payload. Empty when there is no table.
  static Relocations parse(std::span<const std::byte> payload, const vmm::ElfFile& image);

  std::size_t size() const { return longs_.size() + inverse_.size() + words_.size(); }
  /// Changes `copy`, a copy of the image's bytes at the linked address `at`, as a move by `slide`
  /// does.
  void apply(const vmm::ElfFile& image, std::uint64_t at, std::span<std::byte> copy,
             std::int64_t slide) const;

 private:
  std::vector<std::uint64_t> longs_, inverse_, words_;  // sorted
};

}  // namespace ringside::guest_linux
