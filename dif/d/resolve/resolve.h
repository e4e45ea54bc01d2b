// Resolves the names and types of expressions: gives each expression its type, its constant value
// if it has one, and the identifier that it names. D's variables are declared by their first
// assignment, so clauses are resolved in program order.
//
// One class, since expressions nest: every kind of expression resolves its operands. Each kind has
// a function named resolve_..., in the file that its heading below names. Parts with a state of
// their own: names (identifier_table.h), the program's types (type_resolver.h), the rules of
// operators (operator_rules.h), translators (translators.h), copies of expressions (copier.h),
// names for the parts of the kernel (kernel_namer.h). Declarations outside clauses are
// declarations.h's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dif/d/resolve/copier.h"
#include "dif/d/resolve/environment.h"
#include "dif/d/resolve/identifier_table.h"
#include "dif/d/resolve/kernel_namer.h"
#include "dif/d/resolve/operator_rules.h"
#include "dif/d/resolve/translators.h"
#include "dif/d/resolve/type_resolver.h"
#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/compile_options.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/d/types/types.h"
#include "dif/program/builtin.h"

namespace ringside::d {

class Resolver {
 public:
  /// All must outlive this. `options` are those of the program, with what it set itself.
  Resolver(Environment& environment, const CompileOptions& options, AstArena& arena);
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  Types& types() { return types_; }
  const CompileOptions& options() const { return options_; }
  IdentifierTable& identifiers() { return identifiers_; }
  StabilityNotes& stability() { return stability_; }
  TypeResolver& type_resolver() { return type_resolver_; }
  const TranslatorTable& translators() const { return translators_; }
  /// Names for what of the guest's kernel goes into the program.
  KernelNamer& namer() { return namer_; }

  /// A declaration or clause begins. Inlines may grow anew in it.
  void begin_external() { copier_.begin_external(); }
  Checked<ClauseNode*> copy_clause(const ClauseNode& clause, std::size_t probe) {
    return copier_.copy(clause, probe);
  }
  /// Sets the probes that args[] is typed by, until the next call.
  void enter_clause(std::vector<dif::ProbeDescription> probes);

  // resolve.cc

  /// Types `e` and everything below it. The result of xlate<T *> has no value: D_CG_DYN, or the
  /// tag.
  Checked<void> resolve(Expr* e, std::string_view dynamic_tag = "D_CG_DYN");
  /// The same, but leaves e->translation set for a caller that looks at it.
  Checked<void> resolve_dynamic(Expr* e);
  /// As resolve(), for an operand that is only compared: the value of a pointer to a translated
  /// structure is then the pointer that is translated.
  Checked<void> resolve_compared(Expr* e, std::string_view dynamic_tag);
  /// resolve(), and complains with the tag unless `e` is an integer known now: "`what` must be
  /// ...".
  Checked<std::int64_t> resolve_constant(Expr* e, std::string_view what,
                                         std::string_view tag = "D_DECL_ENCONST");
  /// If the condition of a ?: is constant, `e` becomes the side that is taken, unresolved; the
  /// other side need not have a meaning. False: the condition is not constant.
  Checked<bool> take_known_side(Expr* e);
  /// The value of a resolved constant that decides what is compiled: fixed, where it is a kernel's.
  std::optional<std::uint64_t> known_value(const Expr& e);
  /// A 64-bit clause-local variable with a name that no program can write.
  Checked<const Identifier*> find_hidden_local(const std::string& name);
  /// The form in which a value of e's type is recorded; complains about types that have none.
  Checked<dif::ValueType> value_type(const Expr& e) const;

  // names.cc

  /// From here on, @name can be named.
  void declare_aggregation(const std::string& name) { aggregations_.insert(name); }

  // assignments.cc

  /// Notes what the statements assign to, for messages about names that are used before.
  void note_assignments(const std::vector<Statement*>& body);
  /// Whether `e` names a variable that nothing has declared yet.
  bool names_unknown(const Expr& e) const;
  /// Declares the variables that assignments in `e` define, or only arrays and self-> variables, so
  /// that they can be used before `e` is resolved. It reports no errors; resolve() does.
  enum class Which : std::uint8_t { All, Dynamic };
  void define_assigned(Expr* e, Which which);

  // arguments.cc

  /// Whether the clause names args[], which differs between its descriptions.
  bool needs_clause_for_each(const ClauseNode& clause,
                             const std::vector<dif::ProbeDescription>& probes) const;
  /// The types that args[] were taken for since the last call.
  std::vector<dif::ArgumentType> take_argument_types();

