// The tracepoint at the kernel's search of its exception table (sites/fault_search.h). Used by the
// tracepoint table and its parts. Does not: find the place, or restore it.
// Threads: ensure() on the one that adds tracepoints; all else as TracepointStore.
// Fire context: no.
#pragma once

#include <optional>
#include <span>

#include "providers/tracepoint/probed_text.h"
#include "providers/tracepoint/tracepoint_store.h"
#include "vmm/base/result.h"

namespace ringside::providers {

class FaultSearchPoint {
 public:
  /// Both must outlive it.
  FaultSearchPoint(ProbedText& text, TracepointStore& store) : text_(text), store_(store) {}

  /// Makes it unless it is there: before a point whose instruction may fault.
  Result<void> ensure();
  bool is_at(const Tracepoint& point) const { return id_ && &point == &store_[*id_]; }
  bool is_armed() const;
  /// Whether it stands once these are armed.
  bool is_there_with(std::span<const TracepointStore::Id> arming) const;

 private:
  ProbedText& text_;
  TracepointStore& store_;
  std::optional<TracepointStore::Id> id_;  // once some may fault
};

}  // namespace ringside::providers
