// Names and types: gives every expression its type, its constant value where it has one, and the
// symbol it names. D's variables are declared by their first assignment, so clauses are resolved
// in program order.
// In eight files: resolve_types.cc (types), resolve_declarations.cc (variables and inlines),
// resolve_names.cc (symbols, args[]), resolve_translators.cc (translators, and copies of
// expressions with names bound), resolve_operators.cc, resolve_constants.cc (folding),
// resolve_pragmas.cc (providers, pragmas, stability), and resolve.cc (everything else).
// Fire context: no.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dif/d/compile.h"
#include "dif/d/resolve/identifiers.h"
#include "dif/d/resolve/types.h"
#include "dif/d/syntax/ast.h"
#include "dif/program/builtin.h"

namespace ringside::d {

/// What a name stands for.
struct Symbol {
  enum class Kind : std::uint8_t { Variable, Builtin, Inline, Subroutine } kind = Kind::Variable;
  std::string name;
  Scope scope = Scope::Global;
  std::uint16_t id = 0;
  TypeId type;
  bool is_associative = false;
  bool is_extern = false;               // declared for a kernel symbol
  bool is_kept = false;                 // an expression's value, uncut: see evaluate_once()
  std::vector<TypeId> keys;             // of an associative array
  Expr* value = nullptr;                // Inline
  std::vector<std::string> parameters;  // Inline with keys: their names
  dif::Attributes attributes;
  std::optional<dif::SubroutineInfo> subroutine;
};

struct Translator {
  struct Conversion {
    std::string member;
    Expr* value = nullptr;  // names the parameter
  };
  TypeId output, input;
  std::string parameter;
  std::vector<Conversion> conversions;
};

/// xlate<output>(input), or a pointer to it: only its members can be had, one expression each.
struct Translation {
  const Translator* translator = nullptr;
  Expr* input = nullptr;     // resolved; evaluating it twice is harmless
  Expr* prologue = nullptr;  // to be evaluated first; may be null
  bool is_pointer = false;
};

class Resolver {
 public:
  Resolver(Environment& environment, const CompileOptions& options, Arena& arena);

  Types& types() { return types_; }
  Arena& arena() { return arena_; }
  const CompileOptions& options() const { return options_; }
  std::uint32_t string_size() const { return options_.string_size; }

  Checked<void> declare(const Declaration& declaration);
  Checked<void> define_inline(const InlineNode& node);
  Checked<void> define_translator(const TranslatorNode& node);
  Checked<void> declare_provider(const ProviderNode& node);
  /// `attributes` and `binding`; depends_on is the compilation's.
  Checked<void> pragma(const PragmaNode& node);
  /// Complains about a pragma for a name that nobody declared.
  Checked<void> check_unused_pragmas() const;
  bool has_provider(std::string_view name) const { return providers_.contains(std::string(name)); }
  /// Inlines may grow anew: each declaration and clause has a bound of its own.
  void begin_external() { clones_ = 0; }
  /// Sets the probes that args[] is typed by, until the next call.
  void enter_clause(std::vector<dif::ProbeDescription> probes);

  /// Types `e` and everything below it. What xlate<T *> gives has no value: D_CG_DYN, or the tag.
  Checked<void> resolve(Expr* e, std::string_view dynamic_tag = "D_CG_DYN");
  /// The same, but leaves e->translation set for a caller that looks at it.
  Checked<void> resolve_dynamic(Expr* e);
  /// resolve(), and complains with the tag unless it is an integer known now.
  Checked<std::int64_t> constant(Expr* e, std::string_view what,
                                 std::string_view tag = "D_DECL_ENCONST");
  /// The same, and complains unless it can be a condition.
  Checked<void> condition(Expr* e);
  /// Whether `e` names a variable that nothing has declared yet.
  bool names_unknown(const Expr& e);
  /// Declares the variables that assignments in `e` define, for who names them before `e` is
  /// resolved. Complains about nothing: resolve() will.
  void define(Expr* e);
  /// A 64-bit clause-local variable with a name that no program can write.
  Checked<const Symbol*> hidden_local(const std::string& name);
  /// How a value of e's type travels; complains about types that cannot.
  Checked<dif::ValueType> value_type(const Expr& e) const;

