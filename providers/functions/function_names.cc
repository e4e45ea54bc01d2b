#include "providers/functions/function_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace ringside::providers {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

FunctionForm function_form(std::string_view symbol) {
  const std::size_t dot = symbol.find('.');
  if (dot == symbol.npos || dot == 0) return {};
  FunctionForm form{.source = symbol.substr(0, dot)};
  std::string_view rest = symbol.substr(dot + 1);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('.'), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (word == "isra") {
      form.is_isra = true;
    } else if (word == "constprop") {
      form.is_constprop = true;
    } else if (word == "part") {
      form.is_part = true;
    } else if (word == "cold") {
      form.is_cold = true;
    } else if (!is_number(word)) {
      return {};
    }
  }
  const bool is_form = form.is_isra || form.is_constprop || form.is_part || form.is_cold;
  return is_form ? form : FunctionForm{};
}

std::string describe_form(std::string_view symbol, const FunctionForm& form) {
  std::string_view how = "with constants for some of the parameters";
  if (form.is_isra) how = "with other parameters";
  if (form.is_part) how = "without its beginning, which callers have inside";
  if (form.is_cold) how = "only the instructions that it rarely jumps to";
  return fmt::format("{} is what the compiler made of {}, {}", symbol, form.source, how);
}

SourceNames::SourceNames(const guest_linux::SymbolTable& symbols,
                         std::span<const guest_linux::Symbol> all) {
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (!all[index].is_text()) continue;
    const FunctionForm form = function_form(all[index].name);
    if (form.source.empty() || form.is_cold) continue;
    const auto& module = symbols.modules()[all[index].module].name;
    if (symbols.find(form.source, module) == nullptr)
      functions_.push_back({index, std::string(form.source)});
  }
}

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
