#include "vmm/linux/text/relocations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/base/bytes.h"

namespace ringside::guest_linux {
namespace {

using Places = std::vector<std::uint64_t>;

/// From the first to the last byte of the kernel's own segments. Between them lies the initial
/// per-CPU data too, which is linked elsewhere.
struct Bounds {
  std::uint64_t begin = UINT64_MAX, end = 0;
};

Bounds bounds_of(const vmm::ElfFile& image) {
  Bounds bounds;
  for (const vmm::ElfFile::Segment& segment : image.segments()) {
    if (!arch::in_kernel_half(GuestVirt(segment.address)) ||
        segment.size > UINT64_MAX - segment.address) {
      continue;
    }
    bounds.begin = std::min(bounds.begin, segment.address);
    bounds.end = std::max(bounds.end, segment.address + segment.size);
  }
  return bounds;
}

/// The list that ends at the end of `rest`, which loses it and the 0 before it. Empty where it is
/// none.
std::optional<Places> take_list(std::span<const std::byte>& rest, const Bounds& bounds) {
  std::span<const std::byte> left = rest;
  Places places;
  while (left.size() >= sizeof(std::int32_t)) {
    left = left.first(left.size() - sizeof(std::int32_t));
    const auto word = load_at<std::int32_t>(rest, left.size());
    if (word == 0) {
      std::sort(places.begin(), places.end());
      rest = left;
      return places;
    }
    const auto place = static_cast<std::uint64_t>(std::int64_t{word});
    if (place < bounds.begin || place >= bounds.end) return std::nullopt;
    places.push_back(place);
  }
  return std::nullopt;
}

/// Adds to every number of the list that shares a byte with the copy. A number that begins before
/// the copy is taken from the image: what it carries into the copy depends on all of it.
template <class Number>
void add(const Places& places, Number delta, const vmm::ElfFile& image, std::uint64_t at,
         std::span<std::byte> copy) {
  const std::uint64_t first = at - std::min<std::uint64_t>(at, sizeof(Number) - 1);
  auto place = std::lower_bound(places.begin(), places.end(), first);
  for (; place != places.end() && (*place < at || *place - at < copy.size()); ++place) {
    const auto bytes = image.bytes_at(*place, sizeof(Number));
    if (!bytes) continue;
    const Number number = load_at<Number>(*bytes, 0) + delta;
    const auto moved = std::as_bytes(std::span(&number, 1));
    for (std::size_t i = 0; i < moved.size(); ++i) {
      const std::uint64_t to = *place + i - at;  // huge before the copy
      if (to < copy.size()) copy[to] = moved[i];
    }
  }
}

}  // namespace

Relocations Relocations::parse(std::span<const std::byte> payload, const vmm::ElfFile& image) {
  const Bounds bounds = bounds_of(image);
  Relocations all;
  auto words = take_list(payload, bounds);
  auto second = words ? take_list(payload, bounds) : std::nullopt;
  if (!second) return all;
  all.words_ = std::move(*words);
  auto third = take_list(payload, bounds);
  // Without an inverse list, the ELF image itself stands before the second one.
  const bool has_inverse = third && !third->empty();
  all.longs_ = has_inverse ? std::move(*third) : std::move(*second);
  if (has_inverse) all.inverse_ = std::move(*second);
  return all;
}

void Relocations::apply(const vmm::ElfFile& image, std::uint64_t at, std::span<std::byte> copy,
                        std::int64_t slide) const {
  const auto delta = static_cast<std::uint64_t>(slide);
  add<std::uint64_t>(longs_, delta, image, at, copy);
  add<std::uint32_t>(words_, static_cast<std::uint32_t>(delta), image, at, copy);
  add<std::uint32_t>(inverse_, static_cast<std::uint32_t>(0 - delta), image, at, copy);
}

}  // namespace ringside::guest_linux
