#include "dif/d/resolve/copier.h"

#include <fmt/format.h>

namespace ringside::d {
namespace {

constexpr std::size_t kMostNodes = 100'000;

}  // namespace

Expr* Copier::clone(const Expr& e, const Location* at, const Bindings& bindings) {
  if (++nodes_ > kMostNodes) return nullptr;
  if (e.kind == ExprKind::Name) {
    const auto bound = bindings.find(*e.text);
    if (bound != bindings.end()) return clone(*bound->second, at, {});
  }
  Expr* copy = arena_.make(Expr(e));
  if (at != nullptr) copy->at = *at;
  for (Expr** part : {&copy->a, &copy->b, &copy->c}) {
    if (*part == nullptr) continue;
    *part = clone(**part, at, bindings);
    if (*part == nullptr) return nullptr;
  }
  for (Expr*& part : copy->list) {
    part = clone(*part, at, bindings);
    if (part == nullptr) return nullptr;
  }
  return copy;
}

Checked<Expr*> Copier::copy(const Expr& e, const Location& at, const Bindings& bindings,
                            std::string_view what) {
  Expr* made = clone(e, &at, bindings);
  if (made == nullptr) return complain("D_UNKNOWN", at, fmt::format("{} grows too large", what));
  return made;
}

}  // namespace ringside::d
