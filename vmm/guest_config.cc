#include "vmm/guest_config.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace ringside::vmm {

Error unreadable(GuestFile which, const std::string& path, int reason) {
  const bool kernel = which == GuestFile::Kernel;
  return {reason == ENOENT ? ErrorCode::NotFound : ErrorCode::Io,
          fmt::format("cannot read the guest's {} {}: {}; {}", kernel ? "kernel" : "initrd", path,
                      std::strerror(reason),
                      kernel ? "give --kernel a bzImage (/boot/vmlinuz-*) or a vmlinux that you "
                               "may read"
                             : "give --initrd a file that you may read, or leave it away for a "
                               "kernel that needs none")};
}

}  // namespace ringside::vmm
