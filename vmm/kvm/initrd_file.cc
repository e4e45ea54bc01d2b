// Formats: Linux Documentation/driver-api/early-userspace/buffer-format.rst (cpio "newc"); The .xz
// File Format 1.1.0, 2.1.2.4 (the footer's magic bytes).
#include "vmm/kvm/initrd_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "vmm/base/unique_fd.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::size_t kHeader = 110;
constexpr std::string_view kEnd = "TRAILER!!!";

std::optional<std::size_t> hex_field(std::string_view header, std::size_t index) {
  const std::string_view digits = header.substr(6 + index * 8, 8);
  std::size_t value = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

constexpr std::size_t round_up(std::size_t value) {
  return (value + 3) & ~std::size_t{3};
}

/// Walks from header to header up to the archive's trailer.
bool cpio_is_cut_off(std::string_view file) {
  std::size_t at = 0;
  while (at + kHeader <= file.size()) {
    const std::string_view header = file.substr(at, kHeader);
    const auto size = hex_field(header, 6), name_size = hex_field(header, 11);
    if (!header.starts_with("07070") || !size || !name_size) return false;  // odd, not cut off
    const std::size_t name = at + kHeader, data = round_up(name + *name_size);
    if (data > file.size() || *size > file.size() - data) return true;
    if (file.substr(name).starts_with(kEnd)) return false;
    at = round_up(data + *size);
  }
  return true;
}

Error cannot_read(const std::string& path, int reason) {
  return {ErrorCode::NotFound,
          fmt::format("cannot read the guest's initrd {}: {}", path, std::strerror(reason))};
}

}  // namespace

bool is_cut_off(std::span<const std::byte> archive) {
  const std::string_view file(reinterpret_cast<const char*>(archive.data()), archive.size());
  if (file.starts_with("070701") || file.starts_with("070702")) return cpio_is_cut_off(file);
  using namespace std::string_view_literals;
  if (file.starts_with("\xfd"
                       "7zXZ\0"sv))
    return !file.ends_with("YZ");
  return false;
}

Result<InitrdFile> InitrdFile::open(const std::string& path) {
  if (path.empty()) return InitrdFile(std::span<std::byte>{});
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return Unexpected<Error>(cannot_read(path, errno));
  if (!S_ISREG(info.st_mode)) {
    return Unexpected<Error>(cannot_read(path, S_ISDIR(info.st_mode) ? EISDIR : EINVAL));
  }
  if (info.st_size == 0) {
    return fail(ErrorCode::Invalid, fmt::format("the initrd {} is empty", path));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (bytes == MAP_FAILED) return Unexpected<Error>(cannot_read(path, errno));
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
