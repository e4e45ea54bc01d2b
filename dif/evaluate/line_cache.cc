#include "dif/evaluate/line_cache.h"

#include <algorithm>

namespace ringside::dif {

bool LineCache::fetch(std::uint64_t line) {
  if (holds(line)) return true;
  Tag& tag = tags_[line % kLines];
  tag.generation = 0;  // a failed read leaves half a line behind
  if (!guest_->read(GuestVirt(line * kLine), lines_[line % kLines])) return false;
  tag = {generation_, line};
  return true;
}

Result<void, Fault> LineCache::read_slowly(std::uint64_t at, std::span<std::byte> out) {
  if (at > UINT64_MAX - out.size()) {
    return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at});
  }
  while (!out.empty()) {
    const std::size_t offset = at % kLine;
    const std::size_t part = std::min(out.size(), kLine - offset);
    if (fetch(at / kLine)) {
      std::memcpy(out.data(), lines_[at / kLine % kLines].data() + offset, part);
    } else {
      // The line's other bytes are not there (the end of RAM); those asked for may be.
      TRY(guest_->read(GuestVirt(at), out.first(part)));
    }
    at += part;
    out = out.subspan(part);
  }
  return {};
}

Result<std::span<const std::byte>, Fault> LineCache::line_from(std::uint64_t at) {
  if (fetch(at / kLine)) {
    return std::span<const std::byte>(lines_[at / kLine % kLines]).subspan(at % kLine);
  }
  TRY(guest_->read(GuestVirt(at), single_));
  return std::span<const std::byte>(single_);
}

}  // namespace ringside::dif
