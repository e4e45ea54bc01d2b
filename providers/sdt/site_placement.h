// Finds where the probe of a static tracepoint may stand for one of its sites. A site is a nop that
// the kernel turns into a jump. The kernel compares the bytes first, so no probe may stand on the
// nop itself:
//   after    on the instruction after the nop, and at the jump's target, where the vCPU goes
//            while the tracepoint is on
//   before   on the instruction before the nop, which is evaluated too, and at the target
//   edges    after, at the target, and on each other jump that leads after: a vCPU that comes by
//            one of those does not fire
// The first of these is taken whose places no other code reaches.
// Does not: ask whether an int3 can stand there at all (ProbePoints::examine()).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "disasm/evaluation.h"
#include "providers/sdt/function_flow.h"
#include "providers/sdt/slice.h"

namespace ringside::providers {

/// One way to place a probe for a site.
struct SitePlacement {
  enum class Where : std::uint8_t { After, Before, Edges, TargetOnly };
  Where where = Where::After;
  GuestVirt at;                     // after the site or before it; of TargetOnly: the site itself
  std::optional<GuestVirt> target;  // empty where another site's target runs
  bool comes_back = true;           // what begins at the target may go on after the site
  disasm::Operation before{};       // of Before: the instruction there
  struct Edge {
    GuestVirt at;
    arch::Condition condition = arch::kNoCondition;
  };
  std::vector<Edge> edges{};
};
/// "after", "before", "after and at other jumps to there", "at its target".
std::string_view name_of(SitePlacement::Where where);

/// All ways, best first. Unsupported when there is none, with the reason.
Result<std::vector<SitePlacement>> placements_for(const Slice::Source& source,
                                                  FunctionFlow::Index site, const Slice& slice);

}  // namespace ringside::providers
