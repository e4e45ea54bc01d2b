#include "dif/d/syntax/node_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace ringside::d {
namespace {

constexpr std::size_t kMaxDerivations = 32;

}  // namespace

bool NodeMaker::too_deep(int depth, const Location& at) {
  if (depth <= kMaxDepth) return false;
  state_.stop("D_SYNTAX", at, fmt::format("nesting is deeper than {} levels", kMaxDepth));
  return true;
}

Expr* NodeMaker::expr(ExprKind kind, const Location& at, Expr* a, Expr* b, Expr* c) {
  Expr node;
  node.kind = kind;
  node.at = at;
  node.a = a;
  node.b = b;
  node.c = c;
  for (const Expr* part : {a, b, c}) {
    if (part != nullptr) node.depth = std::max(node.depth, part->depth + 1);
  }
  if (too_deep(node.depth, at)) return nullptr;
  return state_.tree.arena.make(std::move(node));
}

Expr* NodeMaker::unary(Op op, const Location& at, Expr* a) {
  Expr* node = expr(ExprKind::Unary, at, a);
  if (node != nullptr) node->op = op;
  return node;
}

/// Generated predicates have chains of thousands. The order of the operands is all that matters, so
/// the sides of a long chain are kept about equally deep, and what walks the tree stays shallow.
Expr* NodeMaker::chained(Op op, const Location& at, Expr* chain, Expr* last) {
  constexpr int kShortChain = 16;  // as it is written, so that messages name the nearest operator
  const bool grows = chain->kind == ExprKind::Binary && chain->op == op &&
                     chain->depth >= kShortChain && chain->b->depth < chain->a->depth;
  if (!grows) return expr(ExprKind::Binary, at, chain, last);
  Expr* const right = binary(op, at, chain->b, last);
  if (right == nullptr) return nullptr;
  chain->b = right;
  chain->depth = std::max(chain->depth, right->depth + 1);
  return chain;
}

Expr* NodeMaker::binary(Op op, const Location& at, Expr* a, Expr* b) {
  const bool logical = op == Op::And || op == Op::Or || op == Op::Xor;
  Expr* node = logical ? chained(op, at, a, b) : expr(ExprKind::Binary, at, a, b);
  if (node != nullptr) node->op = op;
  return node;
}

Expr* NodeMaker::assign(const Location& at, Expr* a, Expr* b, std::optional<Op> op) {
  Expr* node = expr(ExprKind::Assign, at, a, b);
  if (node == nullptr) return nullptr;
  node->compound = op.has_value();
  node->op = op.value_or(Op::Add);
  return node;
}

Expr* NodeMaker::call(const Location& at, const Expr& function, ExprList* list) {
  if (function.kind == ExprKind::Aggregation || function.kind == ExprKind::KernelSymbol) {
    const std::string_view sign = function.kind == ExprKind::Aggregation ? "@" : "";
    state_.stop("D_FUNC_UNDEF", at,
                fmt::format("undefined function name: {}{}", sign, *function.text));
    return nullptr;
  }
  if (function.kind != ExprKind::Name) {
    state_.stop("D_FUNC_IDENT", at, "function designator is not of function type");
    return nullptr;
  }
  Expr* node = expr(ExprKind::Call, at);
  if (node == nullptr) return nullptr;
  node->text = function.text;
  node->list = *list;
  for (const Expr* argument : *list) node->depth = std::max(node->depth, argument->depth + 1);
  return too_deep(node->depth, at) ? nullptr : node;
}

Expr* NodeMaker::index(const Location& at, Expr* base, ExprList* list) {
  // The keys of an aggregation belong to its name.
  const bool keys = base->kind == ExprKind::Aggregation && base->list.empty();
  Expr* node = keys ? base : expr(ExprKind::Index, at, base);
  if (node == nullptr) return nullptr;
  node->list = *list;
  for (const Expr* key : *list) node->depth = std::max(node->depth, key->depth + 1);
  return too_deep(node->depth, at) ? nullptr : node;
}

Derivation* NodeMaker::derivation(Derivation::Kind kind) {
  return state_.tree.arena.make(Derivation{.kind = kind});
}

