// The syntax tree of a D program, and the arena that owns it. The parser builds it, resolve.cc
// fills in types and identifiers, codegen.cc reads it.
// Nodes are plain data, linked by pointers into the arena; every node knows its depth, so that a
// hostile program meets a limit instead of the end of the stack.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "dif/d/syntax/diagnostic.h"
#include "dif/program/program.h"
#include "vmm/base/c_type.h"

namespace ringside::d {

/// A variable that the compiler makes to keep a value. No program can name it.
inline bool is_hidden_name(std::string_view name) {
  return name.starts_with('%');
}

enum class Op : std::uint8_t {
  Mul,
  Div,
  Mod,
  Add,
  Sub,
  Shl,
  Shr,
  Lt,
  Le,
  Gt,
  Ge,
  Eq,
  Ne,
  BitAnd,
  BitXor,
  BitOr,  // binary
  And,
  Xor,
  Or,  // logical
  Plus,
  Neg,
  BitNot,
  Not,
  Deref,
  AddressOf,
  PreInc,
  PreDec,
  PostInc,
  PostDec,  // unary
};

enum class ExprKind : std::uint8_t {
  Integer,       // value, type
  String,        // text
  Decimal,       // text: a floating-point constant, which percentile() alone takes
  Name,          // text: a global variable, built-in, inline or enumerator
  Scoped,        // scope, text: self->x, this->x
  KernelSymbol,  // module, text
  Aggregation,   // text, list: the keys
  Unary,         // op a
  Binary,        // a op b
  Assign,        // a = b, or a op= b when compound
  Conditional,   // a ? b : c
  Comma,         // a, b
  Call,          // text, list
  Index,         // a [list]
  Member,        // a . text
  Arrow,         // a -> text
  Cast,          // (type_name) a
  SizeofType,    // type_name
  SizeofExpr,    // a
  Offsetof,      // type_name, text
  Stringof,      // a
  Xlate,         // type_name, a
};

enum class Scope : std::uint8_t { Global, Thread, Clause };

struct Expr;
struct TypeSpec;
struct Identifier;                // identifier_table.h
struct Xlate;                     // translators.h
using Text = const std::string*;  // owned by the arena
using ExprList = std::vector<Expr*>;

struct Declaration;

/// One step outward from a declared name: `*`, [4], [int, string], (int).
struct Derivation {
  enum class Kind : std::uint8_t { Pointer, Array, Keys, Function } kind = Kind::Pointer;
  Expr* count = nullptr;                            // Array; null: []
  std::vector<Declaration*>* parameters = nullptr;  // Keys, Function
  bool variadic = false;                            // Function
};

/// A name with the derivations around it, from the name outward.
struct Declarator {
  Location at;
  Text name = nullptr;  // null in an abstract declarator
  std::vector<Derivation> derivations = {};
  Expr* bit_width = nullptr;
};

enum class Storage : std::uint8_t { None, Typedef, Extern, Static, Auto, Register, Thread, Clause };

struct EnumeratorSpec {
  Location at;
  Text name = nullptr;
  Expr* value = nullptr;
};

/// The specifiers of a declaration: storage class, qualifiers and the words of the type.
struct TypeSpec {
  enum class Base : std::uint8_t {
    None,
    Void,
    Char,
    Int,
    Float,
    Double,
    String,
    Named,
    Struct,
    Union,
    Enum,
  };
  Location at;
  Storage storage = Storage::None;
  Base base = Base::None;
  bool is_signed = false, is_unsigned = false, is_short = false, is_userland = false;
  bool is_const = false, is_volatile = false, is_restrict = false;
  bool repeats = false;  // a word for sign or size stands twice
  int longs = 0;
  Text name = nullptr;                           // Named, or the tag
  Text scope = nullptr;                          // of D`name: D, C or a kernel's module
  bool is_definition = false;                    // Struct, Union, Enum with a body
  std::vector<Declaration*>* members = nullptr;  // Struct, Union
  std::vector<EnumeratorSpec>* enumerators = nullptr;
  int depth = 1;
  std::optional<TypeId> resolved;  // several declarators share one type
};

struct Declaration {
  Location at;
  TypeSpec* spec = nullptr;
  std::vector<Declarator*> declarators = {};  // a parameter or type name has exactly one
};

struct Expr {
  ExprKind kind = ExprKind::Integer;
  Op op = Op::Add;
  bool compound = false;
  Scope scope = Scope::Global;
  Location at;
  int depth = 1;
  Text text = nullptr, module = nullptr;
  Expr *a = nullptr, *b = nullptr, *c = nullptr;
  ExprList list;
  Declaration* type_name = nullptr;