  /// The least of the attributes of all names that were resolved since it was last asked.
  dif::Attributes take_attributes() { return std::exchange(attributes_, dif::Attributes{}); }
  /// From here on, @name can be named.
  void declare_aggregation(const std::string& name) { aggregations_.insert(name); }
  /// What of the guest's kernel went into what was resolved since forget_kernel_uses().
  std::vector<dif::KernelNeed> kernel_needs();
  void forget_kernel_uses();

  /// Takes note of a use of an action or aggregating function.
  Checked<void> note_function(std::string_view name, const Location& at);

 private:
  // resolve_types.cc
  Checked<TypeId> spec_type(TypeSpec& spec);
  Checked<TypeId> base_type(const TypeSpec& spec);
  Checked<TypeId> integer_type(const TypeSpec& spec);
  Checked<TypeId> struct_type(TypeSpec& spec);
  Checked<TypeId> enum_type(const TypeSpec& spec);
  Checked<TypeId> tag_type(TypeKind kind, const TypeSpec& spec);
  struct Layout {
    std::vector<Member> members;
    std::unordered_set<std::string> names;  // also those of anonymous members' members
    std::uint64_t bits = 0, size = 0, align = 1;
    bool is_union = false;
  };
  Checked<void> add_members(Layout& layout, const Declaration& declaration);
  Checked<void> add_member(Layout& layout, const Declarator& declarator, TypeId type);
  Checked<std::uint64_t> place_bit_field(const Declarator& declarator, TypeId type,
                                         std::uint64_t& at);
  bool take_names(Layout& layout, TypeId type, int depth = 0) const;
  std::uint64_t alignment(TypeId type, int depth = 0);

  // resolve_declarations.cc
  enum class Unsized : std::uint8_t { Refused, Allowed };  // int x[]
  Checked<TypeId> apply(TypeId base, const Declarator& declarator, bool keys_allowed = false,
                        Unsized unsized = Unsized::Allowed);
  Checked<TypeId> array_type(TypeId base, const Declarator& declarator, const Derivation& step,
                             Unsized unsized);
  Checked<TypeId> function_type(TypeId result, const Derivation& step, const Location& at);
  Checked<TypeId> type_name(Declaration& declaration);
  Checked<void> declare_typedef(const Declarator& declarator, TypeId base);
  Checked<void> declare_variable(const TypeSpec& spec, const Declarator& declarator, TypeId base);
  Checked<std::vector<TypeId>> key_types(const Declarator& declarator);
  Checked<void> check_inline(const InlineNode& node, Symbol& symbol);

  // resolve_names.cc
  /// Null also where the program asks for a D that does not have it yet.
  Symbol* find(Scope scope, const std::string& name);
  /// A variable or function of the D that the program asks for: no name for a variable of its own.
  bool is_of_d(const std::string& name) const;
  Checked<Symbol*> add_variable(Scope scope, const std::string& name, const Location& at);
  Checked<void> name(Expr* e);
  Checked<bool> builtin(Expr* e);
  Checked<void> scoped(Expr* e);
  Checked<void> kernel_symbol(Expr* e, bool address_only);
  Checked<void> cast_symbol(Expr* e, TypeId to);
  Checked<void> index(Expr* e);
  Checked<void> undeclared_array(const Expr& base);
  Checked<void> args_index(Expr* e);
  Checked<void> register_index(Expr* e);
  Checked<void> translated_argument(Expr* e, const ProbeSignature& known, std::uint64_t position);
  Checked<void> associative_index(Expr* e, Symbol* array);
  Checked<void> keys(Expr* e, Symbol* array);
  TypeId builtin_type(dif::BuiltinType type) const;

  // resolve_translators.cc
  using Bindings = std::unordered_map<std::string, Expr*>;
  Expr* clone(const Expr& e, const Location* at, const Bindings& bindings);
  Checked<Expr*> copy(const Expr& e, const Location& at, const Bindings& bindings,
                      std::string_view what);
  Expr* placeholder(TypeId type, const Location& at);
  Expr* converted(Expr* value, TypeId type);
  Checked<std::pair<Expr*, Expr*>> evaluate_once(Expr* e);
  Checked<void> become(Expr* e, Expr* value, TypeId type);
  Checked<void> inline_value(Expr* e, const Symbol& symbol);
  Checked<void> inline_index(Expr* e, const Symbol& symbol);
  Checked<void> check_conversion(const Translator& translator,
                                 const TranslatorNode::MemberValue& m);
  const Translator* find_translator(TypeId output, TypeId input) const;
  Checked<void> translate(Expr* e);
  Checked<void> translated_member(Expr* e);
  Checked<void> materialize(Expr* e);

