#include "vmm/kvm/devices/bus.h"

#include <fmt/format.h>

#include <algorithm>

#include "vmm/kvm/devices/device.h"

namespace ringside::vmm::kvm {

Result<void> Bus::add(std::uint64_t base, std::uint64_t size, Device& device) {
  if (size == 0 || size - 1 > UINT64_MAX - base) {
    return fail(ErrorCode::Invalid,
                fmt::format("a device's range at {:#x} is empty or wraps", base));
  }
  const std::uint64_t last = base + (size - 1);
  const auto after = std::ranges::upper_bound(ranges_, base, {}, &Range::base);
  const bool over_next = after != ranges_.end() && after->base <= last;
  const bool over_previous =
      after != ranges_.begin() && base - std::prev(after)->base < std::prev(after)->size;
  if (over_next || over_previous) {
    return fail(ErrorCode::Invalid,
                fmt::format("two devices want the address {:#x}", over_next ? after->base : base));
  }
  ranges_.insert(after, {base, size, &device});
  return {};
}

const Bus::Range* Bus::find(std::uint64_t address, std::size_t size) const {
  const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::base);
  if (after == ranges_.begin()) return nullptr;
  const Range& range = *std::prev(after);
  const std::uint64_t offset = address - range.base;
  return offset < range.size && size <= range.size - offset ? &range : nullptr;
}

void Bus::read(std::uint64_t address, std::span<std::byte> data) const {
  const Range* range = find(address, data.size());
  if (range == nullptr) return put_all_ones(data);
  std::ranges::fill(data, std::byte{0});
  range->device->read(address - range->base, data);
}

void Bus::write(std::uint64_t address, std::span<const std::byte> data) const {
  const Range* range = find(address, data.size());
  if (range != nullptr) range->device->write(address - range->base, data);
}

}  // namespace ringside::vmm::kvm
