#include "cli/program/half_pairs.h"

#include <algorithm>

namespace ringside::cli {

void HalfPairs::add(const dif::ProbeDescription& probe) {
  const bool enters = probe.name == "entry";
  if (!enters && probe.name != "return") return;
  Ends& ends = functions_[{probe.provider, probe.module, probe.function}];
  ++(enters ? ends.entries : ends.returns);
}

HalfPairs::Found HalfPairs::find(std::span<const dif::ProbeDescription> asked) const {
  Found found;
  for (const auto& [name, ends] : functions_) {
    if (ends.entries == ends.returns) continue;
    const auto& [provider, module, function] = name;
    const dif::ProbeDescription missing{provider, module, function,
                                        ends.entries < ends.returns ? "entry" : "return"};
    const bool wanted = std::ranges::any_of(asked, [&](const dif::ProbeDescription& pattern) {
      return dif::matches(pattern, missing);
    });
    if (!wanted) continue;
    if (found.count++ == 0) found.first = missing;
  }
  return found;
}

}  // namespace ringside::cli
