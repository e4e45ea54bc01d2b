#include "providers/functions/matching_functions.h"

#include <vector>

namespace ringside::providers {

void for_each_function(const guest_linux::SymbolTable& symbols,
                       const dif::ProbeDescription& pattern,
                       const std::function<void(std::size_t)>& visit) {
  const bool exact = !pattern.function.empty() && !dif::is_glob(pattern.function);
  // One look into the index answers for most names that do not exist.
  if (exact && symbols.find(pattern.function) == nullptr) return;
  std::vector<bool> modules;
  for (const guest_linux::Module& module : symbols.modules()) {
    modules.push_back(dif::field_matches(pattern.module, module.name));
  }
  const auto wants = [&](const guest_linux::Symbol& symbol) {
    if (!symbol.is_text() || symbol.module >= modules.size() || !modules[symbol.module]) {
      return false;
    }
    if (exact) return symbol.name == pattern.function;
    return dif::field_matches(pattern.function, symbol.name);
  };
  const auto all = symbols.symbols();
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (wants(all[index])) visit(index);
  }
}

}  // namespace ringside::providers
