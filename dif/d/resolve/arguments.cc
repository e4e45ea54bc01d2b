// In this file: args[], and the signature that a clause's probes share, which gives args[] its
// types.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "dif/bind/c_types.h"
#include "dif/d/resolve/resolve.h"

namespace ringside::d {
namespace {

/// Tells whether a clause uses args[], before its names are resolved.
/// Looks into inlines, too.
class ArgumentSearch {
 public:
  explicit ArgumentSearch(const IdentifierTable& identifiers) : identifiers_(identifiers) {}

  bool found_in(const Expr* e) {
    constexpr int kMostNodes = 100'000;  // inlines of inlines can grow beyond all bounds
    if (e == nullptr) return false;
    if (++nodes_ > kMostNodes) return true;
    if (e->kind == ExprKind::Name) {
      if (*e->text == "args") return true;
      const Identifier* const identifier = identifiers_.find_identifier(Scope::Global, *e->text);
      if (identifier != nullptr && found_in(identifier->value)) return true;
    }
    return found_in(e->a) || found_in(e->b) || found_in(e->c) ||
           std::ranges::any_of(e->list, [this](const Expr* part) { return found_in(part); });
  }

  bool found_in(const std::vector<Statement*>& body) {
    return std::ranges::any_of(body, [this](const Statement* s) {
      return found_in(s->expression) || found_in(s->init) || found_in(s->step) ||
             found_in(s->limit) || found_in(s->then_body) || found_in(s->else_body);
    });
  }

