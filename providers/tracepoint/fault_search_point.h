// The tracepoint where the kernel looks up how to mend a fault (sites/fault_search.h): made before
// the first one whose instruction may fault, and the last to be restored. Used by the tracepoint
// table and its parts. Does not: find the place, or restore it.
// Threads: as TracepointStore. Fire context: no.
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

  /// Before the first point whose fault the kernel mends; it stays until nobody can be in such a
  /// slot.
  Result<void> keep();
  bool is(const Tracepoint& point) const { return id_ && &point == &store_[*id_]; }
  bool is_armed() const;
  /// Whether it stands once these are armed.
  bool is_there_with(std::span<const TracepointStore::Id> arming) const;

 private:
  ProbedText& text_;
  TracepointStore& store_;
  std::optional<TracepointStore::Id> id_;  // once some may fault
};

}  // namespace ringside::providers
