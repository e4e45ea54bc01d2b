// Flame graphs as one SVG that needs nothing else: frames are boxes, as wide as their share,
// callers below callees. Its script zooms, searches and shows numbers; without scripts it is a
// still picture. Does not: collect stacks (stack_counts.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/pictures/stack_counts.h"

namespace ringside::cli {

/// One graph of the picture; `samples` as in StackCounts, `before` as wide as they are, or empty.
struct FlameGraph {
  std::string title;
  std::vector<StackCounts::Sample> samples;
  std::vector<std::uint64_t> before;  // the count of each sample in an earlier run
};

/// All graphs, one under another. `names` are those of all samples. A frame that is narrower than a
/// tenth of a pixel is left out.
std::string flame_svg(const std::vector<FlameGraph>& graphs, const std::vector<FrameName>& names);

}  // namespace ringside::cli
