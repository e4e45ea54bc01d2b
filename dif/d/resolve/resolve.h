// Resolves the names and types of expressions: gives each expression its type, its constant value
// if it has one, and the identifier that it names. D's variables are declared by their first
// assignment, so clauses are resolved in program order.
//
// Resolver walks expressions, and hands each kind to a class of its own: names (names.h), D's own
// names and calls (builtins.h), args[] (probe_arguments.h), kernel symbols (kernel_variables.h),
// operators that write (assignments.h), the rules of those that read (operator_rules.h), inlines
// (inlines.h), translators (translators.h). These resolve inner expressions through
// ExpressionWalker (resolver_tools.h). Declarations outside clauses are in declarations.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dif/d/resolve/declarations.h"
#include "dif/d/resolve/environment.h"
#include "dif/d/resolve/kernel_variables.h"
#include "dif/d/resolve/names.h"
#include "dif/d/resolve/pragma_reader.h"
#include "dif/d/resolve/provider_table.h"
#include "dif/d/syntax/compile_options.h"

namespace ringside::d {

class Resolver final : public ExpressionWalker {
 public:
  /// All must outlive this. `options` are those of the program, with what it set itself.
  Resolver(Environment& environment, const CompileOptions& options, AstArena& arena);
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  Types& types() { return types_; }
  const CompileOptions& options() const { return options_; }
  IdentifierTable& identifiers() { return identifiers_; }
  StabilityNotes& stability() { return stability_; }
  Declarations& declarations() { return declarations_; }
  Names& names() { return names_; }
  Assignments& assignments() { return assignments_; }
  ArgumentTyper& arguments() { return arguments_; }
  Inlines& inlines() { return inlines_; }
  Translators& translators() { return translators_; }
  ProviderTable& providers() { return providers_; }
  PragmaReader& pragmas() { return pragmas_; }

  /// A declaration or clause begins. Inlines may grow anew in it.
  void begin_external() { copier_.begin_external(); }
  Checked<ClauseNode*> copy(const ClauseNode& clause, std::size_t probe) {
    return copier_.copy(clause, probe);
  }
  /// Sets the probes that args[] is typed by, until the next call.
  void enter_clause(std::vector<dif::ProbeDescription> probes);

  Checked<void> resolve(Expr* e, std::string_view dynamic_tag = "D_CG_DYN") override;
  Checked<void> resolve_dynamic(Expr* e) override;
  /// As resolve(), for an operand that is only compared: the value of a pointer to a translated
  /// structure is then the pointer that is translated.
  Checked<void> resolve_compared(Expr* e, std::string_view dynamic_tag);
  /// If the condition of a ?: is constant, `e` becomes the side that is taken, unresolved; the
  /// other side need not have a meaning. False: the condition is not constant.
  Checked<bool> take_known_side(Expr* e);
  /// resolve(), and complains with the tag unless `e` is an integer known now.
  Checked<std::int64_t> constant(Expr* e, std::string_view what,
                                 std::string_view tag = "D_DECL_ENCONST") override;
  /// resolve(), and complains unless `e` can be a condition.
  Checked<void> condition(Expr* e);
  /// A 64-bit clause-local variable with a name that no program can write.
  Checked<const Identifier*> hidden_local(const std::string& name);
  /// The form in which a value of e's type is recorded; complains about types that have none.
  Checked<dif::ValueType> value_type(const Expr& e) const;

  /// Names for what of the guest's kernel goes into the program.
  KernelNamer& namer() { return namer_; }
  std::optional<std::uint64_t> known(const Expr& e) override;

 private:
  Checked<void> dispatch(Expr* e);
  Checked<void> kernel_symbol(Expr* e);
  Checked<void> unary(Expr* e);
  Checked<void> address_of(Expr* e);
  Checked<void> binary(Expr* e);
  Checked<void> conditional(Expr* e);
  Checked<void> comma(Expr* e);
  Checked<void> member(Expr* e);
  Checked<TypeId> structure_of(const Expr& e);
  Checked<void> cast(Expr* e);
  Checked<void> size_of(Expr* e);
  Checked<void> offset_of(Expr* e);
  Checked<void> string_of(Expr* e);
  ResolverTools tools() {
    return {arena_, types_, identifiers_, declared_, stability_, rules_, copier_, *this};
  }

  const CompileOptions& options_;
  AstArena& arena_;
  Types types_;
  IdentifierTable identifiers_;
  StabilityNotes stability_;
  TypeResolver declared_;
  OperatorRules rules_;
  Copier copier_;
  KernelNamer namer_;
  Rewriter rewriter_;
  Inlines inlines_;
  Translators translators_;
  Declarations declarations_;
  ProviderTable providers_;
  PragmaReader pragmas_;
  ArgumentTyper arguments_;
  Assignments assignments_;
  Builtins builtins_;
  KernelVariables kernel_variables_;
  Names names_;
  int depth_ = 0;  // of resolve_dynamic() in itself
};

}  // namespace ringside::d
