// Guest-physical memory. In this file: construction, copies that span regions, the extents of a
// sparse RAM file. The copies inside one region are inline in the header.
#include "vmm/guest_memory.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "vmm/base/check.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t page_down(std::uint64_t value) {
  return value & ~(kPage - 1);
}

/// Adds [start, end) of the region's bytes, widened to whole pages, joined to the last extent when
/// they touch.
void add_extent(std::vector<GuestMemory::Extent>& extents, const GuestMemory::Region& region,
                std::uint64_t start, std::uint64_t end) {
  start = page_down(start);
  const std::uint64_t limit = region.bytes.size();
  end = end > limit - std::min<std::uint64_t>(limit, kPage) ? limit : page_down(end + kPage - 1);
  if (start >= end) return;
  const std::uint64_t base = region.base.raw() + start;
  if (!extents.empty() && extents.back().base.raw() + extents.back().size == base) {
    extents.back().size += end - start;
  } else {
    extents.push_back({GuestPhys(base), end - start});
  }
}

/// Walks the data of a sparse file. A file system that cannot tell holes reports one big extent.
void add_data_extents(std::vector<GuestMemory::Extent>& extents,
                      const GuestMemory::Region& region) {
  const auto first = static_cast<off_t>(region.fd_offset);
  const off_t end = first + static_cast<off_t>(region.bytes.size());
  off_t at = first;
  while (at < end) {
    const off_t data = lseek(region.fd, at, SEEK_DATA);
    if (data < 0 || data >= end) return;  // ENXIO: only a hole is left
    off_t hole = lseek(region.fd, data, SEEK_HOLE);
    if (hole <= data || hole > end) hole = end;
    add_extent(extents, region, static_cast<std::uint64_t>(data - first),
               static_cast<std::uint64_t>(hole - first));
    at = hole;
  }
}

}  // namespace

GuestMemory::GuestMemory(std::vector<Region> regions) : regions_(std::move(regions)) {
  std::erase_if(regions_, [](const Region& region) { return region.bytes.empty(); });
  std::sort(regions_.begin(), regions_.end(),
            [](const Region& a, const Region& b) { return a.base < b.base; });
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const auto end = regions_[i].base.checked_add(regions_[i].bytes.size());
    CHECK(end.has_value());
    CHECK(i + 1 == regions_.size() || *end <= regions_[i + 1].base);
  }
}

/// How many of the `wanted` bytes at `at` lie in the one region that holds `at`; 0: none does.
std::size_t GuestMemory::run_length(GuestPhys at, std::size_t wanted) const {
  const Region* region = find(at, 1);
  if (region == nullptr) return 0;
  return std::min<std::size_t>(wanted, region->bytes.size() - (at.raw() - region->base.raw()));
}

bool GuestMemory::read_across(GuestPhys at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::size_t length = run_length(at, out.size());
    if (length == 0) return false;
    const Region* region = find(at, length);
    std::memcpy(out.data(), region->bytes.data() + (at.raw() - region->base.raw()), length);
    out = out.subspan(length);
    at = GuestPhys(at.raw() + length);  // cannot wrap: the region's end does not
  }
  return true;
}

bool GuestMemory::write(GuestPhys at, std::span<const std::byte> bytes) {
  // Nothing is written unless all of it can be: half a write would corrupt the guest.
  GuestPhys probe = at;
  for (std::size_t left = bytes.size(); left > 0;) {
    const std::size_t length = run_length(probe, left);
    if (length == 0) return false;
    left -= length;
    probe = GuestPhys(probe.raw() + length);
  }
  while (!bytes.empty()) {
    const std::size_t length = run_length(at, bytes.size());
    const Region* region = find(at, length);
    std::memcpy(region->bytes.data() + (at.raw() - region->base.raw()), bytes.data(), length);
    bytes = bytes.subspan(length);
    at = GuestPhys(at.raw() + length);
  }
  return true;
}

bool GuestMemory::store64(GuestPhys at, std::uint64_t value) {
  const Region* region = find(at, sizeof value);
  if (region == nullptr || at.raw() % sizeof value != 0) return false;
  // SAFETY: as in load64; release, because what an entry points to must be visible before it.
  auto* entry =
      reinterpret_cast<std::uint64_t*>(region->bytes.data() + (at.raw() - region->base.raw()));
  __atomic_store_n(entry, value, __ATOMIC_RELEASE);
  return true;
}

std::span<std::byte> GuestMemory::shared_window(GuestPhys at, std::size_t size) {
  const Region* region = find(at, size);
  if (region == nullptr) return {};
  return region->bytes.subspan(at.raw() - region->base.raw(), size);
}

std::vector<GuestMemory::Extent> GuestMemory::present_extents() const {
  std::vector<Extent> extents;
  for (const Region& region : regions_) {
    if (region.fd < 0) {
      extents.push_back({region.base, region.bytes.size()});
    } else {
      add_data_extents(extents, region);
    }
  }
  return extents;
}

std::uint64_t GuestMemory::size() const {
  std::uint64_t total = 0;
  for (const Region& region : regions_) total += region.bytes.size();
  return total;
}

}  // namespace ringside::vmm
