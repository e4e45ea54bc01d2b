// Merges the records of several targets into the order of their firing. The records of a
// speculation stay together, at the time of its commit. Each target hands over its records sorted,
// one TraceData at a time. The next TraceData of one target may hold firings that are older than
// the last ones of another target. So a record waits until every target has been asked after that
// record fired. Used by Output if there is more than one target.
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
  /// and forgets them. If two records have the same time, the one of the earlier target comes
  /// first.
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
