#include "vmm/kvm/devices/disk_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

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

namespace {

struct Bytes {
  off_t start, length;  // no length: to the file's end, wherever that is
};
constexpr Bytes kWhole{0, 0};

// QEMU's permissions: 0 to read, 1 to write, 3 to resize; 2 and 4 do not matter here.
constexpr off_t kUses = 100, kForbids = 200;
/// A reader uses 0 and forbids 1 and 3. The bytes of other permissions stay free, those of no
/// meaning are for programs that lock all of a file.
constexpr std::array kReaders{Bytes{0, kUses + 1}, Bytes{kForbids + 1, 1}, Bytes{kForbids + 3, 1},
                              Bytes{kForbids + 100, 0}};
/// A lock on one of these means that somebody writes, or forbids others to read.
constexpr std::array kAgainstReaders{Bytes{kUses + 1, 1}, Bytes{kUses + 3, 1}, Bytes{kForbids, 1}};

struct flock record(short type, Bytes bytes) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = bytes.start;
  lock.l_len = bytes.length;
  return lock;
}

/// 0, or errno.
int take(int fd, short type, Bytes bytes) {
  const struct flock lock = record(type, bytes);
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

/// Whether another has a lock of any kind there.
bool is_locked(int fd, Bytes bytes) {
  struct flock lock = record(F_WRLCK, bytes);
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/// 0, or errno.
int take_record_locks(int fd, bool read_only) {
  if (!read_only) return take(fd, F_WRLCK, kWhole);
  for (const Bytes& bytes : kReaders) {
    if (const int error = take(fd, F_RDLCK, bytes)) return error;
  }
  // After our own locks are taken, as QEMU does it: of two at once, one sees the other.
  for (const Bytes& bytes : kAgainstReaders) {
    if (is_locked(fd, bytes)) return EAGAIN;
  }
  return 0;
}

/// False when another has that lock; file systems without it have nobody to conflict with.
bool take_flock(int fd, bool read_only) {
  const auto take = [fd](int kind) {
    return ::flock(fd, kind | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  };
  if (read_only) return take(LOCK_SH);
  if (take(LOCK_EX)) return true;
  // Right after a write to a block device udev holds a shared lock for a moment, to look at it.
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISBLK(status.st_mode) && take(LOCK_SH);
}

}  // namespace

tl::expected<UniqueFd, int> open_disk(const DiskConfig& config) {
  const char* const path = config.path.c_str();
  // O_NONBLOCK: not to hang at a FIFO; files and block devices ignore it.
  const int flags = (config.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK;
  struct stat status {};
  if (::stat(path, &status) == 0 && S_ISBLK(status.st_mode)) {
    // For a block device O_EXCL is a claim (open(2)). Readers only try it: they share.
    UniqueFd claim(::open(path, flags | O_EXCL));
    if (!claim) return tl::make_unexpected(errno);
    if (!config.read_only) return claim;
  }
  UniqueFd fd(::open(path, flags));
  if (!fd) return tl::make_unexpected(errno);
  return fd;
}

Result<void> lock_disk(int fd, const DiskConfig& config) {
  int error = take_record_locks(fd, config.read_only);
  if (error == 0 && !take_flock(fd, config.read_only)) error = EAGAIN;
  if (error == 0) return {};
  if (error == EAGAIN || error == EACCES) {
    return fail(ErrorCode::Io,
                fmt::format("the disk {} is in use already: stop what uses it (fuser {} names "
                            "it), or give a copy",
                            config.path, config.path));
  }
  return fail(ErrorCode::Io, fmt::format("cannot lock the disk {}: {}; give a copy on a file "
                                         "system that has locks",
                                         config.path, std::strerror(error)));
}

}  // namespace ringside::vmm::kvm
