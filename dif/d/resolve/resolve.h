// Names and types of expressions: gives each its type, its constant value where it has one, and the
// symbol that it names. D's variables are declared by their first assignment, so clauses are
// resolved in program order.
//
// Resolver walks expressions. Its tools are classes of their own: the program's names (symbols.h),
// its types (type_resolver.h), translators (translator_table.h), what operators take
// (operator_rules.h), the clause's probes (clause_probes.h), and how stable all that is
// (stability_notes.h). Its files: resolve.cc (calls, members, casts), resolve_names.cc,
// resolve_operators.cc (operators that name, declare or write variables), resolve_declarations.cc
// (variables and inlines) and resolve_translators.cc (what stands for other expressions).
#pragma once

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dif/d/compile.h"
#include "dif/d/resolve/clause_probes.h"
#include "dif/d/resolve/constants.h"
#include "dif/d/resolve/copier.h"
#include "dif/d/resolve/kernel_namer.h"
#include "dif/d/resolve/operator_rules.h"
#include "dif/d/resolve/pragma_reader.h"
#include "dif/d/resolve/provider_table.h"
#include "dif/d/resolve/stability_notes.h"
#include "dif/d/resolve/symbols.h"
#include "dif/d/resolve/translator_table.h"
#include "dif/d/syntax/ast.h"
#include "dif/d/types/type_resolver.h"
#include "dif/d/types/types.h"

namespace ringside::d {

/// xlate<output>(input), or a pointer to it: only its members can be had, one expression each.
struct Translation {
  const Translator* translator = nullptr;
  Expr* input = nullptr;     // resolved; evaluating it twice is harmless
  Expr* prologue = nullptr;  // to be evaluated first; may be null
  bool is_pointer = false;
};

class Resolver final : public ConstantEvaluator {
 public:
  /// All must outlive this. `options` are those of the program, with what it set itself.
  Resolver(Environment& environment, const CompileOptions& options, Arena& arena);
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  Types& types() { return types_; }
  const CompileOptions& options() const { return options_; }
  SymbolTable& symbols() { return symbols_; }
  StabilityNotes& stability() { return stability_; }
  ProviderTable& providers() { return providers_; }
  PragmaReader& pragmas() { return pragmas_; }

  Checked<void> declare(const Declaration& declaration);
  Checked<void> define_inline(const InlineNode& node);
  Checked<void> define_translator(const TranslatorNode& node);
  /// A declaration or clause begins. Inlines may grow anew in it.
  void begin_external() { copier_.begin_external(); }
  /// Sets the probes that args[] is typed by, until the next call.
  void enter_clause(std::vector<dif::ProbeDescription> probes);

  /// Types `e` and everything below it. The result of xlate<T *> has no value: D_CG_DYN, or the
  /// tag.
  Checked<void> resolve(Expr* e, std::string_view dynamic_tag = "D_CG_DYN");
  /// The same, but leaves e->translation set for a caller that looks at it.
  Checked<void> resolve_dynamic(Expr* e);
  /// resolve(), and complains with the tag unless `e` is an integer known now.
  Checked<std::int64_t> constant(Expr* e, std::string_view what,
                                 std::string_view tag = "D_DECL_ENCONST") override;
  /// resolve(), and complains unless `e` can be a condition.
  Checked<void> condition(Expr* e);
  /// Whether `e` names a variable that nothing has declared yet.
  bool names_unknown(const Expr& e);
  /// Declares the variables that assignments in `e` define, for who names them before `e` is
  /// resolved. Complains about nothing: resolve() will.
  void define(Expr* e);
  /// A 64-bit clause-local variable with a name that no program can write.
  Checked<const Symbol*> hidden_local(const std::string& name);
  /// The form in which a value of e's type is recorded; complains about types that have none.
  Checked<dif::ValueType> value_type(const Expr& e) const;

  /// From here on, @name can be named.
  void declare_aggregation(const std::string& name) { aggregations_.insert(name); }
  /// Names for what of the guest's kernel goes into the program.
  KernelNamer& namer() { return namer_; }
  /// The types that args[] were taken for since the last call.
  std::vector<dif::ArgumentType> take_argument_types();
  /// The value of a resolved constant that decides what is compiled: fixed, where it is a kernel's.
  std::optional<std::uint64_t> known(const Expr& e);

