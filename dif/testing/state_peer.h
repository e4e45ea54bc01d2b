// For tests: what D sees of the past, and nothing else. Copies the variables of one runner into
// another of the same program, and compares them.
// Fire context: no.
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
    target.slots_ = source.slots_;
    std::ranges::copy(source.globals_, target.globals_.begin());
    std::ranges::copy(source.locals_, target.locals_.begin());
    for (const auto& [key, data] : elements(source.dynamic_)) {
      const auto at = target.dynamic_.find_or_add(key, data.size());
      if (at) std::ranges::copy(data, target.dynamic_.arena().begin() + static_cast<long>(*at));
    }
  }

  static bool same_variables(const ClauseRunner& a, const ClauseRunner& b) {
    const Variables &left = variables(a), &right = variables(b);
    for (std::size_t scope = 0; scope < left.slots_.size(); ++scope) {
      const auto same = [](const Variables::Slot& x, const Variables::Slot& y) {
        return x.value == y.value;
      };
      if (!std::ranges::equal(left.slots_[scope], right.slots_[scope], same)) return false;
    }
    return left.globals_ == right.globals_ && left.locals_ == right.locals_ &&
           elements(left.dynamic_) == elements(right.dynamic_);
  }

 private:
  using Bytes = std::vector<std::byte>;

  static const Variables& variables(const ClauseRunner& runner) {
    return const_cast<ClauseRunner&>(runner).evaluator_.variables();
  }

  static std::map<Bytes, Bytes> elements(const DynamicTable& table) {
    std::map<Bytes, Bytes> found;
    for (std::uint32_t bucket = 0; bucket < table.buckets_; ++bucket) {
      for (std::uint32_t unit = table.head(bucket); unit != 0;) {
        const DynamicTable::Chunk chunk = table.chunk(unit);
        const auto key = table.key_of(unit, chunk);
        const auto data = table.arena().subspan(
            unit * DynamicTable::kUnit + sizeof(DynamicTable::Chunk), chunk.data_size);
        found.emplace(Bytes(key.begin(), key.end()), Bytes(data.begin(), data.end()));
        unit = chunk.next;
      }
    }
    return found;
  }
};

}  // namespace ringside::dif::testing
