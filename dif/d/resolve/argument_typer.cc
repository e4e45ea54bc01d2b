#include "dif/d/resolve/argument_typer.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "dif/bind/c_types.h"
#include "dif/d/resolve/argument_search.h"
#include "dif/d/syntax/ast.h"

namespace ringside::d {

bool ArgumentTyper::needs_each(const ClauseNode& clause,
                               const std::vector<dif::ProbeDescription>& probes) const {
  if (probes.size() < 2 || !probes_.differ(probes)) return false;
  ArgumentSearch search(identifiers_);
  return search.found_in(clause.predicate) || search.found_in(clause.body);
}

std::vector<dif::ArgumentType> ArgumentTyper::take_types() {
  std::vector<dif::ArgumentType> result;
  for (auto& [index, type] : std::exchange(used_, {})) {
    result.push_back({index, std::move(type)});
  }
  return result;
}

Checked<void> ArgumentTyper::index(Expr* e) {
  if (e->list.size() != 1) {
    return complain("D_PROTO_LEN", e->at, "args[ ] prototype mismatch: one index is expected");
  }
  TRY(walker_.resolve(e->list[0]));
  const auto index = walker_.known(*e->list[0]);
  if (!index || !types_.is_integer(e->list[0]->type)) {
    return complain(
        "D_PROTO_ARG", e->list[0]->at,
        "args[ ] argument #1 is incompatible with prototype: integer constant expected");
  }
  const std::uint64_t position = *index;
  const ProbeSignature known = TRY(probes_.signature(e->at));
  TRY(stability_.note(known.attributes.arguments, "args[ ]", e->at));
  if (!known.translated.empty() && !e->is_native) return translated(e, known, position);
  e->identifier = nullptr;
  e->address = position;
  if (e->is_native && position >= known.arguments.size()) {  // the provider knows no type of it
    e->type = types_.int64;
    return {};
  }
  if (position >= known.arguments.size() || position >= dif::kMaxProbeArguments) {
    const std::string_view why =
        known.why_no_types.empty() ? "no types are known" : std::string_view(known.why_no_types);
    return complain("D_ARGS_IDX", e->list[0]->at,
                    fmt::format("index {} is out of range for {} args[ ]{}",
                                static_cast<std::int64_t>(position), known.first.to_string(),
                                known.has_types ? "" : fmt::format(": {}, use arg0 to arg9", why)));
  }
  e->type = types_.decay(known.arguments[position]);
  if (!types_.is_scalar(e->type)) {
    return complain(
        "D_ARGS_TYPE", e->at,
        fmt::format("args[{}] of type {} is not supported yet", position, types_.name(e->type)));
  }
  use(known, position);
  return {};
}

/// Another kernel's probe may pass something else there.
void ArgumentTyper::use(const ProbeSignature& known, std::uint64_t position) {
  if (position >= known.arguments.size()) return;
  used_.insert_or_assign(static_cast<std::uint32_t>(position),
                         dif::type_text(types_.graph(), known.arguments[position]));
}

/// args[n] as the provider presents it: `n`'s native argument, through a library's translator.
Checked<void> ArgumentTyper::translated(Expr* e, const ProbeSignature& known,
                                        std::uint64_t position) {
  if (position >= known.translated.size()) {
    return complain("D_ARGS_IDX", e->list[0]->at,
                    fmt::format("index {} is out of range for {} args[ ]",
                                static_cast<std::int64_t>(position), known.first.to_string()));
  }
  const ProbeSignature::Translated& wanted = known.translated[position];
  std::string_view name = wanted.type;
  const bool pointer = name.ends_with(" *");
  if (pointer) name.remove_suffix(2);
  const std::optional<TypeId> type = declared_.find_named(name);
  Expr* native = arena_.make(Expr(*e));
  native->is_native = true;
  Expr* number = make_node(arena_, ExprKind::Integer, e->at);
  number->type = types_.int64;
  number->constant = wanted.native;
  native->list = {number};
  TRY(index(native));
  const Translator* translator = type ? translators_.table().find(*type, native->type) : nullptr;
  if (translator == nullptr) {
    if (types_.name(native->type) == wanted.type) {  // the kernel's own type of that name
      *e = *native;
      return {};
    }
    if (type && !types_.is_struct(*type)) {
      return rewriter_.become(e, native, pointer ? types_.graph().pointer_to(*type) : *type);
    }
    return complain("D_ARGS_XLATOR", e->at,
                    fmt::format("translator for args[{}] from type {} to type {} is not defined",
                                position, types_.name(native->type), wanted.type));
  }
  translators_.become_translation(e, *translator, native,
                                  pointer ? types_.graph().pointer_to(*type) : *type);
  return {};
}

}  // namespace ringside::d
