#include "dif/d/resolve/kernel_variables.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "vmm/base/similar_name.h"
#include "vmm/base/variable_key.h"

namespace ringside::d {

const Identifier* KernelVariables::stand_in(const Expr& e) const {
  const std::string_view text = *e.text;
  const std::size_t tick = text.rfind('`');
  const std::string_view module = text.substr(0, tick), symbol = text.substr(tick + 1);
  if (!module.empty() && module != "genunix" && module != "unix") return nullptr;
  const Identifier* const found =
      identifiers_.find(Scope::Global, fmt::format("__genunix_{}", symbol));
  const bool is_inline = found != nullptr && found->kind == Identifier::Kind::Inline;
  return is_inline && !environment_.kernel_variable(module, symbol) ? found : nullptr;
}

/// Whether the type is known, of a variable that is there.
Checked<bool> KernelVariables::find(Expr* e) const {
  const std::string_view text = *e->text;
  const std::size_t tick = text.rfind('`');
  const std::string_view module = text.substr(0, tick), symbol = text.substr(tick + 1);
  const auto found = environment_.kernel_variable(module, symbol);
  if (!found) {
    const std::string nearest = environment_.similar_kernel_variable(module, symbol);
    return complain("D_IDENT_UNDEF", e->at,
                    fmt::format("failed to resolve {}: Unknown symbol name{}", text,
                                did_you_mean(nearest, "`")));
  }
  TRY(stability_.note(kPrivate, text, e->at));
  e->module = arena_.make(std::string(found->module));
  e->container = {};
  e->is_lvalue = true;
  if (const auto declared = declarations_.extern_type(std::string(symbol))) {
    e->type = *declared;
    return true;
  }
  e->type = found->type.value_or(TypeId{});
  e->container = e->type;
  return found->type.has_value();
}

Checked<void> KernelVariables::value(Expr* e) const {
  if (TRY(find(e))) return {};
  const std::string_view text = *e->text;
  if (const auto own = types_.graph().find(percpu_variable_key(text.substr(text.rfind('`') + 1)))) {
    return complain("D_SYM_NOTYPES", e->at,
                    fmt::format("each CPU has its own {0}: the one of the CPU that fires is "
                                "*({1})((uintptr_t)&{0} + `__per_cpu_offset[cpu])",
                                text, types_.name(types_.graph().pointer_to(*own))));
  }
  return complain("D_SYM_NOTYPES", e->at,
                  fmt::format("no symbolic type information is available for {0}: declare it with "
                              "extern, or cast its address: *(type *)&{0}",
                              text));
}

Checked<void> KernelVariables::address(Expr* e) const {
  TRY(find(e));
  return {};
}

Checked<void> KernelVariables::cast(Expr* e, TypeId to) const {
  if (!types_.is_scalar(to) || types_.is_string(to)) return value(e);
  TRY(address(e));
  if (e->type == TypeId{}) e->type = to;
  return {};
}

}  // namespace ringside::d
