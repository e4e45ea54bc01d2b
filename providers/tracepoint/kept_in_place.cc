#include "providers/tracepoint/kept_in_place.h"

#include <algorithm>

namespace ringside::providers {

void KeptInPlace::add(GuestVirt at) {
  const bool known = std::ranges::find(places_, at) != places_.end();
  if (!known && places_.size() < kMostInPlace) places_.push_back(at);
}

void KeptInPlace::look(const GuestReader& live) {
  for (const GuestVirt at : hardware_.find(live, kernel_.percpu_bases())) add(at);
}

bool KeptInPlace::forbids(const Tracepoint& point) const {
  return places_.size() == kMostInPlace ||
         std::ranges::any_of(places_, [&](GuestVirt at) { return point.displaces(at); });
}

}  // namespace ringside::providers
