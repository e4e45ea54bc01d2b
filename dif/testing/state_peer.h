// For tests: copies the D variables of one firing vCPU into another one of the same program, and
// compares them.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "dif/engine/clause_runner.h"

namespace ringside::dif::testing {

class StatePeer {
 public:
  static void copy_variables(const ClauseRunner& from, ClauseRunner& to) {
    const Variables& source = variables(from);
    Variables& target = to.evaluator_.variables();
    target.locals_ = source.locals_;
    target.shared_.globals_ = source.shared_.globals_;
    copy(source.storage_, target.storage_);
    copy(source.shared_.storage_, target.shared_.storage_);
    DynamicTable& table = target.shared_.dynamic_;
    for (const auto& [place, data] : elements(source.shared_.dynamic_)) {
      // Which part a thread's elements lie in differs from table to table.
      unsigned part = place.first;
      if (part != DynamicTable::kArrays) part = table.part_of(owner_of(place.second));
      const auto at = table.find_or_add(place.second, data.size(), {part, 0});
      if (at) std::ranges::copy(data, table.arena().begin() + static_cast<long>(*at));
    }
  }

  /// Two tables that are used alike have the same bytes from now on; both are new.
  static void share_seed(const SharedVariables& from, SharedVariables& to) {
    to.dynamic_.seed_ = from.dynamic_.seed_;
  }

  static bool same_variables(const ClauseRunner& a, const ClauseRunner& b) {
    return same_variables(variables(a), variables(b));
  }
  static bool same_variables(const Variables& left, const Variables& right) {
    const auto same = [](const VariableSlot& x, const VariableSlot& y) {
      return x.value == y.value;
    };
    return std::ranges::equal(left.locals_, right.locals_, same) &&
           std::ranges::equal(left.shared_.globals_, right.shared_.globals_, same) &&
           std::ranges::equal(left.storage_.bytes(), right.storage_.bytes()) &&
           std::ranges::equal(left.shared_.storage_.bytes(), right.shared_.storage_.bytes()) &&
           by_key(left.shared_.dynamic_) == by_key(right.shared_.dynamic_);
  }

 private:
  using Bytes = std::vector<std::byte>;
  using Place = std::pair<unsigned, Bytes>;  // part, key

  static const Variables& variables(const ClauseRunner& runner) {
    return const_cast<ClauseRunner&>(runner).evaluator_.variables();
  }

  static void copy(const LazyMemory& from, const LazyMemory& to) {
    std::ranges::copy(from.bytes(), to.bytes().begin());
  }

  /// As Variables::make_key() has it.
  static std::uint64_t owner_of(const Bytes& key) {
    std::uint64_t owner;
    std::memcpy(&owner, key.data() + sizeof owner, sizeof owner);
    return owner;
  }

  static std::map<Bytes, Bytes> by_key(const DynamicTable& table) {
    std::map<Bytes, Bytes> found;
    for (const auto& [place, data] : elements(table)) found.emplace(place.second, data);
    return found;
  }

  static std::map<Place, Bytes> elements(const DynamicTable& table) {
    std::map<Place, Bytes> found;
    const std::uint32_t all = table.buckets_ + SharedLocks::kShards * table.thread_buckets_;
    for (std::uint32_t bucket = 0; bucket < all; ++bucket) {
      const unsigned part = bucket < table.buckets_
                                ? DynamicTable::kArrays
                                : (bucket - table.buckets_) / table.thread_buckets_;
      for (std::uint32_t unit = table.head(bucket); unit != 0;) {
        const DynamicTable::Chunk chunk = table.chunk(unit);
        const auto key = table.key_of(unit, chunk);
        const auto data = table.arena().subspan(
            unit * DynamicTable::kUnit + sizeof(DynamicTable::Chunk), chunk.data_size);
        found.emplace(Place(part, Bytes(key.begin(), key.end())), Bytes(data.begin(), data.end()));
        unit = chunk.next;
      }
    }
    return found;
  }
};

}  // namespace ringside::dif::testing
