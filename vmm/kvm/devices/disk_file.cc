#include "vmm/kvm/devices/disk_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "vmm/kvm/devices/disk_lock.h"

namespace ringside::vmm::kvm {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  std::string_view format;
};
// From each format's published description; a header's first bytes unless said otherwise.
constexpr std::array<Magic, 10> kMagics{{
    {0, "QFI\xfb"sv, "qcow2"sv},
    {0, "QED\0"sv, "qed"sv},
    {0, "KDMV"sv, "vmdk"sv},
    {0, "COWD"sv, "vmdk"sv},
    {0, "# Disk DescriptorFile"sv, "vmdk"sv},
    {0x40, "\x7f\x10\xda\xbe"sv, "vdi"sv},
    {0, "vhdxfile"sv, "vhdx"sv},
    {0, "conectix"sv, "vpc"sv},
    {0, "LUKS\xba\xbe"sv, "luks"sv},
    {0, "WithoutFreeSpace"sv, "parallels"sv},
}};

/// The format that the file's header shows; empty for raw.
std::string_view foreign_format(int fd) {
  std::array<char, 512> header{};
  const ssize_t size = ::pread(fd, header.data(), header.size(), 0);
  const std::string_view text(header.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  for (const Magic& magic : kMagics) {
    if (text.size() > magic.offset && text.substr(magic.offset).starts_with(magic.bytes)) {
      return magic.format;
    }
  }
  return {};
}

/// Why a disk could not be opened, and the way out.
Error cannot_open(const DiskConfig& config, int reason) {
  const std::string& path = config.path;
  switch (reason) {
    case EISDIR:
      return {
          ErrorCode::Invalid,
          fmt::format("the disk {} is a directory; a raw image or a block device is needed", path)};
    case EBUSY:
      return {ErrorCode::Io,
              fmt::format("the disk {} is in use by this host: umount it (lsblk {} shows where), "
                          "or give a copy",
                          path, path)};
    case ENOENT:
      return {ErrorCode::NotFound,
              fmt::format("there is no disk {}: truncate -s 1G {} makes one", path, path)};
    default: break;
  }
  std::string way_out;
  if (reason == EACCES || reason == EPERM || reason == EROFS) {
    way_out = config.read_only ? "; give yourself the right to read it, or a copy"
                               : fmt::format("; --disk {},ro only reads it", path);
  }
  return {ErrorCode::Io,
          fmt::format("cannot open the disk {}{}: {}{}", path,
                      config.read_only ? "" : " for writing", std::strerror(reason), way_out)};
}

/// The file's size, when it is one that can be a disk.
Result<std::uint64_t> checked_size(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return fail(ErrorCode::Io, fmt::format("the disk {}: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)) {
    return fail(ErrorCode::Invalid,
                fmt::format("the disk {} is {}; a raw image or a block device is needed", path,
                            S_ISDIR(status.st_mode) ? "a directory" : "no file"));
  }
  const off_t size = ::lseek(fd, 0, SEEK_END);  // a block device's st_size is 0
  if (size < 0) {
    return fail(ErrorCode::Io, fmt::format("the disk {}: {}", path, std::strerror(errno)));
  }
  return static_cast<std::uint64_t>(size);
}

/// Calls `transfer`, preadv or pwritev, until all of `pieces` is done.
template <class Transfer>
bool transfer_all(DiskFile::Pieces pieces, std::uint64_t offset, Transfer transfer) {
  constexpr std::size_t kAtOnce = 64;
  std::array<iovec, kAtOnce> vectors;
  std::size_t first = 0, skip = 0;  // done: the pieces before `first`, and `skip` bytes of it
  while (first < pieces.size()) {
    const std::size_t count = std::min(kAtOnce, pieces.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      const auto rest = pieces[first + i].subspan(i == 0 ? skip : 0);
      vectors[i] = {rest.data(), rest.size()};
    }
    const ssize_t moved =
        transfer(vectors.data(), static_cast<int>(count), static_cast<off_t>(offset));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;  // 0: the file became shorter than it was
    offset += static_cast<std::uint64_t>(moved);
    skip += static_cast<std::size_t>(moved);
    while (first < pieces.size() && skip >= pieces[first].size()) skip -= pieces[first++].size();
  }
  return true;
}

}  // namespace

Result<DiskFile> DiskFile::open(const DiskConfig& config) {
  auto opened = open_disk(config);
  if (!opened) return Unexpected<Error>(cannot_open(config, opened.error()));
  UniqueFd fd = std::move(*opened);
  const std::uint64_t size = TRY(checked_size(fd.get(), config.path));
  const std::string_view format = foreign_format(fd.get());
  if (!format.empty()) {
    return fail(ErrorCode::Invalid,
                fmt::format("the disk {} is a {} image, only raw ones can be used: "
                            "qemu-img convert -O raw {} {}.raw",
                            config.path, format, config.path, config.path));
  }
  if (size == 0) {
    return fail(ErrorCode::Invalid,
                fmt::format("the disk {} is empty: truncate -s 1G {} makes it one of 1 GiB",
                            config.path, config.path));
  }
  if (size % kSector != 0) {
    return fail(ErrorCode::Invalid,
                fmt::format("the disk {} has {} bytes, not a multiple of {}: truncate -s %{} {}",
                            config.path, size, kSector, kSector, config.path));
  }
  TRY(lock_disk(fd.get(), config));
  return DiskFile(std::move(fd), size, config.read_only);
}

bool DiskFile::read(std::uint64_t offset, Pieces pieces) const {
  return transfer_all(pieces, offset, [this](const iovec* vectors, int count, off_t at) {
    return ::preadv(fd_.get(), vectors, count, at);
  });
}

bool DiskFile::write(std::uint64_t offset, Pieces pieces) const {
  return transfer_all(pieces, offset, [this](const iovec* vectors, int count, off_t at) {
    return ::pwritev(fd_.get(), vectors, count, at);
  });
}

bool DiskFile::flush() const {
  return ::fdatasync(fd_.get()) == 0;
}

}  // namespace ringside::vmm::kvm
