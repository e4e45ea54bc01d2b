// In this file, top to bottom: the scan, entries one by one.
#include "vmm/pagemap.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <span>
#include <sstream>

#include "vmm/arch/arch.h"
#include "vmm/base/align.h"

namespace ringside::vmm {
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
