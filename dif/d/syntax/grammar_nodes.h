// Shared by the grammar's actions: they make nodes of the tree from the pieces of a rule. Used by
// grammar.y only.
// Does not: judge what was built; that is resolve.cc's.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/parse_context.h"

namespace ringside::d {

template <class T>
T* make(ParseContext& context, T value = {}) {
  return context.tree.arena.make(std::move(value));
}

inline TypeSpec* spec_word(ParseContext& context, const Location& at, TypeSpec word) {
  word.at = at;
  return make(context, std::move(word));
}

inline TypeSpec* base_word(ParseContext& context, const Location& at, TypeSpec::Base base) {
  TypeSpec word;
  word.base = base;
  return spec_word(context, at, std::move(word));
}

inline TypeSpec* storage_word(ParseContext& context, const Location& at, Storage storage) {
  TypeSpec word;
  word.storage = storage;
  return spec_word(context, at, std::move(word));
}

inline Declaration* one(ParseContext& context, TypeSpec* spec, Declarator* declarator) {
  if (declarator == nullptr) declarator = make<Declarator>(context, {.at = spec->at});
  return make<Declaration>(context, {.at = spec->at, .spec = spec, .declarators = {declarator}});
}

template <class T>
std::vector<T>* append(std::vector<T>* list, const std::type_identity_t<T>& item) {
  list->push_back(item);
  return list;
}

inline Statement* if_statement(ParseContext& context, Expr* condition,
                               std::vector<Statement*>* then_body,
                               std::vector<Statement*>* else_body) {
  Statement node{.kind = Statement::Kind::If, .at = condition->at, .expression = condition};
  for (const auto* body : {then_body, else_body}) {
    if (body == nullptr) continue;
    for (const Statement* inner : *body) node.depth = std::max(node.depth, inner->depth + 1);
  }
  node.then_body = *then_body;
  if (else_body != nullptr) node.else_body = *else_body;
  context.too_deep(node.depth, condition->at);
  return make(context, std::move(node));
}

/// for and while; a missing part is null.
inline Statement* loop(ParseContext& context, Statement parts,
                       const std::vector<Statement*>& body) {
  parts.kind = Statement::Kind::Loop;
  for (const Statement* inner : body) parts.depth = std::max(parts.depth, inner->depth + 1);
  parts.then_body = body;
  context.too_deep(parts.depth, parts.at);
  return make(context, std::move(parts));
}

}  // namespace ringside::d