bool NodeMaker::derive(Declarator* declarator, const Derivation& step) {
  if (declarator->derivations.size() == kMaxDerivations) {
    state_.stop("D_SYNTAX", declarator->at,
                "declaration has too many pointers, arrays or functions");
    return false;
  }
  declarator->derivations.push_back(step);
  return true;
}

TypeSpec* NodeMaker::merge(TypeSpec* into, TypeSpec* word) {
  if (word->storage != Storage::None) {
    if (into->storage != Storage::None) {
      state_.stop("D_DECL_CLASS", word->at, "only one storage class allowed in declaration");
      return nullptr;
    }
    into->storage = word->storage;
  }
  if (word->base != TypeSpec::Base::None) {
    if (into->base != TypeSpec::Base::None) {
      state_.stop("D_DECL_COMBO", word->at, "invalid type combination");
      return nullptr;
    }
    into->base = word->base;
    into->name = word->name;
    into->scope = word->scope;
    into->is_definition = word->is_definition;
    into->members = word->members;
    into->enumerators = word->enumerators;
    into->depth = word->depth;
  }
  into->repeats |= word->repeats || (into->is_signed && word->is_signed) ||
                   (into->is_unsigned && word->is_unsigned) || (into->is_short && word->is_short);
  into->is_signed |= word->is_signed;
  into->is_unsigned |= word->is_unsigned;
  into->is_short |= word->is_short;
  into->is_userland |= word->is_userland;
  into->is_const |= word->is_const;
  into->is_volatile |= word->is_volatile;
  into->is_restrict |= word->is_restrict;
  into->longs = std::min(into->longs + word->longs, 3);
  return into;
}

void NodeMaker::declare(Declaration* declaration) {
  if (declaration->spec->storage != Storage::Typedef) return;
  for (const Declarator* declarator : declaration->declarators) {
    state_.type_names.insert(*declarator->name);
  }
}

bool NodeMaker::define_tag(std::string_view word, Text name, const Location& at) {
  if (name == nullptr) return true;
  const std::string spelled = fmt::format("{} {}", word, *name);
  if (state_.type_names.insert(spelled).second) return true;
  state_.stop("D_DECL_TYPERED", at, fmt::format("type redeclared: {}", spelled));
  return false;
}

TypeSpec* NodeMaker::base_word(const Location& at, TypeSpec::Base base) {
  TypeSpec word;
  word.at = at;
  word.base = base;
  return make(word);
}

TypeSpec* NodeMaker::named_word(const Location& at, TypeSpec::Base base, std::string_view name) {
  TypeSpec* const word = base_word(at, base);
  const std::size_t tick = name.rfind('`');
  word->name = text(name.substr(tick + 1));  // npos + 1 is 0
  if (tick != std::string_view::npos) word->scope = text(name.substr(0, tick));
  return word;
}

TypeSpec* NodeMaker::storage_word(const Location& at, Storage storage) {
  TypeSpec word;
  word.at = at;
  word.storage = storage;
  return make(word);
}

Declaration* NodeMaker::one(TypeSpec* spec, Declarator* declarator) {
  if (declarator == nullptr) declarator = make<Declarator>({.at = spec->at});
  return make<Declaration>({.at = spec->at, .spec = spec, .declarators = {declarator}});
}

Statement* NodeMaker::if_statement(Expr* condition, std::vector<Statement*>* then_body,
                                   std::vector<Statement*>* else_body) {
  Statement node{.kind = Statement::Kind::If, .at = condition->at, .expression = condition};
  for (const auto* body : {then_body, else_body}) {
    if (body == nullptr) continue;
    for (const Statement* inner : *body) node.depth = std::max(node.depth, inner->depth + 1);
  }
  node.then_body = *then_body;
  if (else_body != nullptr) node.else_body = *else_body;
  too_deep(node.depth, condition->at);
  return make(std::move(node));
}

Statement* NodeMaker::loop(Statement parts, const std::vector<Statement*>& body) {
  parts.kind = Statement::Kind::Loop;
  for (const Statement* inner : body) parts.depth = std::max(parts.depth, inner->depth + 1);
  parts.then_body = body;
  too_deep(parts.depth, parts.at);
  return make(std::move(parts));
}

}  // namespace ringside::d