  // Filled by resolve.cc.
  TypeId type;
  std::optional<std::uint64_t> constant;  // an integer known now: 64 bits, whatever `type` holds
  bool late = false;    // and of the kernel that it is compiled for: another one has its own
  bool is_own = false;  // Integer: $target where each machine has another one
  bool is_lvalue = false;
  Identifier* identifier = nullptr;  // Name, Scoped, Call, Index of an associative array
  FoundMember member = {};           // Member, Arrow
  TypeId container;           // Member, Arrow, Offsetof: the structure. Sizeof: what is measured.
                              // Name of an enumerator: the enum. KernelSymbol: its type where the
                              // kernel says it
  std::uint64_t address = 0;  // KernelSymbol, args[]
  bool is_native = false;     // args[n] as the probe has it, from which a translated one is made
  const Xlate* translation = nullptr;  // the value exists only member by member
};

struct Statement {
  enum class Kind : std::uint8_t {
    Expression,
    If,        // expression: the condition
    Loop,      // for and while. expression: the condition, null where a for has none
    Break,     // out of the innermost loop
    Continue,  // on with it
  } kind = Kind::Expression;
  Location at = {};
  Expr* expression = nullptr;
  Expr *init = nullptr, *step = nullptr, *limit = nullptr;  // Loop: each may be null
  int depth = 1;
  std::vector<Statement*> then_body = {}, else_body = {};  // a loop's body is then_body
};

struct ProbePattern {
  Location at;
  Text text = nullptr;  // macros already replaced
};

struct ClauseNode {
  Location at;
  std::vector<ProbePattern> probes;
  Expr* predicate = nullptr;
  std::vector<Statement*> body = {};
  /// Made by desugar(): the last clause of a loop says which of the clauses it made is the loop's
  /// first, and how often the firing may go back there.
  std::optional<dif::Repeat> repeat = {};
};

struct InlineNode {
  Location at;
  TypeSpec* spec = nullptr;
  Declarator* declarator = nullptr;
  Expr* value = nullptr;
};

/// translator output < input name > { member = value; ... };
struct TranslatorNode {
  struct MemberValue {
    Location at;
    Text name = nullptr;
    Expr* value = nullptr;
  };
  Location at;
  Declaration* output = nullptr;  // a type name
  Declaration* input = nullptr;   // one declarator, with a name
  std::vector<MemberValue> members = {};
};

/// = places /condition/ { body } -> places /condition/ { body } word "text", "text" ...
struct ProbeDefinitionNode {
  struct Part {
    Location at;
    std::vector<ProbePattern> places;  // the first counts that the kernel has
    Expr* condition = nullptr;
    std::vector<Statement*> body = {};
  };
  struct Qualifier {
    Location at;
    Text word = nullptr;
    std::vector<Text> texts = {};
  };
  std::vector<Part> parts = {};  // a beginning comes before the end; none: there is no such place
  std::vector<Qualifier> qualifiers = {};
};

/// provider name { probe n(T a, ...) : (U b, ...) = ...; ... } word "text", ... ;
struct ProviderNode {
  struct Probe {
    Location at;
    Text name = nullptr;
    Derivation native, translated;
    bool has_translated = false;
    ProbeDefinitionNode* definition = nullptr;  // null: it is only declared
  };
  Location at;
  Text name = nullptr;
  std::vector<Probe> probes = {};
  std::vector<ProbeDefinitionNode::Qualifier> qualifiers = {};  // of each probe that has a place
};

/// #pragma D attributes, binding, depends_on, and the words after that.
struct PragmaNode {
  Location at;
  std::string_view directive;  // a literal
  std::vector<std::string> words = {};
};

using External = std::variant<Declaration*, InlineNode*, ClauseNode*, TranslatorNode*,
                              ProviderNode*, PragmaNode*>;

/// Owns every node of one compilation.
class AstArena {
 public:
  template <class T>
  T* make(T value = {}) {
    auto& pool = std::get<std::deque<T>>(pools_);
    pool.push_back(std::move(value));
    return &pool.back();
  }

 private:
  std::tuple<std::deque<Expr>, std::deque<std::string>, std::deque<ExprList>,
             std::deque<Declarator>, std::deque<Derivation>, std::deque<TypeSpec>,
             std::deque<Declaration>, std::deque<std::vector<Declaration*>>,
             std::deque<std::vector<Declarator*>>, std::deque<std::vector<EnumeratorSpec>>,
             std::deque<Statement>, std::deque<std::vector<Statement*>>, std::deque<ClauseNode>,
             std::deque<std::vector<ProbePattern>>, std::deque<InlineNode>,
             std::deque<TranslatorNode>, std::deque<ProviderNode>, std::deque<PragmaNode>,
             std::deque<std::vector<TranslatorNode::MemberValue>>,
             std::deque<std::vector<ProviderNode::Probe>>, std::deque<ProbeDefinitionNode>,
             std::deque<std::vector<ProbeDefinitionNode::Part>>,
             std::deque<std::vector<ProbeDefinitionNode::Qualifier>>, std::deque<std::vector<Text>>>
      pools_;
};

// Expressions that are not in the source, made of existing parts. The parser's own, whose depth is
// limited, come from NodeMaker.

inline Expr* make_node(AstArena& arena, ExprKind kind, const Location& at, Expr* a = nullptr,
                       Expr* b = nullptr) {
  Expr node;
  node.kind = kind;
  node.at = at;
  node.a = a;
  node.b = b;
  return arena.make(std::move(node));
}

/// this->name
inline Expr* make_clause_local(AstArena& arena, Text name, const Location& at) {
  Expr* node = make_node(arena, ExprKind::Scoped, at);
  node->scope = Scope::Clause;
  node->text = name;
  return node;
}

/// (first, then), of the type that `then` has where it is resolved.
inline Expr* make_comma(AstArena& arena, const Location& at, Expr* first, Expr* then) {
  Expr* node = make_node(arena, ExprKind::Comma, at, first, then);
  node->type = then->type;
  node->translation = then->translation;
  return node;
}

/// Evaluates to the same value twice running, with no effect.
inline bool is_pure(const Expr& e) {
  const bool steps = e.kind == ExprKind::Unary && e.op >= Op::PreInc;
  if (e.kind == ExprKind::Assign || e.kind == ExprKind::Call || steps) return false;
  for (const Expr* part : {e.a, e.b, e.c}) {
    if (part != nullptr && !is_pure(*part)) return false;
  }
  return std::ranges::all_of(e.list, [](const Expr* part) { return is_pure(*part); });
}

/// The result of parsing.
struct Tree {
  AstArena arena;
  std::vector<External> externals;  // in source order
  struct Option {                   // #pragma D option name=value
    Location at;
    std::string name, value;
  };
  std::vector<Option> options;
};

}  // namespace ringside::d
