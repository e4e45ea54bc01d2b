// The translators that libraries and the program declare, and the values that they make. The
// resolver rewrites expressions by them (translators.cc).
//
// A translated value exists only member by member: Expr::translation says how each is computed.
// When the whole of it is wanted, its members are computed into a hidden clause-local structure.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/d/types/types.h"

namespace ringside::d {

struct Translator {
  struct Conversion {
    std::string member;
    Expr* value = nullptr;  // names the parameter
  };
  TypeId output, input;
  std::string parameter;
  std::vector<Conversion> conversions;
};

/// Translators live, at their addresses, as long as the table.
class TranslatorTable {
 public:
  explicit TranslatorTable(const Types& types) : types_(types) {}

  /// Whether it may be declared: D_XLATE_SOU unless the output is a structure that is defined,
  /// D_XLATE_REDECL for a second translator between the same types.
  Checked<void> check_translator(const Translator& translator, const Location& at) const;
  void add_translator(Translator translator) { translators_.push_back(std::move(translator)); }
  /// The one for these types exactly, or one that takes any integer or a void pointer; null for
  /// none.
  const Translator* find_translator(TypeId output, TypeId input) const;

 private:
  const Types& types_;
  std::deque<Translator> translators_;
};

/// xlate<output>(input), or a pointer to it: only its members can be had, one expression each.
struct Xlate {
  const Translator* translator = nullptr;
  Expr* input = nullptr;     // resolved; evaluating it twice is harmless
  Expr* prologue = nullptr;  // to be evaluated first; may be null
  bool is_pointer = false;
};

}  // namespace ringside::d
