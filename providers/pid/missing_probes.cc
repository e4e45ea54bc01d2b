#include "providers/pid/missing_probes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::providers {

std::optional<std::string> MissingProbes::text() const {
  const auto is_missing = [this](const auto& one) { return !there_.contains(one.first); };
  const auto first = std::ranges::find_if(missing_, is_missing);
  if (there_.empty() || first == missing_.end()) return std::nullopt;
  const auto count = static_cast<std::size_t>(std::ranges::count_if(missing_, is_missing));
  const auto& [name, why] = first->second;
  return fmt::format("{} of {} probes are missing, {}:{}:{} for one: {}", count,
                     count + there_.size(), name.module, name.function, name.name, why);
}

}  // namespace ringside::providers
