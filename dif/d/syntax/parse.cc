// Runs lexer and grammar over a program, and builds the nodes that the grammar asks for.
// In this file: positions, errors, nodes with their nesting limit, and parse().
#include "dif/d/syntax/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dif/d/syntax/parse_context.h"

int ringside_d_parse(void* scanner, ringside::d::ParseContext& context);
int ringside_d_lex_init_extra(ringside::d::ParseContext* extra, void** scanner);
int ringside_d_lex_destroy(void* scanner);
// NOLINTNEXTLINE(bugprone-reserved-identifier): flex puts its prefix before its own underscore.
struct yy_buffer_state* ringside_d__scan_bytes(const char* bytes, int length, void* scanner);

namespace ringside::d {
namespace {

/// Copies of inlines count too (resolve.cc), so this is far above what people write.
constexpr std::size_t kMaxSource = 16 << 20;
constexpr std::size_t kMaxDerivations = 32;

constexpr auto kDeclarationWords = std::to_array<std::string_view>(
    {"auto",    "char",   "const",    "double",   "enum",     "extern",   "float",
     "inline",  "int",    "long",     "provider", "register", "restrict", "self",
     "short",   "signed", "static",   "string",   "struct",   "this",     "translator",
     "typedef", "union",  "unsigned", "userland", "void",     "volatile"});

}  // namespace

void ParseContext::advance(std::string_view text) {
  token = next;
  token_offset_ = offset;
  offset += text.size();
  for (const char c : text) {
    ++next.column;
    if (c != '\n') continue;
    ++next.line;
    ++next.source_line;
    next.column = 1;
  }
}

void ParseContext::rewind() {
  next = token;
  offset = token_offset_;
}

void ParseContext::stop(std::string_view tag, const Location& at, std::string text) {
  if (!error) error = Diagnostic{tag, std::move(text), at, false, {}, {}};
}

bool ParseContext::define_tag(std::string_view word, Text name, const Location& at) {
  if (name == nullptr) return true;
  const std::string spelled = fmt::format("{} {}", word, *name);
  if (type_names_.insert(spelled).second) return true;
  stop("D_DECL_TYPERED", at, fmt::format("type redeclared: {}", spelled));
  return false;
}

bool ParseContext::is_type_name(std::string_view name) const {
  if (type_names_.contains(std::string(name))) return true;
  return types.find(name).has_value();
}

bool ParseContext::name_follows() const {
  const std::size_t at = source.find_first_not_of(" \t\r\n", offset);
  return at != std::string_view::npos && (is_word(source[at]) || source[at] == '*');
}

bool ParseContext::starts_declaration(std::string_view run) const {
  const auto end = std::find_if_not(run.begin(), run.end(), is_word);
  const std::string_view word = run.substr(0, static_cast<std::size_t>(end - run.begin()));
  const bool whole = end == run.end() || *end == '*';  // int*x
  if (!whole || run.find(':') != std::string_view::npos) return false;
  if (std::ranges::find(kDeclarationWords, word) != kDeclarationWords.end()) return true;
  if (!is_type_name(word)) return false;
  // A typedef of the guest may be called like a probe; only a declaration goes on with a name.
  return end != run.end() || name_follows();
}

bool ParseContext::predicate_ends() const {
  std::size_t at = offset;
  while (at < source.size()) {
    if (std::string_view(" \t\r\n\f\v").find(source[at]) != std::string_view::npos) {
      ++at;
    } else if (source.substr(at, 2) == "/*") {
      const std::size_t end = source.find("*/", at + 2);
      if (end == std::string_view::npos) return true;
      at = end + 2;
    } else {
      return std::string_view("{;/").find(source[at]) != std::string_view::npos;
    }
  }
  return true;
}

bool ParseContext::too_deep(int depth, const Location& at) {
  if (depth <= kMaxDepth) return false;
  stop("D_SYNTAX", at, fmt::format("nesting is deeper than {} levels", kMaxDepth));
  return true;
}

Expr* ParseContext::expr(ExprKind kind, const Location& at, Expr* a, Expr* b, Expr* c) {
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
  return tree.arena.make(std::move(node));
}

Expr* ParseContext::unary(Op op, const Location& at, Expr* a) {
  Expr* node = expr(ExprKind::Unary, at, a);
  if (node != nullptr) node->op = op;
  return node;
}

Expr* ParseContext::binary(Op op, const Location& at, Expr* a, Expr* b) {
  Expr* node = expr(ExprKind::Binary, at, a, b);
  if (node != nullptr) node->op = op;
  return node;
}

Expr* ParseContext::assign(const Location& at, Expr* a, Expr* b, std::optional<Op> op) {
  Expr* node = expr(ExprKind::Assign, at, a, b);
  if (node == nullptr) return nullptr;
  node->compound = op.has_value();
  node->op = op.value_or(Op::Add);
  return node;
}

Expr* ParseContext::call(const Location& at, const Expr& function, ExprList* list) {
  if (function.kind == ExprKind::Aggregation || function.kind == ExprKind::KernelSymbol) {
    const std::string_view sign = function.kind == ExprKind::Aggregation ? "@" : "";
    stop("D_FUNC_UNDEF", at, fmt::format("undefined function name: {}{}", sign, *function.text));
    return nullptr;
  }
  if (function.kind != ExprKind::Name) {
    stop("D_FUNC_IDENT", at, "function designator is not of function type");
    return nullptr;
  }
  Expr* node = expr(ExprKind::Call, at);
  if (node == nullptr) return nullptr;
  node->text = function.text;
  node->list = *list;
  for (const Expr* argument : *list) node->depth = std::max(node->depth, argument->depth + 1);
  return too_deep(node->depth, at) ? nullptr : node;
}

Expr* ParseContext::index(const Location& at, Expr* base, ExprList* list) {
  // The keys of an aggregation belong to its name.
  const bool keys = base->kind == ExprKind::Aggregation && base->list.empty();
  Expr* node = keys ? base : expr(ExprKind::Index, at, base);
  if (node == nullptr) return nullptr;
  node->list = *list;
  for (const Expr* key : *list) node->depth = std::max(node->depth, key->depth + 1);
  return too_deep(node->depth, at) ? nullptr : node;
}

Derivation* ParseContext::derivation(Derivation::Kind kind) {
  return tree.arena.make(Derivation{.kind = kind});
}

bool ParseContext::derive(Declarator* declarator, const Derivation& step) {
  if (declarator->derivations.size() == kMaxDerivations) {
    stop("D_SYNTAX", declarator->at, "declaration has too many pointers, arrays or functions");
    return false;
  }
  declarator->derivations.push_back(step);
  return true;
}

TypeSpec* ParseContext::merge(TypeSpec* into, TypeSpec* word) {
  if (word->storage != Storage::None) {
    if (into->storage != Storage::None) {
      stop("D_DECL_CLASS", word->at, "only one storage class allowed in declaration");
      return nullptr;
    }
    into->storage = word->storage;
  }
  if (word->base != TypeSpec::Base::None) {
    if (into->base != TypeSpec::Base::None) {
      stop("D_DECL_COMBO", word->at, "invalid type combination");
      return nullptr;
    }
    into->base = word->base;
    into->name = word->name;
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

void ParseContext::declare(Declaration* declaration) {
  if (declaration->spec->storage != Storage::Typedef) return;
  for (const Declarator* declarator : declaration->declarators) {
    declare_type_name(*declarator->name);
  }
}

Checked<void> parse(std::string_view source, int file, CompileOptions& options,
                    const TypeGraph& types, std::unordered_set<std::string>& type_names,
                    Tree& tree) {
  Location start;
  start.file = file;
  if (source.size() > kMaxSource) {
    return complain("D_SYNTAX", start, "program is longer than 16 megabytes");
  }
  ParseContext context(source, options, types, tree, type_names);
  context.next = context.token = start;
  void* scanner = nullptr;
  if (ringside_d_lex_init_extra(&context, &scanner) != 0) {
    return complain("D_UNKNOWN", start, "no memory to read the program");
  }
  ringside_d__scan_bytes(source.data(), static_cast<int>(source.size()), scanner);
  const int status = ringside_d_parse(scanner, context);
  ringside_d_lex_destroy(scanner);
  if (status != 0) context.stop("D_SYNTAX", context.token, "program is too deeply nested");
  if (!context.error && file == 0) context.check_unused_arguments();
  if (context.error) return tl::make_unexpected(std::move(*context.error));
  return {};
}

}  // namespace ringside::d
