// Names and types: gives every expression its type, its constant value where it has one, and the
// symbol it names. D's variables are declared by their first assignment, so clauses are resolved
// in program order.
// In four files: resolve_types.cc (declarations), resolve_names.cc (symbols, args[]),
// resolve_operators.cc, and resolve.cc (everything else).
// Fire context: no.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dif/builtin.h"
#include "dif/d/ast.h"
#include "dif/d/compile.h"
#include "dif/d/types.h"

namespace ringside::d {

/// What a name stands for.
struct Symbol {
  enum class Kind : std::uint8_t { Variable, Builtin, Inline, Subroutine } kind = Kind::Variable;
  std::string name;
  Scope scope = Scope::Global;
  std::uint16_t id = 0;
  TypeId type;
  bool is_associative = false;
  bool is_extern = false;    // declared for a kernel symbol
  std::vector<TypeId> keys;  // of an associative array
  Expr* value = nullptr;     // Inline
  std::optional<dif::SubroutineInfo> subroutine;
};

class Resolver {
 public:
  Resolver(Environment& environment, const CompileOptions& options, Arena& arena);

  Types& types() { return types_; }
  Arena& arena() { return arena_; }
  std::uint32_t string_size() const { return options_.string_size; }

  Checked<void> declare(const Declaration& declaration);
  Checked<void> define_inline(const InlineNode& node);
  /// Sets the probes that args[] is typed by, until the next call.
  void enter_clause(std::vector<dif::ProbeDescription> probes);

  /// Types `e` and everything below it.
  Checked<void> resolve(Expr* e);
  /// The same, and complains unless it is an integer known now.
  Checked<std::int64_t> constant(Expr* e, std::string_view what);
  /// The same, and complains unless it can be a condition.
  Checked<void> condition(Expr* e);
  /// How a value of e's type travels; complains about types that cannot.
  Checked<dif::ValueType> value_type(const Expr& e) const;

 private:
  // resolve_types.cc
  Checked<TypeId> spec_type(TypeSpec& spec);
  Checked<TypeId> base_type(const TypeSpec& spec);
  Checked<TypeId> struct_type(TypeSpec& spec);
  Checked<TypeId> enum_type(const TypeSpec& spec);
  Checked<TypeId> tag_type(TypeKind kind, const TypeSpec& spec);
  struct Layout {
    std::vector<Member> members;
    std::uint64_t bits = 0, size = 0, align = 1;
    bool is_union = false;
  };
  Checked<void> add_member(Layout& layout, const Declarator& declarator, TypeId type);
  std::uint64_t alignment(TypeId type, int depth = 0) const;
  Checked<TypeId> apply(TypeId base, const Declarator& declarator, bool keys_allowed = false);
  Checked<TypeId> function_type(TypeId result, const Derivation& step);
  Checked<TypeId> type_name(Declaration& declaration);
  Checked<void> declare_variable(const TypeSpec& spec, const Declarator& declarator, TypeId base);

  // resolve_names.cc
  Symbol* find(Scope scope, const std::string& name);
  Symbol* add_variable(Scope scope, const std::string& name);
  Checked<void> name(Expr* e);
  Checked<void> scoped(Expr* e);
  Checked<void> kernel_symbol(Expr* e, bool address_only);
  Checked<void> index(Expr* e);
  Checked<void> args_index(Expr* e);
  Checked<void> associative_index(Expr* e, Symbol* array);
  Checked<void> keys(Expr* e, Symbol* array);
  Checked<void> inline_value(Expr* e, const Symbol& symbol);
  Expr* clone(const Expr& e, const Location& at);
  TypeId builtin_type(dif::BuiltinType type) const;

  // resolve_operators.cc
  Checked<void> unary(Expr* e);
  Checked<void> address_of(Expr* e);
  Checked<void> step(Expr* e);
  Checked<void> binary(Expr* e);
  Checked<void> additive(Expr* e);
  Checked<void> comparison(Expr* e);
  Checked<void> assign(Expr* e);
  Checked<void> assign_new(Expr* e);
  Checked<void> check_assignable(const Expr& e, TypeId to, const Expr& from);
  Checked<void> writable(const Expr& e, const Expr& target);
  Checked<void> conditional(Expr* e);
  Checked<void> fold(Expr* e);

  // resolve.cc
  Checked<void> call(Expr* e);
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
  std::unordered_map<std::string, TypeId> typedefs_;
  std::map<std::pair<TypeKind, std::string>, TypeId> tags_;
  std::unordered_map<std::string, std::pair<TypeId, std::int64_t>> enumerators_;
  std::vector<dif::ProbeDescription> probes_;
  std::optional<Checked<ProbeSignature>> signature_;
  Checked<ProbeSignature> signature(const Location& at);
  std::size_t clones_ = 0;
};

/// The operator as D writes it, for messages.
std::string_view op_text(Op op);

}  // namespace ringside::d
