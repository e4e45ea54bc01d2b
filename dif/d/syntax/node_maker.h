// Makes the nodes of the tree from the parts of a grammar rule, and limits the depth to what the
// phases can recurse. Used by the grammar's actions, and by the lexer for constants. Does not:
// check what was built (resolve.cc does).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/parse_state.h"

namespace ringside::d {

/// Functions whose result is null, or false, have said in the state why.
class NodeMaker {
 public:
  /// The state outlives it.
  explicit NodeMaker(ParseState& state) : state_(state) {}

  template <class T>
  T* make(T value = {}) {
    return state_.tree.arena.make(std::move(value));
  }
  Text text(std::string_view value) { return make(std::string(value)); }

  Expr* expr(ExprKind kind, const Location& at, Expr* a = nullptr, Expr* b = nullptr,
             Expr* c = nullptr);
  Expr* unary(Op op, const Location& at, Expr* a);
  Expr* binary(Op op, const Location& at, Expr* a, Expr* b);
  Expr* assign(const Location& at, Expr* a, Expr* b, std::optional<Op> op = std::nullopt);
  Expr* call(const Location& at, const Expr& function, ExprList* list);
  Expr* index(const Location& at, Expr* base, ExprList* list);
  bool too_deep(int depth, const Location& at);

  Statement* if_statement(Expr* condition, std::vector<Statement*>* then_body,
                          std::vector<Statement*>* else_body);
  /// for and while; a missing part is null.
  Statement* loop(Statement parts, const std::vector<Statement*>& body);

  TypeSpec* base_word(const Location& at, TypeSpec::Base base);
  /// The same for a type with a name, which may have a scope: D`name.
  TypeSpec* named_word(const Location& at, TypeSpec::Base base, std::string_view name);
  TypeSpec* storage_word(const Location& at, Storage storage);
  TypeSpec* merge(TypeSpec* into, TypeSpec* word);
  Derivation* derivation(Derivation::Kind kind);
  bool derive(Declarator* declarator, const Derivation& step);
  /// The declaration of one name, or of none.
  Declaration* one(TypeSpec* spec, Declarator* declarator);
  /// From now on the names that a typedef declares are types'.
  void declare(Declaration* declaration);
  /// Notes that the members or enumerators of `word name` follow; false after stop() where they
  /// have been given before. `name` may be null.
  bool define_tag(std::string_view word, Text name, const Location& at);

 private:
  Expr* chained(Op op, const Location& at, Expr* chain, Expr* last);

  ParseState& state_;
};

template <class T>
std::vector<T>* append(std::vector<T>* list, const std::type_identity_t<T>& item) {
  list->push_back(item);
  return list;
}

}  // namespace ringside::d
