#include "vmm/kvm/initrd_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "vmm/base/unique_fd.h"
#include "vmm/guest_config.h"
#include "vmm/kvm/initrd_parts.h"

namespace ringside::vmm::kvm {
Result<InitrdFile> InitrdFile::open(const std::string& path) {
  if (path.empty()) return InitrdFile(std::span<std::byte>{});
  const auto failed = [&](int reason) {
    return Unexpected<Error>(unreadable(GuestFile::Initrd, path, reason));
  };
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return failed(errno);
  if (!S_ISREG(info.st_mode)) {
    return failed(S_ISDIR(info.st_mode) ? EISDIR : EINVAL);
  }
  if (info.st_size == 0) {
    return fail(ErrorCode::Invalid,
                fmt::format("the initrd {} is empty: copy or build it again", path));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (bytes == MAP_FAILED) return failed(errno);
  InitrdFile initrd({static_cast<std::byte*>(bytes), size});
  if (is_cut_off(initrd.bytes())) {
    return fail(
        ErrorCode::Invalid,
        fmt::format("the initrd {} is cut off after {} bytes: copy or build it again", path, size));
  }
  return initrd;
}

InitrdFile::~InitrdFile() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace ringside::vmm::kvm