  // inlines.cc, translators.cc

  Checked<void> define_inline(const InlineNode& node);
  Checked<void> define_translator(const TranslatorNode& node);

 private:
  // resolve.cc
  Checked<void> resolve_kind(Expr* e);
  Checked<void> resolve_kernel_symbol(Expr* e);
  Checked<void> resolve_unary(Expr* e);
  Checked<void> resolve_address_of(Expr* e);
  Checked<void> resolve_binary(Expr* e);
  Checked<void> resolve_conditional(Expr* e);
  Checked<void> resolve_condition(Expr* e);
  Checked<void> resolve_comma(Expr* e);
  Checked<void> resolve_member(Expr* e);
  Checked<TypeId> structure_of(const Expr& e);
  Checked<void> resolve_cast(Expr* e);
  Checked<void> resolve_sizeof(Expr* e);
  Checked<void> resolve_offsetof(Expr* e);
  Checked<void> resolve_stringof(Expr* e);

  // names.cc: variables, inlines, enumerators, aggregations, and arrays of these
  Checked<void> resolve_name(Expr* e);         // name
  Checked<void> resolve_scoped(Expr* e);       // self->name, this->name
  Checked<void> resolve_aggregation(Expr* e);  // @name, which has no value
  Checked<void> resolve_index(Expr* e);        // array[key, ...] of any kind
  Checked<void> unknown_name(const Expr& e) const;
  Checked<void> check_array_declared(const Expr& base);
  Checked<void> resolve_element(Expr* e, Identifier* array);
  Checked<void> resolve_keys(Expr* e, Identifier* array);
  Checked<void> check_key(const Expr& e, Identifier* array, std::size_t position, bool fresh);
  // `name and module`name: variables of the guest's kernel
  /// A library's inline __genunix_NAME for `NAME or genunix`NAME, which another system's kernel has
  /// and this one has not; null for other symbols.
  const Identifier* find_stand_in(const Expr& e) const;
  /// Types a symbol whose value is read. Complains where no type of it is known.
  Checked<void> resolve_kernel_variable(Expr* e);
  /// The same for a variable whose address is taken: it need not have a type.
  Checked<void> resolve_kernel_address(Expr* e);
  /// The same for a variable that is cast, which gives a symbol of unknown type its type: (int)`sym
  /// reads an int.
  Checked<void> resolve_kernel_cast(Expr* e, TypeId to);
  Checked<bool> find_kernel_variable(Expr* e);

  // builtins.cc: built-in variables, regs[] and uregs[], calls
  /// Types a name, if it is a built-in variable's.
  Checked<bool> resolve_builtin(Expr* e);
  /// Types regs[n] or uregs[n]. Which of them it is is left in e->text, for the code generator.
  Checked<void> resolve_register(Expr* e);
  Checked<void> resolve_call(Expr* e);
  Checked<void> resolve_action_call(Expr* e);
  Checked<void> check_call_argument(const Expr& call, std::size_t position,
                                    dif::ArgumentKind kind) const;
  TypeId builtin_type(dif::BuiltinType type) const;

  // arguments.cc: args[], by the signature that the clause's probes share
  Checked<void> resolve_argument(Expr* e);  // args[n]
  Checked<void> resolve_translated_argument(Expr* e, const ProbeSignature& known,
                                            std::uint64_t position);
  void note_argument_type(const ProbeSignature& known, std::uint64_t position);
  /// D_ARGS_MULTI where the probes differ in their arguments, D_ARGS_NONE where there are none.
  Checked<ProbeSignature> clause_signature(const Location& at);
  Checked<ProbeSignature> find_clause_signature(const Location& at) const;
  bool signatures_agree(const ProbeSignature& a, const ProbeSignature& b) const;
  bool signatures_differ(const std::vector<dif::ProbeDescription>& probes) const;

  // assignments.cc: operators that write
  Checked<void> resolve_assignment(Expr* e);
  Checked<void> resolve_step(Expr* e);  // ++ and --
  void note_assignments(const Expr* whole);
  /// Whether the clause has an = that was to declare the name, and did not.
  bool was_to_declare(std::string_view name) const;
  const Expr* find_undeclared(const Expr& target) const;
  Checked<void> declare_written(const Expr& target, TypeId type, const Location& at);
  Checked<void> declare_assigned(Expr* e);
  Checked<void> check_writable(const Expr& e, const Expr& target) const;
  Checked<void> evaluate_keys_once(Expr* e, Expr* target);