  // resolve_pragmas.cc
  Checked<void> note(const dif::Attributes& attributes, std::string_view name, const Location& at);
  Checked<void> check_parameters(const Derivation& list);
  bool is_hidden(std::string_view name) const;
  void apply_pragmas(Symbol& symbol);

  // resolve_operators.cc
  Checked<void> unary(Expr* e);
  Checked<void> address_of(Expr* e);
  Checked<void> step(Expr* e);
  const Expr* undeclared(const Expr& target);
  Checked<void> declare_written(const Expr& target, TypeId type, const Location& at);
  Checked<void> keep_keys(Expr* e, Expr* target);
  Checked<void> binary(Expr* e);
  Checked<void> incompatible(const Expr* e) const;
  Checked<void> additive(Expr* e);
  bool is_null(const Expr& e) const;
  Checked<void> comparison(Expr* e);
  Checked<void> assign(Expr* e);
  Checked<void> assign_new(Expr* e);
  Checked<void> compound(Expr* e);
  Checked<void> check_assignable(const Expr& e, TypeId to, const Expr& from);
  static bool has_writable_text(const Expr& text);
  Checked<void> writable(const Expr& e, const Expr& target);
  Checked<void> conditional(Expr* e);

  // resolve_constants.cc
  Checked<void> fold(Expr* e);

  // resolve.cc
  Checked<void> call(Expr* e);
  Checked<void> action(Expr* e);
  Checked<void> aggregation(Expr* e);
  Checked<void> argument(const Expr& call, std::size_t position, dif::ArgumentKind kind);
  Checked<void> member(Expr* e);
  Checked<void> cast(Expr* e);
  Checked<void> size_of(Expr* e);
  Checked<void> offset_of(Expr* e);
  Checked<void> string_of(Expr* e);
  Checked<void> dispatch(Expr* e);

  Environment& environment_;
  const CompileOptions& options_;
  Arena& arena_;
  Types types_;
  std::deque<Symbol> symbols_;
  std::array<std::unordered_map<std::string, Symbol*>, 3> scopes_;
  std::array<std::uint16_t, 3> next_id_{dif::kFirstUserVariable, dif::kFirstUserVariable,
                                        dif::kFirstUserVariable};
  std::unordered_set<std::string> aggregations_;  // that were assigned
  std::unordered_map<std::string, TypeId> typedefs_;
  std::unordered_map<std::string, TypeId> externs_;  // arrays of the kernel, of unknown length
  std::map<std::pair<TypeKind, std::string>, TypeId> tags_;
  std::unordered_map<std::uint32_t, std::uint64_t> alignments_;  // of structs and unions
  std::unordered_map<std::string, std::pair<TypeId, std::int64_t>> enumerators_;
  std::deque<Translator> translators_;
  std::deque<Translation> translations_;
  std::unordered_map<std::string, dif::ProviderAttributes> providers_;
  struct PendingPragma {
    Location at;
    std::optional<dif::Attributes> attributes;
    std::optional<Version> binding;
  };
  std::map<std::string, PendingPragma> pending_;  // for names that are not declared yet
  std::unordered_map<std::string, Version> bindings_;
  dif::Attributes attributes_;
  std::set<std::string> used_symbols_, used_prototypes_;  // the modules whose they are
  std::vector<dif::ProbeDescription> probes_;
  std::optional<Checked<ProbeSignature>> signature_;
  Checked<ProbeSignature> signature(const Location& at);
  std::vector<std::string_view> first_assigned_;  // names that = was to declare in this clause
  std::size_t clones_ = 0;
  std::size_t hidden_variables_ = 0;
  int depth_ = 0;  // of resolve_dynamic() in itself
};

/// The name of what stands in a clause and gives no value: an action or an aggregating function.
bool is_action(std::string_view name);
/// That, or the name of a subroutine of dtrace: no name for a variable.
bool is_function_name(std::string_view name);

/// The operator as D writes it, for messages.
std::string_view op_text(Op op);

}  // namespace ringside::d
