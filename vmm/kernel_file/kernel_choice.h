// Which kernel a file is started as. A bzImage can unpack and move itself, or the vmlinux inside it
// is started directly by its PVH note: no decompressor, no move, so its symbols are right as they
// are and its first instruction comes half a second earlier.
// Used by the kvm machine, and by who wants the same kernel's symbols.
// Fire context: no.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vmm/base/result.h"
#include "vmm/kernel_file/kernel_file.h"

namespace ringside::vmm {

/// How the kvm machine starts a kernel file.
enum class BootWay : std::uint8_t {
  // By a PVH note where there is one, also that of the vmlinux in a bzImage; else as it is.
  Auto,
  Pvh,      // by its PVH note, or an error
  BzImage,  // by Linux's 64-bit boot protocol, or an error: the kernel unpacks and moves itself
};

/// The file to start: `path` itself, or the vmlinux that was in it, under the same name.
/// Unsupported where `way` is not possible, with the one that is; else KernelFile::open's errors.
Result<KernelFile> open_kernel(const std::string& path, BootWay way);

/// Whether that file may come to run elsewhere than it was linked (KASLR): a bzImage that was built
/// for it and is not told `nokaslr`.
bool moves_itself(const KernelFile& file, std::string_view command_line);

}  // namespace ringside::vmm
