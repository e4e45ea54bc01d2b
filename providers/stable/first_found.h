// Alternatives in the tables, for names and values that differ between kernels: "A|B|C" means the
// first that this kernel has.
#pragma once

#include <algorithm>
#include <string_view>
#include <type_traits>

namespace ringside::providers {

/// The answer of `find` for the first name that it finds; empty when it finds none.
template <class Find>
std::invoke_result_t<Find, std::string_view> first_found(std::string_view names, Find find) {
  while (!names.empty()) {
    const std::size_t bar = std::min(names.find('|'), names.size());
    if (auto found = find(names.substr(0, bar))) return found;
    names.remove_prefix(std::min(bar + 1, names.size()));
  }
  return {};
}

}  // namespace ringside::providers