 private:
  const IdentifierTable& identifiers_;
  int nodes_ = 0;
};

}  // namespace

Checked<ProbeSignature> Resolver::clause_signature(const Location& at) {
  if (!signature_) signature_ = find_clause_signature(at);
  return *signature_;
}

/// An argument that a provider makes no args[] of may differ between probes.
bool Resolver::signatures_agree(const ProbeSignature& a, const ProbeSignature& b) const {
  const auto same = [&](TypeId x, TypeId y) { return types_.same(x, y); };
  if (a.has_types != b.has_types || a.translated != b.translated) return false;
  if (a.translated.empty()) return std::ranges::equal(a.arguments, b.arguments, same);
  return std::ranges::all_of(a.translated, [&](const ProbeSignature::Translated& t) {
    return t.native < a.arguments.size() && t.native < b.arguments.size() &&
           same(a.arguments[t.native], b.arguments[t.native]);
  });
}

bool Resolver::signatures_differ(const std::vector<dif::ProbeDescription>& probes) const {
  std::optional<ProbeSignature> common;
  for (const dif::ProbeDescription& probe : probes) {
    ProbeSignature found = environment_.signature(probe);
    if (found.matched == 0) continue;
    if (common && !signatures_agree(*common, found)) return true;
    if (!common) common = std::move(found);
  }
  return false;
}

Checked<ProbeSignature> Resolver::find_clause_signature(const Location& at) const {
  std::optional<ProbeSignature> common;
  for (const dif::ProbeDescription& probe : probes_) {
    bool is_stable = true;
    environment_.for_each_signature(probe, [&](const ProbeSignature& found) {
      is_stable = !common || signatures_agree(*common, found);
      if (!common) common = found;
      return is_stable;
    });
    if (!is_stable) {
      return complain("D_ARGS_MULTI", at,
                      fmt::format("args[ ] may not be referenced because probe description {} "
                                  "matches an unstable set of probes",
                                  probe.to_string()));
    }
  }
  if (common) return std::move(*common);
  return complain("D_ARGS_NONE", at,
                  fmt::format("args[ ] may not be referenced because {} matches no probe",
                              probes_.empty() ? "" : probes_[0].to_string()));
}

bool Resolver::needs_clause_for_each(const ClauseNode& clause,
                                     const std::vector<dif::ProbeDescription>& probes) const {
  if (probes.size() < 2) return false;
  ArgumentSearch search(identifiers_);
  const bool names_any = search.found_in(clause.predicate) || search.found_in(clause.body);
  return names_any && signatures_differ(probes);
}

std::vector<dif::ArgumentType> Resolver::take_argument_types() {
  std::vector<dif::ArgumentType> result;
  for (auto& [index, type] : std::exchange(argument_types_, {})) {
    result.push_back({index, std::move(type)});
  }
  return result;
}

Checked<void> Resolver::resolve_argument(Expr* e) {
  if (e->list.size() != 1) {
    return complain("D_PROTO_LEN", e->at, "args[ ] prototype mismatch: one index is expected");
  }
  TRY(resolve(e->list[0]));
  const auto index = known_value(*e->list[0]);
  if (!index || !types_.is_integer(e->list[0]->type)) {
    return complain(
        "D_PROTO_ARG", e->list[0]->at,
        "args[ ] argument #1 is incompatible with prototype: integer constant expected");
  }
  const std::uint64_t position = *index;
  const ProbeSignature known = TRY(clause_signature(e->at));
  TRY(stability_.note(known.attributes.arguments, "args[ ]", e->at));
  if (!known.translated.empty() && !e->is_native)
    return resolve_translated_argument(e, known, position);
  e->identifier = nullptr;
  e->address = position;
  if (e->is_native && position >= known.arguments.size()) {  // the provider knows no type of it
    e->type = types_.int64;
    return {};
  }
  if (position >= known.arguments.size() || position >= dif::kMaxProbeArguments) {
    const bool has_reason = !known.has_types || !known.why_no_types.empty();
    const std::string_view why =
        known.why_no_types.empty() ? "no types are known" : std::string_view(known.why_no_types);
    return complain("D_ARGS_IDX", e->list[0]->at,
                    fmt::format("index {} is out of range for {} args[ ]{}",
                                static_cast<std::int64_t>(position), known.first.to_string(),
                                has_reason ? fmt::format(": {}, use arg0 to arg9", why) : ""));
  }
  e->type = types_.decay(known.arguments[position]);
  if (!types_.is_scalar(e->type)) {
    return complain(
        "D_ARGS_TYPE", e->at,
        fmt::format("args[{}] of type {} is not supported yet", position, types_.name(e->type)));
  }
  note_argument_type(known, position);
  return {};
}

/// Another kernel's probe may pass something else there.
void Resolver::note_argument_type(const ProbeSignature& known, std::uint64_t position) {
  if (position >= known.arguments.size()) return;
  argument_types_.insert_or_assign(static_cast<std::uint32_t>(position),
                                   dif::type_text(types_.graph(), known.arguments[position]));
}

/// args[n] as the provider presents it: `n`'s native argument, through a library's translator.
Checked<void> Resolver::resolve_translated_argument(Expr* e, const ProbeSignature& known,
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
  const std::optional<TypeId> type = type_resolver_.find_named_type(name);
  Expr* native = arena_.make(Expr(*e));
  native->is_native = true;
  Expr* number = make_node(arena_, ExprKind::Integer, e->at);
  number->type = types_.int64;
  number->constant = wanted.native;
  native->list = {number};
  TRY(resolve_argument(native));
  const Translator* translator = type ? translators_.find_translator(*type, native->type) : nullptr;
  if (translator == nullptr) {
    if (types_.name(native->type) == wanted.type) {  // the kernel's own type of that name
      *e = *native;
      return {};
    }
    if (type && !types_.is_struct(*type)) {
      return replace(e, native, pointer ? types_.graph().pointer_to(*type) : *type);
    }
    return complain("D_ARGS_XLATOR", e->at,
                    fmt::format("translator for args[{}] from type {} to type {} is not defined",
                                position, types_.name(native->type), wanted.type));
  }
  replace_by_translation(e, *translator, native,
                         pointer ? types_.graph().pointer_to(*type) : *type);
  return {};
}

}  // namespace ringside::d
