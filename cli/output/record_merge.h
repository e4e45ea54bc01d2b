// The records of several targets in the order of their firing, or of the commit of a speculation,
// whose records stay together. Each target's come sorted, a TraceData at a time; one that was taken
// later may hold what fired before the end of another target's, so records wait until every target
// has been asked after they fired. Used by Output where there is more than one target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "dif/engine/engine.h"

namespace ringside::cli {

class RecordMerge {
 public:
  explicit RecordMerge(std::size_t targets) : queues_(targets) {}

  void add(std::size_t target, dif::TraceData trace_data) {
    if (!trace_data.records.empty()) queues_[target].push_back({std::move(trace_data)});
  }

  /// Calls visit(target, TraceData, index of the record) for all that fired at `until` or before,
  /// and forgets them. Of two that fired at the same time the first target's comes first.
  template <class Visit>
  void visit_until(std::uint64_t until, Visit visit) {
    for (;;) {
      std::size_t earliest = queues_.size();
      for (std::size_t i = 0; i < queues_.size(); ++i) {
        if (queues_[i].empty() || time_of(queues_[i]) > until) continue;
        if (earliest == queues_.size() || time_of(queues_[i]) < time_of(queues_[earliest])) {
          earliest = i;
        }
      }
      if (earliest == queues_.size()) return;
      Queued& first = queues_[earliest].front();
      visit(earliest, first.trace_data, first.next);
      if (++first.next == first.trace_data.records.size()) queues_[earliest].pop_front();
    }
  }

 private:
  struct Queued {
    dif::TraceData trace_data;
    std::size_t next = 0;
  };
  static std::uint64_t time_of(const std::deque<Queued>& queue) {
    return queue.front().trace_data.records[queue.front().next].order();
  }

  std::vector<std::deque<Queued>> queues_;
};

}  // namespace ringside::cli
