// In this file, top to bottom: the file behind a mapping, opening, mapping.
#include "vmm/attach/ram/ram_backing.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <optional>
#include <string>
#include <utility>

#include "vmm/attach/host/host_process.h"
#include "vmm/copied_bytes.h"
#include "vmm/process_memory.h"

namespace ringside::vmm {
namespace {

/// The file behind a shared mapping, if it is one that lives in memory and the process still has a
/// descriptor of it.
UniqueFd open_file(const HostProcess& process,
                   const std::vector<HostProcess::Descriptor>& descriptors,
                   const MemoryMapping& mapping, int access) {
  if (!mapping.shared || mapping.inode == 0) return {};
  for (const HostProcess::Descriptor& descriptor : descriptors) {
    const std::string path = process.path("fd/" + std::to_string(descriptor.number));
    struct stat found {};
    // Only a regular file is opened: to open something else may do something.
    if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode) ||
        found.st_ino != mapping.inode || found.st_dev != mapping.device) {
      continue;
    }
    UniqueFd file(::open(path.c_str(), access | O_CLOEXEC));
    struct statfs system {};
    if (file && ::fstatfs(file.get(), &system) == 0 && system.f_type == TMPFS_MAGIC) return file;
  }
  return {};
}

/// Whether a mapping of it stays good: one that shrinks raises SIGBUS in processes that have it
/// mapped.
bool never_shrinks(int file) {
  const int seals = ::fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

bool is_writable(int file) {
  const int seals = ::fcntl(file, F_GET_SEALS);
  return seals < 0 || (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) == 0;
}

}  // namespace

Result<RamBacking> RamBacking::open(const HostProcess& process, Access access) {
  auto mappings = process.mappings();
  auto descriptors = process.descriptors();
  if (!mappings || !descriptors || mappings->empty()) {
    return tl::make_unexpected(explain_no_access(process));
  }
  RamBacking backing;
  for (const MemoryMapping& mapping : *mappings) {
    if (!mapping.readable) continue;
    auto opened = ProcessMemory::open(process.pid(), mapping.begin);
    if (opened) backing.process_memory_ = std::move(*opened);
    break;
  }
  const bool writes = access == Access::Write;
  if (!backing.process_memory_ && writes) return tl::make_unexpected(explain_no_access(process));
  std::shared_ptr<CopiedBytes> bytes = backing.process_memory_;
  if (bytes && !writes) bytes = std::make_shared<ReadOnlyBytes>(bytes);
  for (MemoryMapping& mapping : ram_candidates(*mappings)) {
    RamCandidate candidate{std::move(mapping), bytes, 0};
    candidate.offset = candidate.mapping.begin;
    UniqueFd file = open_file(process, *descriptors, candidate.mapping, writes ? O_RDWR : O_RDONLY);
    UniqueFd mappable;
    if (file && (!writes || is_writable(file.get()))) {
      // A mapping could be written to.
      if (writes && never_shrinks(file.get()))
        mappable = UniqueFd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
      candidate.offset = candidate.mapping.offset;
      candidate.bytes = std::make_shared<FileMemory>(std::move(file));
    }
    if (!candidate.bytes) continue;
    backing.candidates_.push_back(std::move(candidate));
    backing.files_.push_back(std::move(mappable));
  }
  if (!backing.process_memory_ && backing.candidates_.empty()) {
    return tl::make_unexpected(explain_no_access(process));
  }
  return backing;
}

bool RamBacking::map(const RamRange& range, std::vector<GuestMemory::Region>& regions) {
  const int file = files_[range.candidate].get();
  if (file < 0) return false;
  const std::uint64_t offset = candidates_[range.candidate].offset + range.start;
  struct stat status {};
  if (::fstat(file, &status) != 0 ||
      offset + range.size > static_cast<std::uint64_t>(status.st_size)) {
    return false;
  }
  void* at = ::mmap(nullptr, range.size, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                    static_cast<off_t>(offset));
  if (at == MAP_FAILED) return false;
  mapped_.emplace_back(static_cast<std::byte*>(at), range.size);
  regions.push_back({range.base, mapped_.back(), file, offset});
  return true;
}

GuestMemory RamBacking::make(const std::vector<RamRange>& ranges) {
  std::vector<GuestMemory::Region> regions;
  for (const RamRange& range : ranges) {
    if (!map(range, regions)) return memory_of(ranges, candidates_);
  }
  return GuestMemory(regions);
}

RamBacking::~RamBacking() {
  for (const std::span<std::byte> bytes : mapped_) ::munmap(bytes.data(), bytes.size());
}

}  // namespace ringside::vmm
