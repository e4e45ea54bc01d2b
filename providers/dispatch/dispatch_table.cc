#include "providers/dispatch/dispatch_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "vmm/base/check.h"

namespace ringside::providers {
namespace {

/// Some of a kind, for quick questions.
template <class T>
class Some {
 public:
  explicit Some(std::span<const T> all) : all_(all.begin(), all.end()) { std::ranges::sort(all_); }
  bool has(const T& one) const { return std::ranges::binary_search(all_, one); }

 private:
  std::vector<T> all_;
};

}  // namespace

DispatchTable::DispatchTable(const DispatchTable& before, const Change& change, unsigned cpus)
    : epoch_(before.epoch_ + 1) {
  const Some<dif::ProbeId> removed(change.removed);
  const Some<GuestVirt> lost(change.lost);
  std::vector<EnabledBinding> enabled = before.enabled();
  std::erase_if(enabled, [&](const EnabledBinding& one) {
    return removed.has(one.binding.probe) || lost.has(one.at);
  });
  enabled.insert(enabled.end(), change.added.begin(), change.added.end());
  // Stable: those of one place stay in the order of enabling.
  std::ranges::stable_sort(enabled, {}, [](const EnabledBinding& one) {
    return std::pair(one.at, one.binding.role == Role::Waits);
  });
  bindings_.reserve(enabled.size());
  for (const EnabledBinding& one : enabled) put(one);
  for (Ends& ends : ends_) std::ranges::sort(ends.probes);
  hits_ = std::vector<std::atomic<std::uint64_t>>(cpus * places_.size());
}

/// They come in the order of their addresses.
void DispatchTable::put(const EnabledBinding& one) {
  if (addresses_.empty() || addresses_.back() != one.at) {
    index_.insert(one.at, static_cast<std::uint32_t>(places_.size()));
    addresses_.push_back(one.at);
    places_.push_back({.first = static_cast<std::uint32_t>(bindings_.size())});
  }
  AddressBindings& place = places_.back();
  const Binding& binding = one.binding;
  switch (binding.role) {
    case Role::Fires: break;
    case Role::Waits:
      ++place.waiting;
      bindings_.push_back(binding);
      return;
    case Role::Ends:
    case Role::EndsUnknown: put_end(place, binding); return;
  }
  if (binding.number == kNoNumber) {
    ++place.count;
    bindings_.push_back(binding);
    return;
  }
  CHECK(binding.number < kSyscallNumbers);
  if (place.by_number < 0) {
    place.by_number = static_cast<std::int32_t>(numbers_.size());
    numbers_.push_back({binding, {}});
  }
  numbers_.back().probes[binding.number] = binding.probe;
}

void DispatchTable::put_end(AddressBindings& place, const Binding& binding) {
  if (place.ends < 0) {
    place.ends = static_cast<std::int32_t>(ends_.size());
    ends_.push_back({binding, {}});
  }
  ends_.back().probes.push_back(binding.probe);
}

std::vector<DispatchTable::EnabledBinding> DispatchTable::enabled() const {
  std::vector<EnabledBinding> enabled;
  enabled.reserve(bindings_.size());
  for (std::size_t n = 0; n < places_.size(); ++n) {
    const AddressBindings& place = places_[n];
    for (const Binding& binding : bindings(place)) enabled.push_back({addresses_[n], binding});
    for (const Binding& binding : waiting(place)) enabled.push_back({addresses_[n], binding});
    if (const Ends* const those = ends(place)) {
      Binding binding = those->shared;
      for (const dif::ProbeId probe : those->probes) {
        binding.probe = probe;
        enabled.push_back({addresses_[n], binding});
      }
    }
    if (place.by_number < 0) continue;
    Binding binding = shared(place);
    for (binding.number = 0; binding.number < kSyscallNumbers; ++binding.number) {
      const auto probe = probe_of(place, binding.number);
      if (!probe) continue;
      binding.probe = *probe;
      enabled.push_back({addresses_[n], binding});
    }
  }
  return enabled;
}

DispatchTable::Counts DispatchTable::counts() const {
  std::vector<std::uint64_t> sums(places_.size());
  for (std::size_t n = 0; n < hits_.size(); ++n) {
    sums[n % sums.size()] += hits_[n].load(std::memory_order_relaxed);
  }
  return {epoch_, std::move(sums)};
}

std::vector<DispatchTable::Hits> DispatchTable::hits_since(const Counts& before) const {
  const std::vector<std::uint64_t> now = counts().hits;
  const bool is_same = before.epoch == epoch_;
  CHECK(!is_same || before.hits.size() == now.size());
  std::vector<Hits> found;
  for (std::size_t n = 0; n < now.size(); ++n) {
    const std::uint64_t count = is_same ? now[n] - before.hits[n] : now[n];
    if (count != 0) found.push_back({addresses_[n], count, probes_at(places_[n])});
  }
  return found;
}

std::vector<dif::ProbeId> DispatchTable::probes_at(const AddressBindings& place) const {
  std::vector<dif::ProbeId> probes;
  for (const Binding& binding : bindings(place)) probes.push_back(binding.probe);
  for (const Binding& binding : waiting(place)) probes.push_back(binding.probe);
  if (const Ends* const those = ends(place)) {
    std::ranges::copy(those->probes, std::back_inserter(probes));
  }
  if (place.by_number < 0) return probes;
  for (const dif::ProbeId probe : numbers(place).probes) {
    if (probe.value != 0) probes.push_back(probe);
  }
  return probes;
}

std::vector<GuestVirt> DispatchTable::places_of(std::span<const dif::ProbeId> probes) const {
  const Some<dif::ProbeId> wanted(probes);
  std::vector<GuestVirt> places;
  for (const EnabledBinding& one : enabled()) {
    if (wanted.has(one.binding.probe)) places.push_back(one.at);
  }
  return places;
}

}  // namespace ringside::providers
