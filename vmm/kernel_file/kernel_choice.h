// Chooses how a kernel file is started. A bzImage unpacks and moves itself, or the vmlinux inside
// it is started directly by its PVH note. Then nothing is unpacked in the guest and nothing moves:
// its symbols are right as they are, and its first instruction comes half a second earlier. Used by
// the kvm machine, and by readers of the same kernel's symbols.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vmm/base/result.h"
#include "vmm/kernel_file/kernel_file.h"

namespace ringside::vmm {

/// How the kvm machine starts a kernel file.
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
