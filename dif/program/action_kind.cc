#include "dif/program/action_kind.h"

namespace ringside::dif {

bool records_data(ActionKind kind) {
  switch (kind) {  // no default: -Wswitch names the action we forgot
    case ActionKind::Aggregate:
    case ActionKind::Evaluate:
    case ActionKind::Speculate:
    case ActionKind::Commit:
    case ActionKind::Discard:
    case ActionKind::Stop:
    case ActionKind::Raise:
    case ActionKind::Breakpoint:
    case ActionKind::Panic:
    case ActionKind::Chill: return false;
    case ActionKind::Trace:
    case ActionKind::Printf:
    case ActionKind::Printa:
    case ActionKind::Tracemem:
    case ActionKind::Exit:
    case ActionKind::Clear:
    case ActionKind::Trunc:
    case ActionKind::Normalize:
    case ActionKind::Denormalize:
    case ActionKind::Setopt:
    case ActionKind::TracememDynamic:
    case ActionKind::Print:
    case ActionKind::Ftruncate:
    case ActionKind::Freopen:
    case ActionKind::System: return true;
  }
  return false;
}

bool dumps_memory(ActionKind kind) {
  return kind == ActionKind::Tracemem || kind == ActionKind::TracememDynamic;
}

std::optional<GuestContext::Deed> deed_of(ActionKind kind) {
  using Deed = GuestContext::Deed;
  switch (kind) {
    case ActionKind::Stop: return Deed::Stop;
    case ActionKind::Raise: return Deed::Raise;
    case ActionKind::Breakpoint: return Deed::Breakpoint;
    case ActionKind::Panic: return Deed::Panic;
    default: return std::nullopt;
  }
}

}  // namespace ringside::dif
