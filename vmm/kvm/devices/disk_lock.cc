#include "vmm/kvm/devices/disk_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace ringside::vmm::kvm {
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
