// Expressions that stand for others: inlines, and the members of translated structures. Both are
// copies of an expression with names bound to what they are given.
//
// A translated value exists only member by member: Expr::translation says how each is computed.
// When the whole of it is wanted, its members are computed into a hidden clause-local structure.
#include <fmt/format.h>

#include <algorithm>

#include "dif/d/resolve/purity.h"
#include "dif/d/resolve/resolve.h"
#include "dif/d/syntax/nodes.h"

namespace ringside::d {
/// `value`, already resolved, as a value of `type`.
Expr* Resolver::converted(Expr* value, TypeId type) {
  Expr* cast = make_node(arena_, ExprKind::Cast, value->at, value);
  cast->type = type;
  cast->translation = value->translation;
  return cast;
}

/// Something of a type, not to be evaluated: checks an expression before it has its inputs.
Expr* Resolver::placeholder(TypeId type, const Location& at) {
  Expr* nothing = make_node(arena_, ExprKind::Integer, at);
  nothing->type = types_.uint64;
  Expr* made = converted(nothing, type);
  made->is_lvalue = types_.by_reference(type);
  return made;
}

/// Makes `e` stand for `value` converted to `type`.
Checked<void> Resolver::become(Expr* e, Expr* value, TypeId type) {
  TRY(rules_.assignable(*e, type, *value));
  e->kind = ExprKind::Cast;
  e->type_name = nullptr;
  e->list.clear();
  e->symbol = nullptr;
  e->member = {};
  e->is_lvalue = false;
  e->a = value;
  e->type = type;
  e->translation = value->translation;
  return fold(types_, e);
}

/// Splits a resolved expression into one that evaluates it and keeps the value (null when that is
/// not needed) and one that can be evaluated as often as wanted.
Checked<std::pair<Expr*, Expr*>> Resolver::evaluate_once(Expr* e) {
  if (is_pure(*e) || e->translation != nullptr) return std::pair<Expr*, Expr*>(nullptr, e);
  const std::string name = fmt::format("%kept_{}", ++hidden_variables_);
  const TypeId type = types_.decay(e->type);
  Symbol* symbol = TRY(symbols_.add_variable(Scope::Clause, name, e->at));
  symbol->type = type;
  symbol->is_kept = true;
  Expr* const target = make_clause_local(arena_, arena_.make(std::string(name)), e->at);
  Expr* const assignment = make_node(arena_, ExprKind::Assign, e->at, target, e);
  TRY(resolve(assignment));
  Expr* const again = arena_.make(Expr(*target));
  return std::pair<Expr*, Expr*>(assignment, again);
}

/// An inline can only name what was defined before it, so this ends; how much it can grow is
/// bounded.
Checked<void> Resolver::inline_value(Expr* e, const Symbol& symbol) {
  Expr* value = TRY(copier_.copy(*symbol.value, e->at, {}, "inline " + symbol.name));
  TRY(resolve_dynamic(value));
  return become(e, value, symbol.type);
}

Checked<void> Resolver::inline_index(Expr* e, const Symbol& symbol) {
  if (e->list.size() != symbol.keys.size()) {
    return complain(
        "D_PROTO_LEN", e->at,
        fmt::format("{}[ ] prototype mismatch: {} key{} passed, {} expected", symbol.name,
                    e->list.size(), e->list.size() == 1 ? "" : "s", symbol.keys.size()));
  }
  Bindings bindings;
  std::vector<Expr*> prologues;
  for (std::size_t i = 0; i < e->list.size(); ++i) {
    Expr* argument = e->list[i];
    TRY(resolve(argument));
    if (!rules_.assignable(*e, symbol.keys[i], *argument)) {
      return complain("D_PROTO_ARG", argument->at,
                      fmt::format("{}[ ] key #{} is incompatible with prototype: prototype: {}, "
                                  "argument: {}",
                                  symbol.name, i + 1, types_.name(symbol.keys[i]),
                                  types_.name(argument->type)));
    }
    const auto [prologue, again] = TRY(evaluate_once(argument));
    if (prologue != nullptr) prologues.push_back(prologue);
    bindings.emplace(symbol.parameters[i], converted(again, symbol.keys[i]));
  }
  Expr* value = TRY(copier_.copy(*symbol.value, e->at, bindings, "inline " + symbol.name));
  for (Expr* prologue : prologues) value = make_comma(arena_, e->at, prologue, value);
  TRY(resolve_dynamic(value));
  return become(e, value, symbol.type);
}

// Translators

Checked<void> Resolver::define_translator(const TranslatorNode& node) {
  Translator translator;
  translator.output = TRY(declared_.type_name(*node.output));
  translator.input = TRY(declared_.type_name(*node.input));
  translator.parameter = *node.input->declarators.front()->name;
  TRY(translators_.check(translator, node.at));
  for (const TranslatorNode::MemberValue& member : node.members) {
    const bool twice = std::ranges::any_of(
        translator.conversions, [&](const auto& known) { return known.member == *member.name; });
    if (node.at.file == 0) TRY(check_conversion(translator, member));
    if (twice) continue;  // the first one counts
    translator.conversions.push_back({*member.name, member.value});
  }
  translators_.add(std::move(translator));
  return {};
}

/// A member of a program's own translator must be right even when nobody uses it. Those of
/// libraries depend on a kernel that may lack some field.
Checked<void> Resolver::check_conversion(const Translator& translator,
                                         const TranslatorNode::MemberValue& m) {
  const auto found = types_.graph().find_member(translator.output, *m.name);
  if (!found) {
    return complain("D_XLATE_MEMB", m.at,
                    fmt::format("translator member {} is not a member of {}", *m.name,
                                types_.name(translator.output)));
  }
  const Bindings bindings{{translator.parameter, placeholder(translator.input, m.at)}};
  Expr* value = copier_.clone(*m.value, nullptr, bindings);
  if (value == nullptr) return complain("D_UNKNOWN", m.at, "translator grows too large");
  const dif::Attributes before = stability_.save();
  auto resolved = resolve_dynamic(value);
  stability_.restore(before);
  if (!resolved) return resolved;
  if (rules_.assignable(*value, found->type, *value)) return {};
  return complain("D_XLATE_INCOMPAT", m.at,
                  fmt::format("translator member {} definition uses incompatible types: \"{}\" = "
                              "\"{}\"",
                              *m.name, types_.name(found->type), types_.name(value->type)));
}

Checked<void> Resolver::translate(Expr* e) {
  if (e->type_name == nullptr) return {};  // done before
  const TypeId output = TRY(declared_.type_name(*e->type_name));
  const bool pointer = types_.is_pointer(types_.graph().resolve(output));
  const TypeId target = pointer ? types_.referent(output) : output;
  TRY(resolve(e->a));
  const Translator* translator = translators_.find(target, e->a->type);
  if (translator == nullptr) {
    return complain("D_XLATE_NONE", e->at,
                    fmt::format("cannot translate from \"{}\" to \"{}\"", types_.name(e->a->type),
                                types_.name(output)));
  }
  Translation made;
  made.translator = translator;
  made.is_pointer = pointer;
  std::tie(made.prologue, made.input) = TRY(evaluate_once(e->a));
  if (types_.is_scalar(translator->input)) {
    made.input = converted(made.input, translator->input);
    TRY(fold(types_, made.input));
  }
  translations_.push_back(made);
  e->translation = &translations_.back();
  e->type_name = nullptr;
  e->type = output;
  return {};
}

/// e->a has a translation: `e` becomes the member's expression.
Checked<void> Resolver::translated_member(Expr* e) {
  const Translation& translation = *e->a->translation;
  const Translator& translator = *translation.translator;
  const auto found = types_.graph().find_member(translator.output, *e->text);
  const auto conversion =
      std::ranges::find(translator.conversions, *e->text, &Translator::Conversion::member);
  if (!found || conversion == translator.conversions.end()) {
    return complain("D_XLATE_NOCONV", e->at,
                    fmt::format("translator does not define conversion for member: {}", *e->text));
  }
  const Bindings bindings{{translator.parameter, translation.input}};
  Expr* value = TRY(copier_.copy(*conversion->value, e->at, bindings, "translator"));
  TRY(resolve_dynamic(value));
  if (translation.prologue != nullptr)
    value = make_comma(arena_, e->at, translation.prologue, value);
  if (!rules_.assignable(*e, found->type, *value)) {
    return complain("D_XLATE_INCOMPAT", e->at,
                    fmt::format("translator member {} definition uses incompatible types: "
                                "\"{}\" = \"{}\"",
                                *e->text, types_.name(found->type), types_.name(value->type)));
  }
  return become(e, value, found->type);
}

/// The whole of a translated structure: (hidden.m1 = e1, hidden.m2 = e2, ..., hidden).
Checked<void> Resolver::materialize(Expr* e) {
  const Translation& translation = *e->translation;
  const TypeId type = translation.translator->output;
  const std::string name = fmt::format("%translated_{}", ++hidden_variables_);
  Symbol* symbol = TRY(symbols_.add_variable(Scope::Clause, name, e->at));
  symbol->type = type;
  const Location at = e->at;
  Expr* whole = make_clause_local(arena_, arena_.make(std::string(name)), at);
  Expr* result = nullptr;
  for (const Translator::Conversion& conversion : translation.translator->conversions) {
    const Text member = arena_.make(std::string(conversion.member));
    Expr* target = make_node(arena_, ExprKind::Member, at, arena_.make(Expr(*whole)));
    target->text = member;
    Expr* source = make_node(arena_, ExprKind::Xlate, at, translation.input);
    source->translation = e->translation;
    source->type = type;
    Expr* value = make_node(arena_, ExprKind::Member, at, source);
    value->text = member;
    Expr* assignment = make_node(arena_, ExprKind::Assign, at, target, value);
    result = result == nullptr ? assignment : make_comma(arena_, at, result, assignment);
  }
  Expr* made = result == nullptr ? whole : make_comma(arena_, at, result, whole);
  TRY(resolve(made));
  *e = *made;
  e->at = at;
  return {};
}

}  // namespace ringside::d
