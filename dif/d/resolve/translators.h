// xlate: finds the translator for an expression, and rewrites the expression by it.
//
// A translated value exists only member by member: Expr::translation says how each is computed.
// When the whole of it is wanted, its members are computed into a hidden clause-local structure.
#pragma once

#include <deque>
#include <string_view>

#include "dif/d/resolve/environment.h"
#include "dif/d/resolve/rewriter.h"
#include "dif/d/resolve/translator_table.h"

namespace ringside::d {

/// xlate<output>(input), or a pointer to it: only its members can be had, one expression each.
struct Xlate {
  const Translator* translator = nullptr;
  Expr* input = nullptr;     // resolved; evaluating it twice is harmless
  Expr* prologue = nullptr;  // to be evaluated first; may be null
  bool is_pointer = false;
};

class Translators {
 public:
  Translators(const ResolverTools& tools, const Environment& environment, Rewriter& rewriter)
      : environment_(environment),
        arena_(tools.arena),
        types_(tools.types),
        declared_(tools.declared),
        stability_(tools.stability),
        rules_(tools.rules),
        copier_(tools.copier),
        walker_(tools.walker),
        rewriter_(rewriter),
        table_(tools.types) {}

  Checked<void> define(const TranslatorNode& node);
  /// The translators, for those who only ask which there are.
  const TranslatorTable& table() const { return table_; }

  /// Types xlate<T>(input).
  Checked<void> translate(Expr* e);
  /// Makes `e` what `translator` makes of `input`, which is resolved and harmless to repeat, in
  /// place of an xlate. `type`: the translator's output, or a pointer to it.
  void become_translation(Expr* e, const Translator& translator, Expr* input, TypeId type);

  /// Makes `e`, *p of a pointer to what is translated, the translated structure. False: `e` is
  /// another pointer's.
  bool dereference(Expr* e);

  /// Whether `e`, a Member or Arrow, takes a member of a translated value.
  static bool is_member(const Expr& e);
  /// Replaces such an `e` by the member's expression. If a translator has several for one member,
  /// the first counts whose types this kernel has.
  Checked<void> member(Expr* e);

  /// Makes `e`, if it is a translation, a value: the whole structure. A pointer has none: `tag`.
  Checked<void> settle(Expr* e, std::string_view tag);
  /// The same for a value that is only compared: for a pointer it is the pointer that is
  /// translated.
  Checked<void> settle_compared(Expr* e, std::string_view tag);

 private:
  Checked<void> check_conversion(const Translator& translator,
                                 const TranslatorNode::MemberValue& m);
  Checked<void> become_member(Expr* e, const Xlate& translation,
                              const Translator::Conversion& conversion, TypeId type);
  Checked<void> become_whole(Expr* e);
  std::string why_lacking(const Translator& translator, std::string_view member,
                          std::string_view why) const;

  const Environment& environment_;
  AstArena& arena_;
  Types& types_;
  TypeResolver& declared_;
  StabilityNotes& stability_;
  const OperatorRules& rules_;
  Copier& copier_;
  ExpressionWalker& walker_;
  Rewriter& rewriter_;
  TranslatorTable table_;
  std::deque<Xlate> translations_;  // that expressions point at
};

}  // namespace ringside::d
