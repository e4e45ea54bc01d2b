// Runs lexer and grammar over a program.
#include "dif/d/syntax/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "dif/d/syntax/parse_context.h"

int ringside_d_parse(void* scanner, ringside::d::ParseContext& context,
                     ringside::d::NodeMaker& nodes);
int ringside_d_lex_init_extra(ringside::d::ParseContext* extra, void** scanner);
int ringside_d_lex_destroy(void* scanner);
// NOLINTNEXTLINE(bugprone-reserved-identifier): flex puts its prefix before its own underscore.
struct yy_buffer_state* ringside_d__scan_bytes(const char* bytes, int length, void* scanner);

namespace ringside::d {
namespace {

/// Copies of inlines count too (resolve.cc), so this is far above what people write.
constexpr std::size_t kMaxSource = 16 << 20;

constexpr auto kDeclarationWords = std::to_array<std::string_view>(
    {"auto",    "char",   "const",    "double",   "enum",     "extern",   "float",
     "inline",  "int",    "long",     "provider", "register", "restrict", "self",
     "short",   "signed", "static",   "string",   "struct",   "this",     "translator",
     "typedef", "union",  "unsigned", "userland", "void",     "volatile"});

}  // namespace

bool ParseContext::starts_declaration(std::string_view run) const {
  const auto in_name = [](char c) { return is_word(c) || c == '`'; };
  const auto end = std::find_if_not(run.begin(), run.end(), in_name);
  const std::string_view word = run.substr(0, static_cast<std::size_t>(end - run.begin()));
  const bool whole = end == run.end() || *end == '*';  // int*x
  if (!whole || run.find(':') != std::string_view::npos) return false;
  if (std::ranges::find(kDeclarationWords, word) != kDeclarationWords.end()) return true;
  if (!state.is_type_name(word) && !state.is_scoped_type(word)) return false;
  // A typedef of the guest may be called like a probe; only a declaration goes on with a name.
  return end != run.end() || state.cursor.name_follows();
}

Checked<void> parse(std::string_view source, int file, CompileOptions& options,
                    const TypeGraph& types, std::unordered_set<std::string>& type_names,
                    Tree& tree) {
  Location start;
  start.file = file;
  if (source.size() > kMaxSource) {
    return complain("D_SYNTAX", start, "program is longer than 16 megabytes");
  }
  ParseContext context{{options, types, tree, type_names, SourceCursor(source, start), {}}};
  void* scanner = nullptr;
  if (ringside_d_lex_init_extra(&context, &scanner) != 0) {
    return complain("D_UNKNOWN", start, "no memory to read the program");
  }
  ringside_d__scan_bytes(source.data(), static_cast<int>(source.size()), scanner);
  const int status = ringside_d_parse(scanner, context, context.nodes);
  ringside_d_lex_destroy(scanner);
  if (status != 0) context.state.stop("D_SYNTAX", "program is too deeply nested");
  if (!context.state.error && file == 0) context.values.check_unused_arguments();
  if (context.state.error) return tl::make_unexpected(std::move(*context.state.error));
  return {};
}

Checked<dif::ProbeDescription> parse_description(const ProbePattern& pattern,
                                                 CompileOptions::Specifier specifier) {
  std::vector<std::string> fields(1);
  int brackets = 0;
  for (const char c : *pattern.text) {
    if (c == '[') ++brackets;
    if (c == ']' && brackets > 0) --brackets;
    if (c == ':' && brackets == 0) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  constexpr std::size_t kMost = 5;
  std::size_t last = 3;  // where the rightmost field goes
  if (specifier == CompileOptions::Specifier::Function) last = 2;
  if (specifier == CompileOptions::Specifier::Module) last = 1;
  if (specifier == CompileOptions::Specifier::Provider) last = 0;
  if (fields.size() > kMost) {
    return complain("D_PDESC_INVAL", pattern.at,
                    fmt::format("invalid probe description \"{}\": it has more than four fields, "
                                "and one before them for the machine",
                                *pattern.text));
  }
  dif::ProbeDescription result;
  if (fields.size() == kMost) {
    result.machine = std::move(fields.front());
    fields.erase(fields.begin());
  }
  // A full description is one whatever the option's name.
  const std::size_t first = fields.size() > last + 1 ? 0 : last + 1 - fields.size();
  std::string* const places[] = {&result.provider, &result.module, &result.function, &result.name};
  for (std::size_t i = 0; i < fields.size(); ++i) *places[first + i] = std::move(fields[i]);
  return result;
}

}  // namespace ringside::d
