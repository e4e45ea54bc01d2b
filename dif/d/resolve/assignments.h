// Operators that write: =, the compound ones such as +=, ++ and --. D's variables are declared by
// their first assignment, so this code also declares new names.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "dif/d/resolve/rewriter.h"

namespace ringside::d {

class Assignments {
 public:
  Assignments(const ResolverTools& tools, Rewriter& rewriter)
      : arena_(tools.arena),
        types_(tools.types),
        identifiers_(tools.identifiers),
        declared_(tools.declared),
        rules_(tools.rules),
        walker_(tools.walker),
        rewriter_(rewriter) {}

  /// Notes what the statements assign to, for messages about names that are used before.
  void note(const std::vector<Statement*>& body);
  void enter_clause() { first_assigned_.clear(); }
  /// Whether `e` names a variable that nothing has declared yet.
  bool names_unknown(const Expr& e) const;
  /// Declares the variables that assignments in `e` define, or only arrays and self-> variables, so
  /// that they can be used before `e` is resolved. It reports no errors; assign() does.
  enum class Which : std::uint8_t { All, Dynamic };
  void define(Expr* e, Which which);
  /// Whether the clause has an = that was to declare the name, and did not.
  bool was_to_declare(std::string_view name) const;

  Checked<void> assign(Expr* e);
  Checked<void> step(Expr* e);  // ++ and --

 private:
  void note(const Expr* e);
  const Expr* undeclared(const Expr& target) const;
  Checked<void> declare_written(const Expr& target, TypeId type, const Location& at);
  Checked<void> declare_assigned(Expr* e);
  Checked<void> check_writable(const Expr& e, const Expr& target) const;
  Checked<void> keep_keys(Expr* e, Expr* target);

  AstArena& arena_;
  Types& types_;
  IdentifierTable& identifiers_;
  TypeResolver& declared_;
  const OperatorRules& rules_;
  ExpressionWalker& walker_;
  Rewriter& rewriter_;
  std::vector<std::string_view> first_assigned_;  // names that = was to declare in this clause
};

}  // namespace ringside::d
