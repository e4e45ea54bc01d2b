// One compilation, phase by phase: parse, then for each declaration and clause in order resolve
// and emit.
#include "dif/d/compile.h"

#include <fmt/format.h>

#include <charconv>

#include "dif/d/actions.h"
#include "dif/d/desugar.h"
#include "dif/d/parse.h"

namespace ringside::d {
namespace {

/// Splits a description at its colons and aligns the fields as the specifier says.
Checked<dif::ProbeDescription> describe(const ProbePattern& pattern,
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
  std::size_t last = 3;  // where the rightmost field goes
  if (specifier == CompileOptions::Specifier::Function) last = 2;
  if (specifier == CompileOptions::Specifier::Module) last = 1;
  if (specifier == CompileOptions::Specifier::Provider) last = 0;
  if (fields.size() > 4) {
    return complain("D_PDESC_INVAL", pattern.at,
                    fmt::format("invalid probe description \"{}\": it has more than four fields",
                                *pattern.text));
  }
  // A full description is one whatever the option's name.
  const std::size_t first = fields.size() > last + 1 ? 0 : last + 1 - fields.size();
  dif::ProbeDescription result;
  std::string* const places[] = {&result.provider, &result.module, &result.function, &result.name};
  for (std::size_t i = 0; i < fields.size(); ++i) *places[first + i] = std::move(fields[i]);
  return result;
}

class Compilation {
 public:
  Compilation(Tree& tree, const CompileOptions& options, Environment& environment)
      : tree_(tree),
        options_(options),
        environment_(environment),
        resolver_(environment, options, tree.arena),
        actions_(resolver_, program_) {}

  Checked<dif::Program> run() {
    for (const auto& [name, value] : tree_.options) program_.options[name] = value;
    for (const External& external : tree_.externals) TRY(add(external));
    if (program_.clauses.empty() && !options_.allow_empty) {
      return complain("D_EMPTY", {}, "empty D program translation unit");
    }
    return std::move(program_);
  }

 private:
  Checked<void> add(const External& external) {
    if (const auto* declaration = std::get_if<Declaration*>(&external)) {
      return resolver_.declare(**declaration);
    }
    if (const auto* node = std::get_if<InlineNode*>(&external))
      return resolver_.define_inline(**node);
    if (const auto* node = std::get_if<UnsupportedNode*>(&external)) {
      return complain("D_UNKNOWN", (*node)->at,
                      fmt::format("{} is not supported yet", (*node)->what));
    }
    ClauseNode* node = std::get<ClauseNode*>(external);
    const auto probes = TRY(this->probes(*node));
    resolver_.enter_clause(probes);
    const auto parts = TRY(desugar(node, desugar_tools()));
    const std::size_t first = program_.clauses.size();
    for (ClauseNode* part : parts) {
      TRY(clause(*part, probes));
      if (part->repeat) {
        program_.clauses.back().repeat = part->repeat;
        program_.clauses.back().repeat->first += static_cast<std::uint32_t>(first);
      }
    }
    return {};
  }

  DesugarTools desugar_tools() {
    return {tree_.arena, resolver_.types().int32, program_.clauses.size(),
            [this](Expr* e) -> std::optional<std::int64_t> {
              const auto value = resolver_.constant(e, "a loop's bound");
              return value ? std::optional(*value) : std::nullopt;
            }};
  }

  Checked<std::vector<dif::ProbeDescription>> probes(const ClauseNode& node) {
    std::vector<dif::ProbeDescription> result;
    for (const ProbePattern& pattern : node.probes) {
      result.push_back(TRY(describe(pattern, options_.specifier)));
      if (options_.allow_zero_matches || environment_.signature(result.back()).matched > 0)
        continue;
      const std::string why = environment_.why_no_match(result.back());
      return complain("D_PDESC_ZERO", pattern.at,
                      fmt::format("probe description {} does not match any probes{}{}",
                                  result.back().to_string(), why.empty() ? "" : ": ", why));
    }
    return result;
  }

  Checked<void> clause(ClauseNode& node, const std::vector<dif::ProbeDescription>& probes) {
    dif::Clause clause;
    clause.probes = probes;
    clause.source_name = options_.source_name;
    clause.line = node.at.line;
    if (node.predicate != nullptr) clause.predicate = TRY(predicate(*node.predicate));
    for (Statement* statement : node.body) {
      clause.actions.push_back(TRY(actions_.build(*statement->expression)));
    }
    program_.clauses.push_back(std::move(clause));
    return {};
  }

  Checked<dif::Difo> predicate(Expr& e) {
    TRY(resolver_.resolve(&e));
    Types& types = resolver_.types();
    if (!types.is_scalar(types.decay(e.type)) || types.is_array(e.type)) {
      return complain("D_PRED_SCALAR", e.at, "predicate result must be of scalar type");
    }
    return CodeGenerator::value(resolver_, e);
  }

  Tree& tree_;
  const CompileOptions& options_;
  Environment& environment_;
  dif::Program program_;
  Resolver resolver_;
  ActionBuilder actions_;
};

/// Options of the compiler itself that the program may set.
void apply_pragmas(const std::vector<std::pair<std::string, std::string>>& pragmas,
                   CompileOptions& options) {
  for (const auto& [name, value] : pragmas) {
    if (name == "zdefs") options.allow_zero_matches = true;
    if (name == "empty") options.allow_empty = true;
    if (name == "errtags") options.error_tags = true;
    std::uint32_t size = 0;
    const char* const end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, size);
    if (name == "strsize" && parsed.ec == std::errc() && parsed.ptr == end && size > 0) {
      options.string_size = size;
    }
  }
}

}  // namespace

Result<dif::Program> compile(std::string_view source, const CompileOptions& given,
                             Environment& environment) {
  CompileOptions options = given;
  auto compiled = [&]() -> Checked<dif::Program> {
    const auto tree = TRY(parse(source, options, environment.types()));
    apply_pragmas(tree->options, options);
    return Compilation(*tree, options, environment).run();
  }();
  if (compiled) return std::move(*compiled);
  return fail(ErrorCode::Compile, render(compiled.error(), source, options.error_tags));
}

}  // namespace ringside::d