 private:
  // resolve.cc
  Checked<void> dispatch(Expr* e);
  Checked<void> comma(Expr* e);
  Checked<void> call(Expr* e);
  Checked<void> action(Expr* e);
  Checked<void> aggregation(Expr* e);
  Checked<void> argument(const Expr& call, std::size_t position, dif::ArgumentKind kind);
  Checked<void> member(Expr* e);
  Checked<TypeId> structure_of(const Expr& e);
  Checked<void> cast(Expr* e);
  Checked<void> size_of(Expr* e);
  Checked<void> offset_of(Expr* e);
  Checked<void> string_of(Expr* e);

  // resolve_declarations.cc
  Checked<void> declare_variable(const TypeSpec& spec, const Declarator& declarator, TypeId base);
  Checked<bool> is_declared(Scope scope, const Declarator& declarator, TypeId type,
                            const std::vector<TypeId>& keys);
  Checked<void> take_parameters(Symbol& symbol, const Declarator& declarator);
  Checked<void> check_inline(const InlineNode& node, Symbol& symbol);

  // resolve_names.cc
  Checked<void> name(Expr* e);
  Checked<void> unknown_name(const Expr& e) const;
  Checked<bool> builtin(Expr* e);
  Checked<void> scoped(Expr* e);
  Checked<void> kernel_symbol(Expr* e, bool address_only);
  Checked<void> cast_symbol(Expr* e, TypeId to);
  Checked<void> index(Expr* e);
  Checked<void> undeclared_array(const Expr& base);
  Checked<void> args_index(Expr* e);
  void use_argument(const ProbeSignature& known, std::uint64_t position);
  Checked<void> register_index(Expr* e);
  Checked<void> translated_argument(Expr* e, const ProbeSignature& known, std::uint64_t position);
  Checked<void> associative_index(Expr* e, Symbol* array);
  Checked<void> keys(Expr* e, Symbol* array);
  Checked<void> key(const Expr& e, Symbol* array, std::size_t position, bool fresh);
  TypeId builtin_type(dif::BuiltinType type) const;

  // resolve_operators.cc
  Checked<void> unary(Expr* e);
  Checked<void> address_of(Expr* e);
  Checked<void> step(Expr* e);
  const Expr* undeclared(const Expr& target);
  Checked<void> declare_written(const Expr& target, TypeId type, const Location& at);
  Checked<void> keep_keys(Expr* e, Expr* target);
  Checked<void> binary(Expr* e);
  Checked<void> assign(Expr* e);
  Checked<void> assign_new(Expr* e);
  Checked<void> writable(const Expr& e, const Expr& target);
  Checked<void> conditional(Expr* e);

  // resolve_translators.cc
  Expr* placeholder(TypeId type, const Location& at);
  Expr* converted(Expr* value, TypeId type);
  Checked<std::pair<Expr*, Expr*>> evaluate_once(Expr* e);
  Checked<void> become(Expr* e, Expr* value, TypeId type);
  Checked<void> inline_value(Expr* e, const Symbol& symbol);
  Checked<void> inline_index(Expr* e, const Symbol& symbol);
  Checked<void> check_conversion(const Translator& translator,
                                 const TranslatorNode::MemberValue& m);
  Checked<void> translate(Expr* e);
  Checked<void> translated_member(Expr* e);
  Checked<void> materialize(Expr* e);

  Environment& environment_;
  const CompileOptions& options_;
  Arena& arena_;
  Types types_;
  SymbolTable symbols_;
  StabilityNotes stability_;
  TypeResolver declared_;
  TranslatorTable translators_;
  ProviderTable providers_;
  PragmaReader pragmas_;
  ClauseProbes probes_;
  OperatorRules rules_;
  Copier copier_;
  KernelNamer namer_;
  std::unordered_set<std::string> aggregations_;     // that were assigned
  std::unordered_map<std::string, TypeId> externs_;  // arrays of the kernel, of unknown length
  std::deque<Translation> translations_;
  std::map<std::uint32_t, std::string> used_arguments_;  // args[]: as type_text() spells them
  std::vector<std::string_view> first_assigned_;  // names that = was to declare in this clause
  std::size_t hidden_variables_ = 0;
  int depth_ = 0;  // of resolve_dynamic() in itself
};

}  // namespace ringside::d
