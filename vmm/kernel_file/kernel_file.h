// A kernel file on the host: a bzImage, an ELF image (vmlinux, a kernel for teaching), or a flat
// file with a Multiboot header. Tells which it is, and unpacks the ELF image in a bzImage, which
// has the symbols, types and code. Files come from the user and may be anything: sizes are checked,
// unpacking is bounded.
// Used by vmm/kvm/boot (what to load) and vmm/linux (symbols before the guest runs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::vmm {

class KernelFile {
 public:
  /// Flat: a Multiboot header gives the addresses (a.out kludge), and there is no ELF in it.
  enum class Format : std::uint8_t { BzImage, Elf64, Elf32, Flat };

  /// Maps the file, so that of a vmlinux with its DWARF only the parts that are used cost memory.
  /// The file must not be shortened while this object or a copy lives; a new file under its name is
  /// fine. NotFound, or Invalid for a file that is no x86 kernel, which says what it seems to be
  /// ("a kernel for arm64").
  static Result<KernelFile> open(const std::string& path);
  /// The same for bytes in memory, named `name` in messages.
  static Result<KernelFile> parse(std::vector<std::byte> bytes, std::string name);

  Format format() const { return format_; }
  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// The ELF image: the file itself, or the unpacked payload of a bzImage (gzip, xz, zstd, lz4,
  /// lzma, bzip2), which this object keeps: 0.1 s for Debian's 6.1 (lz4), 0.4 s for 6.12 (zstd).
  /// The image in a bzImage is stripped, so its symbols are kallsyms, and the kernel's relocations
  /// follow it. Unsupported for a packing that we cannot read and for a flat file. One thread at a
  /// time.
  Result<std::span<const std::byte>> elf() const;
  /// elf() as a kernel file of its own, under the same name and without a copy. Errors as elf().
  Result<KernelFile> elf_file() const;

 private:
  KernelFile(std::shared_ptr<const void> owner, std::span<const std::byte> bytes, std::string name,
             Format format)
      : owner_(std::move(owner)), bytes_(bytes), name_(std::move(name)), format_(format) {}

  std::shared_ptr<const void> owner_;  // of bytes_
  std::span<const std::byte> bytes_;
  std::string name_;
  Format format_;
  mutable std::shared_ptr<const std::vector<std::byte>> unpacked_;
};

/// How the kvm machine starts a kernel file. A bzImage unpacks and moves itself, or the vmlinux
/// inside it is started directly by its PVH note. Then nothing is unpacked in the guest and nothing
/// moves: its symbols are right as they are, and its first instruction comes half a second earlier.
enum class BootPreference : std::uint8_t {
  // By a PVH note where there is one (of the file, or of the vmlinux in a bzImage); else as it is.
  Auto,
  Pvh,      // by its PVH note, or an error
  BzImage,  // by Linux's 64-bit boot protocol, or an error: the kernel unpacks and moves itself
};

/// The file to start: `path` itself, or the vmlinux inside it, under the same name. Unsupported
/// when the file does not allow `way`, with a way that it allows; else the errors of
/// KernelFile::open.
Result<KernelFile> open_kernel(const std::string& path, BootPreference way);

/// Whether the kernel may run at another place than it was linked for (KASLR): a bzImage that was
/// built for that, unless its command line says `nokaslr`.
bool relocates_itself(const KernelFile& file, std::string_view command_line);

}  // namespace ringside::vmm
