#include "vmm/copied_bytes.h"

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

namespace ringside::vmm {
namespace {

/// No file is larger than an off_t can say.
bool in_a_file(std::uint64_t offset, std::uint64_t size) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  return size <= kMost && offset <= kMost - size;
}

bool read_all(int fd, CopyPart part) {
  if (!in_a_file(part.offset, part.out.size())) return false;
  auto at = static_cast<off_t>(part.offset);
  while (!part.out.empty()) {
    const ssize_t got = pread(fd, part.out.data(), part.out.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    part.out = part.out.subspan(static_cast<std::size_t>(got));
    at += got;
  }
  return true;
}

}  // namespace

std::vector<ByteExtent> data_extents(int fd, ByteExtent of) {
  std::vector<ByteExtent> found;
  if (!in_a_file(of.offset, of.size)) return found;
  auto at = static_cast<off_t>(of.offset);
  const off_t end = at + static_cast<off_t>(of.size);
  while (at < end) {
    const off_t data = lseek(fd, at, SEEK_DATA);
    if (data < 0 && errno != ENXIO) return {of};  // no seekable file: everything may be there
    if (data < 0 || data >= end) break;           // only a hole is left
    off_t hole = lseek(fd, data, SEEK_HOLE);
    if (hole <= data || hole > end) hole = end;
    found.push_back({static_cast<std::uint64_t>(data), static_cast<std::uint64_t>(hole - data)});
    at = hole;
  }
  return found;
}

bool FileMemory::read(std::span<const CopyPart> parts) const {
  for (const CopyPart& part : parts) {
    if (!read_all(fd_.get(), part)) return false;
  }
  return true;
}

bool FileMemory::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  struct stat info;
  if (!in_a_file(offset, bytes.size()) || fstat(fd_.get(), &info) != 0) return false;
  if (S_ISREG(info.st_mode) && offset + bytes.size() > static_cast<std::uint64_t>(info.st_size)) {
    return false;
  }
  auto at = static_cast<off_t>(offset);
  while (!bytes.empty()) {
    const ssize_t put = pwrite(fd_.get(), bytes.data(), bytes.size(), at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    at += put;
  }
  return true;
}

}  // namespace ringside::vmm