  // inlines.cc: names that stand for expressions. Each use is a copy of the expression, with the
  // keys' names bound to what is passed.
  Checked<void> take_inline_parameters(Identifier& identifier, const Declarator& declarator);
  Checked<void> check_inline(const InlineNode& node, Identifier& identifier);
  /// Makes `e`, which names the inline, stand for its value. An inline can only name what was
  /// defined before it, so this ends; how much it can grow is bounded.
  Checked<void> expand_inline(Expr* e, const Identifier& identifier);
  /// The same of name[key, ...].
  Checked<void> expand_inline_with_keys(Expr* e, const Identifier& identifier);
  // inlines.cc: replacing resolved expressions
  /// `value`, already resolved, as a value of `type`.
  Expr* make_converted(Expr* value, TypeId type);
  /// Something of a type, not to be evaluated: checks an expression before it has its inputs.
  Expr* make_placeholder(TypeId type, const Location& at);
  /// Makes `e` stand for `value` converted to `type`.
  Checked<void> replace(Expr* e, Expr* value, TypeId type);
  /// A resolved expression in two parts.
  struct Once {
    Expr* prologue = nullptr;  // evaluates it and keeps the value; null where that is not needed
    Expr* value = nullptr;     // can be evaluated as often as wanted
  };
  Checked<Once> evaluate_once(Expr* e);
  /// A clause-local variable with a name that no program can write: `what`, and a number.
  Checked<Identifier*> add_hidden_variable(std::string_view what, TypeId type, const Location& at);
  Expr* make_clause_local_of(const Identifier& identifier, const Location& at);
  /// A resolved copy of an expression that nothing uses yet: the names in it do not count.
  /// Complains where it is wrong, or at `at` that "`what` grows too large".
  Checked<Expr*> try_out(const Expr& value, const Location& at, const Bindings& bindings,
                         std::string_view what);

  // translators.cc: xlate
  Checked<void> resolve_xlate(Expr* e);  // xlate<T>(input)
  /// Makes `e` what `translator` makes of `input`, which is resolved and harmless to repeat, in
  /// place of an xlate. `type`: the translator's output, or a pointer to it.
  void replace_by_translation(Expr* e, const Translator& translator, Expr* input, TypeId type);
  /// Makes `e`, *p of a pointer to what is translated, the translated structure. False: `e` is
  /// another pointer's.
  bool dereference_translation(Expr* e);
  /// Whether `e`, a Member or Arrow, takes a member of a translated value.
  static bool is_translated_member(const Expr& e);
  /// Replaces such an `e` by the member's expression. If a translator has several for one member,
  /// the first counts whose types this kernel has.
  Checked<void> resolve_translated_member(Expr* e);
  /// Makes `e`, if it is a translation, a value: the whole structure. A pointer has none: `tag`.
  Checked<void> settle_translation(Expr* e, std::string_view tag);
  /// The same for a value that is only compared: for a pointer it is the pointer that is
  /// translated.
  Checked<void> settle_compared(Expr* e, std::string_view tag);
  Checked<void> check_conversion(const Translator& translator,
                                 const TranslatorNode::MemberValue& m);
  Checked<void> replace_by_conversion(Expr* e, const Xlate& translation,
                                      const Translator::Conversion& conversion, TypeId type);
  Checked<void> replace_by_whole(Expr* e);
  std::string why_member_lacks(const Translator& translator, std::string_view member,
                               std::string_view why) const;

  const CompileOptions& options_;
  Environment& environment_;
  AstArena& arena_;
  Types types_;
  IdentifierTable identifiers_;
  StabilityNotes stability_;
  TypeResolver type_resolver_;
  OperatorRules rules_;
  Copier copier_;
  KernelNamer namer_;
  TranslatorTable translators_;
  std::deque<Xlate> translations_;                // that expressions point at
  std::unordered_set<std::string> aggregations_;  // that were assigned
  std::size_t hidden_variables_ = 0;
  int depth_ = 0;  // of resolve_dynamic() in itself

  // Of the clause:
  std::vector<dif::ProbeDescription> probes_;
  std::optional<Checked<ProbeSignature>> signature_;     // that they share, once it was asked for
  std::map<std::uint32_t, std::string> argument_types_;  // as type_text() spells them
  std::vector<std::string_view> first_assigned_;         // names that = was to declare
};

}  // namespace ringside::d
