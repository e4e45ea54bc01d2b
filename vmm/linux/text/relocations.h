// Which words of a kernel image change when the kernel moves (KASLR): the table that follows the
// vmlinux in a bzImage's payload, and which the decompressor works off backwards from its end
// (arch/x86/boot/compressed/misc.c, handle_relocations(); written by arch/x86/tools/relocs.c):
//   0, 64-bit places..., 0, inverse 32-bit places..., 0, 32-bit places...     s32 each, linked
// Linux 6.15 has no inverse list any more. With it the file's bytes are those of a moved kernel.
// Used by the kernel from a file. Pure. Hostile input: a list with a place outside of the image is
// none.
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
  /// `payload` is what `image` was parsed from, with what follows it. Empty without a table.
  static Relocations parse(std::span<const std::byte> payload, const vmm::ElfFile& image);

  std::size_t size() const { return longs_.size() + inverse_.size() + words_.size(); }
  /// Changes a copy of the image's bytes at `at` as a move by `slide` changes them.
  void apply(const vmm::ElfFile& image, std::uint64_t at, std::span<std::byte> copy,
             std::int64_t slide) const;

 private:
  std::vector<std::uint64_t> longs_, inverse_, words_;  // sorted
};

}  // namespace ringside::guest_linux
