#include "vmm/process_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/base/numbers.h"
#include "vmm/base/process.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kMostParts = 64;  // of one system call

/// One call's worth of parts.
bool read_some(pid_t pid, std::span<const CopyPart> parts) {
  std::array<iovec, kMostParts> here, there;
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    here[i] = {parts[i].out.data(), parts[i].out.size()};
    // SAFETY: an address of the other process, which the kernel checks; never followed here.
    there[i] = {reinterpret_cast<void*>(parts[i].offset), parts[i].out.size()};
    wanted += parts[i].out.size();
  }
  const ssize_t got =
      process_vm_readv(pid, here.data(), parts.size(), there.data(), parts.size(), 0);
  return got >= 0 && static_cast<std::size_t>(got) == wanted;
}

/// By its pidfd: the number of a process that has ended is given to others.
bool has_ended(int process) {
  pollfd ended{process, POLLIN, 0};
  return poll(&ended, 1, 0) != 0;
}

}  // namespace

Result<std::unique_ptr<ProcessMemory>> ProcessMemory::open(pid_t pid, std::uint64_t somewhere) {
  UniqueFd process(open_pidfd(pid));
  if (!process) {
    return fail(ErrorCode::NotFound,
                fmt::format("there is no process {}: {}", pid, std::strerror(errno)));
  }
  std::byte probe;
  const CopyPart part{somewhere, std::span(&probe, 1)};
  if (!read_some(pid, std::span(&part, 1))) {
    return fail(ErrorCode::Io,
                fmt::format("the memory of process {} cannot be read: {}; be its user, with "
                            "kernel.yama.ptrace_scope at 0, or have CAP_SYS_PTRACE",
                            pid, std::strerror(errno)));
  }
  UniqueFd memory(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDWR | O_CLOEXEC));
  if (has_ended(process.get())) {
    return fail(ErrorCode::NotFound, fmt::format("process {} has ended", pid));
  }
  UniqueFd pagemap(::open(fmt::format("/proc/{}/pagemap", pid).c_str(), O_RDONLY | O_CLOEXEC));
  return std::unique_ptr<ProcessMemory>(
      new ProcessMemory(pid, std::move(process), std::move(memory), std::move(pagemap)));
}

bool ProcessMemory::read(std::span<const CopyPart> parts) const {
  if (parts.size() == 1 && by_file(parts[0].out.size())) {
    const std::span<std::byte> out = parts[0].out;
    const ssize_t got =
        pread(memory_.get(), out.data(), out.size(), static_cast<off_t>(parts[0].offset));
    return got >= 0 && static_cast<std::size_t>(got) == out.size();
  }
  while (!parts.empty()) {
    const std::size_t now = std::min(parts.size(), kMostParts);
    if (!read_some(pid_, parts.first(now))) return false;
    parts = parts.subspan(now);
  }
  return true;
}

bool ProcessMemory::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (by_file(bytes.size())) {
    const ssize_t put =
        pwrite(memory_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    return put >= 0 && static_cast<std::size_t>(put) == bytes.size();
  }
  if (has_ended(process_.get())) return false;
  // SAFETY: read only; iovec has no form for that. The other address the kernel checks.
  const iovec here{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const iovec there{reinterpret_cast<void*>(offset), bytes.size()};
  const ssize_t put = process_vm_writev(pid_, &here, 1, &there, 1, 0);
  return put >= 0 && static_cast<std::size_t>(put) == bytes.size();
}

/// Whether /proc/PID/maps has all of it as memory of which only pages that pagemap shows need
/// looking at: memory without a file, where any other page is zero, and shared memory, where
/// reading any other would make it. Layout: proc(5).
bool ProcessMemory::tells_pages(ByteExtent of) const {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid_));
  std::uint64_t reached = of.offset;
  for (std::string line; std::getline(maps, line) && reached < of.offset + of.size;) {
    std::uint64_t begin = 0, end = 0, inode = 0;
    char sharing = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*3c%c %*x %*x:%*x %" SCNu64, &begin,
                    &end, &sharing, &inode) != 4) {
      return false;
    }
    if (end <= reached) continue;
    if (begin > reached || (sharing == 'p' && inode != 0)) return false;
    reached = end;
  }
  return reached >= of.offset + of.size;
}

std::vector<ByteExtent> ProcessMemory::extents(ByteExtent of) const {
  if (!pagemap_ || of.size == 0 || !tells_pages(of)) return {of};
  if (auto scanned = scan_pagemap(pagemap_.get(), of)) return std::move(*scanned);
  std::ifstream smaps(fmt::format("/proc/{}/smaps", pid_));
  const std::string text{std::istreambuf_iterator<char>(smaps), {}};
  if (auto found = read_pagemap(pagemap_.get(), text, of)) return std::move(*found);
  return {of};
}

// In this file, top to bottom: the scan, entries one by one.

