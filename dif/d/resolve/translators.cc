// In this file: the table of translators, and xlate: the translator for an expression, and what the
// expression becomes by it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "dif/d/resolve/resolve.h"

namespace ringside::d {

Checked<void> TranslatorTable::check_translator(const Translator& translator,
                                                const Location& at) const {
  if (!types_.is_struct(translator.output)) {
    return complain("D_XLATE_SOU", at,
                    fmt::format("translator output type must be a struct or union: {}",
                                types_.name(translator.output)));
  }
  if (types_.kind(translator.output) == TypeKind::Forward) {
    return complain(
        "D_XLATE_SOU", at,
        fmt::format("translator output type is not defined: {}", types_.name(translator.output)));
  }
  for (const Translator& known : translators_) {
    if (!types_.same(known.output, translator.output) ||
        !types_.same(known.input, translator.input)) {
      continue;
    }
    return complain("D_XLATE_REDECL", at,
                    fmt::format("translator from {} to {} has already been declared",
                                types_.name(translator.input), types_.name(translator.output)));
  }
  return {};
}

const Translator* TranslatorTable::find_translator(TypeId output, TypeId input) const {
  const TypeId decayed = types_.decay(input);
  for (const Translator& translator : translators_) {
    if (!types_.same(translator.output, output)) continue;
    if (types_.same(translator.input, input) || types_.same(translator.input, decayed)) {
      return &translator;
    }
  }
  for (const Translator& translator : translators_) {
    if (!types_.same(translator.output, output)) continue;
    if (types_.is_integer(translator.input) && types_.is_integer(input)) return &translator;
    const bool pointers = types_.is_pointer(translator.input) && types_.is_pointer(decayed);
    if (pointers && types_.is_void(types_.referent(decayed))) return &translator;
  }
  return nullptr;
}

Checked<void> Resolver::define_translator(const TranslatorNode& node) {
  Translator translator;
  translator.output = TRY(type_resolver_.resolve_type_name(*node.output));
  translator.input = TRY(type_resolver_.resolve_type_name(*node.input));
  translator.parameter = *node.input->declarators.front()->name;
  TRY(translators_.check_translator(translator, node.at));
  for (const TranslatorNode::MemberValue& member : node.members) {
    if (node.at.file == 0) TRY(check_conversion(translator, member));
    translator.conversions.push_back({*member.name, member.value});
  }
  translators_.add_translator(std::move(translator));
  return {};
}

/// A member of a program's own translator must be right even when nobody uses it. Those of
/// libraries depend on a kernel that may lack some field.
Checked<void> Resolver::check_conversion(const Translator& translator,
                                         const TranslatorNode::MemberValue& m) {
  const auto found = types_.graph().find_member(translator.output, *m.name);
  if (!found) {
    return complain("D_XLATE_MEMB", m.at,
                    fmt::format("translator member {} is not a member of {}{}", *m.name,
                                types_.name(translator.output),
                                types_.suggest_member(translator.output, *m.name)));
  }
  const Bindings bindings{{translator.parameter, make_placeholder(translator.input, m.at)}};
  const Expr* value = TRY(try_out(*m.value, m.at, bindings, "translator"));
  if (rules_.check_assignable(*value, found->type, *value)) return {};
  return complain("D_XLATE_INCOMPAT", m.at,
                  fmt::format("translator member {} definition uses incompatible types: \"{}\" = "
                              "\"{}\"",
                              *m.name, types_.name(found->type), types_.name(value->type)));
}

Checked<void> Resolver::resolve_xlate(Expr* e) {
  if (e->type_name == nullptr) return {};  // done before
  const TypeId output = TRY(type_resolver_.resolve_type_name(*e->type_name));
  const bool pointer = types_.is_pointer(types_.graph().resolve(output));
  const TypeId target = pointer ? types_.referent(output) : output;
  TRY(resolve(e->a));
  const Translator* translator = translators_.find_translator(target, e->a->type);
  if (translator == nullptr) {
    return complain("D_XLATE_NONE", e->at,
                    fmt::format("cannot translate from \"{}\" to \"{}\"", types_.name(e->a->type),
                                types_.name(output)));
  }
  auto [prologue, input] = TRY(evaluate_once(e->a));
  if (types_.is_scalar(translator->input)) {
    input = make_converted(input, translator->input);
    TRY(fold(types_, input));
  }
  translations_.push_back({translator, input, prologue, pointer});
  e->translation = &translations_.back();
  e->type_name = nullptr;
  e->type = output;
  return {};
}

void Resolver::replace_by_translation(Expr* e, const Translator& translator, Expr* input,
                                      TypeId type) {
  const bool pointer = types_.is_pointer(types_.graph().resolve(type));
  translations_.push_back({&translator, input, nullptr, pointer});
  e->kind = ExprKind::Xlate;
  e->type_name = nullptr;
  e->list.clear();
  e->a = input;
  e->translation = &translations_.back();
  e->type = type;
}

bool Resolver::dereference_translation(Expr* e) {
  const Xlate* const pointer = e->a->translation;
  if (pointer == nullptr || !pointer->is_pointer) return false;
  Xlate whole = *pointer;
  whole.is_pointer = false;
  translations_.push_back(whole);
  e->kind = ExprKind::Xlate;
  e->type_name = nullptr;
  e->a = whole.input;
  e->translation = &translations_.back();
  e->type = whole.translator->output;
  return true;
}

bool Resolver::is_translated_member(const Expr& e) {
  const Xlate* const of = e.a->translation;
  return of != nullptr && of->is_pointer == (e.kind == ExprKind::Arrow);
}

/// `why` is that of the member's first conversion.
std::string Resolver::why_member_lacks(const Translator& translator, std::string_view member,
                                       std::string_view why) const {
  std::vector<std::string_view> others;
  for (const Translator::Conversion& conversion : translator.conversions) {
    const std::string_view other = conversion.member;
    if (other != member && std::ranges::find(others, other) == others.end()) {
      others.push_back(other);
    }
  }
  const std::string_view release = environment_.kernel_release();
  return fmt::format(
      "{} of {} cannot be had{}{}: {}{}{}", member, types_.name(translator.output),
      release.empty() ? "" : " on Linux ", release, why,
      others.empty() ? "" : "; the translator's other members: ", fmt::join(others, ", "));
}

Checked<void> Resolver::resolve_translated_member(Expr* e) {
  const Xlate& translation = *e->a->translation;
  const Translator& translator = *translation.translator;
  const auto found = types_.graph().find_member(translator.output, *e->text);
  std::optional<Diagnostic> why;
  for (const Translator::Conversion& conversion : translator.conversions) {
    if (!found || conversion.member != *e->text) continue;
    const dif::Attributes before = stability_.save();
    auto made = replace_by_conversion(e, translation, conversion, found->type);
    if (made) return {};
    stability_.restore(before);
    if (!why) why = std::move(made.error());
  }
  if (why) {
    why->text = why_member_lacks(translator, *e->text, why->text);
    return tl::make_unexpected(std::move(*why));
  }
  return complain("D_XLATE_NOCONV", e->at,
                  fmt::format("translator does not define conversion for member: {}{}", *e->text,
                              found ? "" : types_.suggest_member(translator.output, *e->text)));
}

/// After an error `e` is as it was.
Checked<void> Resolver::replace_by_conversion(Expr* e, const Xlate& translation,
                                              const Translator::Conversion& conversion,
                                              TypeId type) {
  const Bindings bindings{{translation.translator->parameter, translation.input}};
  Expr* value = TRY(copier_.copy(*conversion.value, e->at, bindings, "translator"));
  TRY(resolve_dynamic(value));
  if (translation.prologue != nullptr)
    value = make_comma(arena_, e->at, translation.prologue, value);
  if (!rules_.check_assignable(*e, type, *value)) {
    return complain("D_XLATE_INCOMPAT", e->at,
                    fmt::format("translator member {} definition uses incompatible types: "
                                "\"{}\" = \"{}\"",
                                conversion.member, types_.name(type), types_.name(value->type)));
  }
  return replace(e, value, type);
}

/// The whole of a translated structure: (hidden.m1 = e1, hidden.m2 = e2, ..., hidden).
Checked<void> Resolver::replace_by_whole(Expr* e) {
  translations_.push_back(*e->translation);
  Xlate& translation = translations_.back();
  Expr* result = std::exchange(translation.prologue, nullptr);  // once, not with each member
  const TypeId type = translation.translator->output;
  const Location at = e->at;
  const Identifier* const hidden = TRY(add_hidden_variable("translated", type, at));
  Expr* whole = make_clause_local_of(*hidden, at);
  std::vector<std::string_view> done;  // a member may have several conversions
  for (const Translator::Conversion& conversion : translation.translator->conversions) {
    if (std::ranges::find(done, conversion.member) != done.end()) continue;
    done.emplace_back(conversion.member);
    const Text member = arena_.make(std::string(conversion.member));
    Expr* target = make_node(arena_, ExprKind::Member, at, arena_.make(Expr(*whole)));
    target->text = member;
    Expr* source = make_node(arena_, ExprKind::Xlate, at, translation.input);
    source->translation = &translation;
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

Checked<void> Resolver::settle_translation(Expr* e, std::string_view tag) {
  if (e->translation == nullptr) return {};
  if (!e->translation->is_pointer) return replace_by_whole(e);
  return complain(tag, e->at,
                  fmt::format("expression cannot evaluate to result of type {}: only its members "
                              "have values",
                              types_.name(e->type)));
}

Checked<void> Resolver::settle_compared(Expr* e, std::string_view tag) {
  const Xlate* const translation = e->translation;
  if (translation == nullptr || !translation->is_pointer ||
      !types_.is_pointer(translation->input->type)) {
    return settle_translation(e, tag);
  }
  Expr* const input = translation->input;
  *e = translation->prologue == nullptr ? *input
                                        : *make_comma(arena_, e->at, translation->prologue, input);
  return {};
}

}  // namespace ringside::d
