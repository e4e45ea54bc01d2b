#include "providers/tracepoint/fault_search_point.h"

#include <algorithm>

namespace ringside::providers {

Result<void> FaultSearchPoint::ensure() {
  if (id_ && store_[*id_].stage != Tracepoint::Stage::Dropped) return {};
  id_ = TRY(store_.add(TRY(text_.search_site())));
  return {};
}

bool FaultSearchPoint::is_armed() const {
  return id_ && store_[*id_].stage == Tracepoint::Stage::Armed;
}

bool FaultSearchPoint::is_there_with(std::span<const TracepointStore::Id> arming) const {
  return is_armed() || (id_ && std::ranges::find(arming, *id_) != arming.end());
}

}  // namespace ringside::providers