namespace {

using arch::kPageSize;

// include/uapi/linux/fs.h of Linux 6.7, which Debian 12 does not have.
struct PageRegion {
  std::uint64_t start = 0, end = 0, categories = 0;
};
struct ScanArguments {
  std::uint64_t size = sizeof(ScanArguments), flags = 0, start = 0, end = 0, walk_end = 0;
  std::uint64_t regions = 0, region_count = 0, most_pages = 0;
  std::uint64_t inverted = 0, all_of = 0, any_of = 0, returned = 0;
};
constexpr unsigned long kScan = _IOWR('f', 16, ScanArguments);
constexpr std::uint64_t kIsPresent = 1 << 3, kIsSwapped = 1 << 4;

constexpr std::uint64_t kPresent = std::uint64_t{1} << 63, kSwapped = std::uint64_t{1} << 62;

/// Adds what of [from, to) is in `of`.
void add(std::vector<ByteExtent>& found, ByteExtent of, std::uint64_t from, std::uint64_t to) {
  from = std::max(from, of.offset);
  to = std::min(to, of.offset + of.size);
  if (from >= to) return;
  if (!found.empty() && found.back().offset + found.back().size == from) {
    found.back().size += to - from;
  } else {
    found.push_back({from, to - from});
  }
}

/// The next mapping in the text of smaps, and how much of it is there, in KiB.
struct SmapsEntry {
  std::uint64_t begin = 0, end = 0, there = 0;
};

std::vector<SmapsEntry> parse_smaps(const std::string& text) {
  std::vector<SmapsEntry> entries;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    SmapsEntry entry;
    std::uint64_t amount = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &entry.begin, &entry.end) == 2) {
      entries.push_back(entry);
      continue;
    }
    // Huge pages of hugetlbfs are not counted in Rss.
    for (const char* field : {"Rss: %" SCNu64, "Swap: %" SCNu64, "Shared_Hugetlb: %" SCNu64,
                              "Private_Hugetlb: %" SCNu64}) {
      const bool is_it = std::sscanf(line.c_str(), field, &amount) == 1;
      if (is_it && !entries.empty()) entries.back().there |= amount;
    }
  }
  return entries;
}

bool read_entries(int pagemap, ByteExtent part, ByteExtent of, std::vector<ByteExtent>& found) {
  std::array<std::uint64_t, 4096> entries;
  const std::uint64_t end = part.offset + part.size;
  for (std::uint64_t at = part.offset; at < end;) {
    const std::size_t wanted = std::min<std::uint64_t>(entries.size(), (end - at) / kPageSize);
    const ssize_t got = pread(pagemap, entries.data(), wanted * sizeof entries[0],
                              static_cast<off_t>(at / kPageSize * sizeof entries[0]));
    if (got != static_cast<ssize_t>(wanted * sizeof entries[0])) return false;
    for (std::size_t i = 0; i < wanted; ++i, at += kPageSize) {
      if ((entries[i] & (kPresent | kSwapped)) != 0) add(found, of, at, at + kPageSize);
    }
  }
  return true;
}

}  // namespace

std::optional<std::vector<ByteExtent>> scan_pagemap(int pagemap, ByteExtent of) {
  std::vector<ByteExtent> found;
  std::array<PageRegion, 512> regions;
  ScanArguments scan;
  scan.start = round_down(of.offset, kPageSize);
  scan.end = round_up(of.offset + of.size, kPageSize);
  // SAFETY: the call's own form for a pointer.
  scan.regions = reinterpret_cast<std::uint64_t>(regions.data());
  scan.region_count = regions.size();
  scan.any_of = scan.returned = kIsPresent | kIsSwapped;
  while (scan.start < scan.end) {
    const int count = ioctl(pagemap, kScan, &scan);
    const bool goes_on = count >= 0 && static_cast<std::size_t>(count) <= regions.size() &&
                         scan.walk_end > scan.start && scan.walk_end <= scan.end;
    if (!goes_on) return std::nullopt;
    for (const PageRegion& region : std::span(regions).first(static_cast<std::size_t>(count))) {
      add(found, of, region.start, region.end);
    }
    scan.start = scan.walk_end;
  }
  return found;
}

std::optional<std::vector<ByteExtent>> read_pagemap(int pagemap, const std::string& smaps,
                                                    ByteExtent of) {
  if (smaps.empty()) return std::nullopt;
  std::vector<ByteExtent> found;
  const std::uint64_t first = round_down(of.offset, kPageSize);
  const std::uint64_t last = round_up(of.offset + of.size, kPageSize);
  for (const SmapsEntry& mapping : parse_smaps(smaps)) {
    const std::uint64_t from = std::max(mapping.begin, first), to = std::min(mapping.end, last);
    if (mapping.there == 0 || from >= to) continue;
    if (!read_entries(pagemap, {from, to - from}, of, found)) return std::nullopt;
  }
  return found;
}

}  // namespace ringside::vmm
