// An index from names to positions in an array of the caller's, built once for some 10^5 names. It
// is one flat table: the nodes of a std::unordered_map would take most of the time to attach. It
// stores no names; the caller's `name_at(position)` returns the name at a position.
// tsl::robin_set of positions (1.2.1, hashes stored) was tried with 122,133 symbols (-O2, best of
// 9): it is built in 41 ms and takes 3.0 MiB, here 35 ms and 2.0 MiB.
// Used by SymbolTable and the prototypes of BTF.
// Fire context: find yes.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "vmm/base/name_hash.h"

namespace ringside::guest_linux {

class NameIndex {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// Empties the index and makes room for `names` different names.
  void reset(std::size_t names) {
    slots_.assign(std::bit_ceil(names + names / 3 + 2), Slot{0, kNone});
  }

  /// The position of `name`, which may be set through the reference; kNone for a new name. Valid
  /// until the next call. For at most as many different names as reset() got.
  template <class NameAt>
  std::uint32_t& operator()(std::string_view name, NameAt name_at) {
    const auto hash = static_cast<std::uint32_t>(hash_name(name));
    Slot& slot = slots_[probe(name, hash, name_at)];
    slot.hash = hash;
    return slot.position;
  }

  template <class NameAt>
  std::uint32_t find(std::string_view name, NameAt name_at) const {
    if (slots_.empty()) return kNone;
    return slots_[probe(name, static_cast<std::uint32_t>(hash_name(name)), name_at)].position;
  }

 private:
  struct Slot {
    std::uint32_t hash;
    std::uint32_t position;
  };

  template <class NameAt>
  std::size_t probe(std::string_view name, std::uint32_t hash, NameAt name_at) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].position != kNone &&
           (slots_[at].hash != hash || name_at(slots_[at].position) != name)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  std::vector<Slot> slots_;
};

}  // namespace ringside::guest_linux
