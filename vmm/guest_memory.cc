// Guest-physical memory. In this file: construction, copies that span regions or go through
// another's bytes, the extents of sparse RAM. The copies inside one mapped region are inline in the
// header.
#include "vmm/guest_memory.h"

#include <algorithm>
#include <array>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/base/check.h"
#include "vmm/base/numbers.h"
#include "vmm/copied_bytes.h"
#include "vmm/read_ahead.h"

namespace ringside::vmm {
namespace {

using arch::kPageSize;

/// Adds [start, end) of a region's bytes, widened to whole pages, joined to the last extent when
/// they touch.
void add_extent(std::vector<GuestMemory::Extent>& extents, GuestPhys base, std::uint64_t size,
                std::uint64_t start, std::uint64_t end) {
  start = round_down(start, kPageSize);
  end = end > size - std::min(size, kPageSize) ? size : round_up(end, kPageSize);
  if (start >= end) return;
  const GuestPhys from = base.wrapping_add(start);
  if (!extents.empty() && extents.back().base.wrapping_add(extents.back().size) == from) {
    extents.back().size += end - start;
  } else {
    extents.push_back({from, end - start});
  }
}

/// The extents of [offset, offset + size) that `copied` or `fd` tells.
std::vector<ByteExtent> extents_of(const CopiedBytes* copied, int fd, ByteExtent of) {
  if (copied != nullptr) return copied->extents(of);
  return fd < 0 ? std::vector{of} : data_extents(fd, of);
}

}  // namespace

GuestMemory::GuestMemory(std::vector<Backing> backings) : backings_(std::move(backings)) {
  std::erase_if(backings_, [](const Backing& backing) { return backing.size == 0; });
  std::sort(backings_.begin(), backings_.end(),
            [](const Backing& a, const Backing& b) { return a.base < b.base; });
  for (std::size_t i = 0; i < backings_.size(); ++i) {
    const auto end = backings_[i].base.checked_add(backings_[i].size);
    CHECK(end.has_value());
    CHECK(i + 1 == backings_.size() || *end <= backings_[i + 1].base);
  }
}

GuestMemory GuestMemory::of(const std::vector<Region>& mapped,
                            const std::vector<CopiedRegion>& copied) {
  std::vector<Backing> backings;
  backings.reserve(mapped.size() + copied.size());
  for (const Region& region : mapped) {
    backings.push_back({region.base, region.bytes.size(), region.bytes.data(), region.fd,
                        region.fd_offset, nullptr});
  }
  for (const CopiedRegion& region : copied) {
    CHECK(region.bytes != nullptr);
    backings.push_back({region.base, region.size, nullptr, -1, region.offset, region.bytes});
  }
  return GuestMemory(std::move(backings));
}

/// How many of the `wanted` bytes at `at` lie in the one region that holds `at`; 0: none does.
std::size_t GuestMemory::run_length(GuestPhys at, std::size_t wanted) const {
  const Backing* backing = find(at, 1);
  if (backing == nullptr) return 0;
  return std::min<std::size_t>(wanted, backing->size - at.offset_from(backing->base));
}

bool GuestMemory::read_long_way(GuestPhys at, std::span<std::byte> out) const {
  ReadAhead* const ahead = ReadAhead::of_thread(*this);
  if (ahead != nullptr && ahead->serve(at, out)) return true;
  const GuestPhys first = at;
  const std::size_t size = out.size();
  while (!out.empty()) {
    const std::size_t length = run_length(at, out.size());
    if (length == 0) return false;
    const Backing* backing = find(at, length);
    const std::uint64_t offset = at.offset_from(backing->base);
    if (backing->mapped != nullptr) {
      std::memcpy(out.data(), backing->mapped + offset, length);
    } else {
      const CopyPart part{backing->offset + offset, out.first(length)};
      if (!backing->copied->read(std::span(&part, 1))) return false;
    }
    out = out.subspan(length);
    at = at.wrapping_add(length);  // cannot wrap: the region's end does not
  }
  if (ahead != nullptr) ahead->note(first, size);
  return true;
}

bool GuestMemory::read_long_way(GuestPhys at, std::uint64_t& out) const {
  return read_long_way(at, std::as_writable_bytes(std::span(&out, 1)));
}

/// Regions of one process's memory lie in one address space. As memory is now: looks of the host's
/// own are not served from what was read ahead.
bool GuestMemory::read_each(std::span<const Part> parts) const {
  const ReadAhead::Pause pause;
  std::array<CopyPart, 64> copies;
  const Backing* first = parts.empty() ? nullptr : find(parts[0].at, parts[0].out.size());
  bool in_one = first != nullptr && first->mapped == nullptr && parts.size() <= copies.size();
  for (std::size_t i = 0; in_one && i < parts.size(); ++i) {
    const Backing* const backing = find(parts[i].at, parts[i].out.size());
    in_one = backing != nullptr && backing->copied == first->copied;
    if (in_one) {
      copies[i] = {backing->offset + parts[i].at.offset_from(backing->base), parts[i].out};
    }
  }
  if (in_one) return first->copied->read(std::span(copies).first(parts.size()));
  return std::ranges::all_of(parts, [&](const Part& part) { return read(part.at, part.out); });
}

bool GuestMemory::write(GuestPhys at, std::span<const std::byte> bytes) {
  // Nothing is written unless all of it can be: half a write would corrupt the guest.
  GuestPhys probe = at;
  for (std::size_t left = bytes.size(); left > 0;) {
    const std::size_t length = run_length(probe, left);
    if (length == 0) return false;
    left -= length;
    probe = probe.wrapping_add(length);
  }
  if (ReadAhead* const ahead = ReadAhead::of_thread(*this)) ahead->written(at, bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = run_length(at, bytes.size());
    const Backing* backing = find(at, length);
    const std::uint64_t offset = at.offset_from(backing->base);
    if (backing->mapped != nullptr) {
      std::memcpy(backing->mapped + offset, bytes.data(), length);
    } else if (!backing->copied->write(backing->offset + offset, bytes.first(length))) {
      return false;
    }
    bytes = bytes.subspan(length);
    at = at.wrapping_add(length);
  }
  return true;
}

bool GuestMemory::store64(GuestPhys at, std::uint64_t value) {
  const Backing* backing = find(at, sizeof value);
  if (backing == nullptr || at.raw() % sizeof value != 0) return false;
  if (backing->mapped == nullptr) return write(at, std::as_bytes(std::span(&value, 1)));
  // SAFETY: as in load64; release, because what an entry points to must be visible before it.
  auto* entry = reinterpret_cast<std::uint64_t*>(backing->mapped + at.offset_from(backing->base));
  __atomic_store_n(entry, value, __ATOMIC_RELEASE);
  return true;
}

std::span<std::byte> GuestMemory::mapping(GuestPhys at, std::size_t size) {
  const Backing* backing = find(at, size);
  if (backing == nullptr || backing->mapped == nullptr) return {};
  return {backing->mapped + at.offset_from(backing->base), size};
}

std::vector<GuestMemory::Extent> GuestMemory::present_extents() const {
  std::vector<Extent> extents;
  for (const Backing& backing : backings_) {
    const ByteExtent all{backing.offset, backing.size};
    for (const ByteExtent& found : extents_of(backing.copied.get(), backing.fd, all)) {
      const std::uint64_t start = found.offset - backing.offset;
      add_extent(extents, backing.base, backing.size, start, start + found.size);
    }
  }
  return extents;
}

std::vector<GuestMemory::Extent> GuestMemory::extents() const {
  std::vector<Extent> all;
  for (const Backing& backing : backings_) {
    add_extent(all, backing.base, backing.size, 0, backing.size);
  }
  return all;
}

std::uint64_t GuestMemory::size() const {
  std::uint64_t total = 0;
  for (const Backing& backing : backings_) total += backing.size;
  return total;
}

}  // namespace ringside::vmm
