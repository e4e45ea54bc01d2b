// One compilation, phase by phase: parse, then for each declaration and clause in order resolve
// and emit.
#include "dif/d/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "dif/d/actions/actions.h"
#include "dif/d/desugar.h"
#include "dif/d/libraries.h"
#include "dif/d/resolve/declarations.h"
#include "dif/d/syntax/parse.h"
#include "dif/d/syntax/print_tree.h"
#include "dif/d/types/system_types.h"
#include "dif/verify/verify.h"
#include "vmm/base/numbers.h"

namespace ringside::d {
namespace {

class Compilation {
 public:
  Compilation(Tree& tree, const CompileOptions& options, Environment& environment)
      : tree_(tree),
        options_(options),
        environment_(environment),
        resolver_(environment, options, tree.arena),
        actions_(resolver_, program_) {}

  /// Declares all but the clauses, which come when everything is read. `libraries` come first.
  Checked<void> declare_all(const std::vector<const Tree*>& libraries) {
    for (const Tree* library : libraries) {
      for (const External& external : library->externals) TRY(declare(external));
    }
    // A library's definitions count where the program uses them, and are resolved again there.
    resolver_.types().forget_layouts();
    resolver_.namer().forget();
    for (const External& external : tree_.externals) TRY(declare(external));
    resolver_.namer().note_for_all();
    return {};
  }

  /// Only options of the program itself count.
  Checked<Compiled> run(const std::vector<const Tree*>& libraries) {
    for (const Tree::Option& option : tree_.options) program_.options[option.name] = option.value;
    TRY(declare_all(libraries));
    for (const External& external : tree_.externals) {
      if (auto* const* node = std::get_if<ClauseNode*>(&external)) {
        resolver_.note_assignments((*node)->body);
      }
    }
    for (const External& external : tree_.externals) {
      if (auto* const* node = std::get_if<ClauseNode*>(&external)) TRY(add_clause(*node));
    }
    TRY(resolver_.identifiers().pragmas().check_unused());
    const bool has_clause = std::ranges::any_of(tree_.externals, [](const External& external) {
      return std::holds_alternative<ClauseNode*>(external);
    });
    if (!has_clause && !options_.allow_empty) {
      return complain("D_EMPTY", {}, "empty D program translation unit");
    }
    program_.kernel_names = resolver_.namer().take_names();
    program_.needs = resolver_.namer().needs();
    return Compiled{std::move(program_), std::move(listing_)};
  }

 private:
  Checked<void> declare(const External& external) {
    resolver_.begin_external();
    if (const auto* declaration = std::get_if<Declaration*>(&external)) {
      return declarations_.declare(**declaration);
    }
    if (const auto* node = std::get_if<InlineNode*>(&external)) {
      return resolver_.define_inline(**node);
    }
    if (const auto* node = std::get_if<TranslatorNode*>(&external)) {
      return resolver_.define_translator(**node);
    }
    if (const auto* node = std::get_if<ProviderNode*>(&external)) {
      return declarations_.declare_provider(**node);
    }
    if (const auto* node = std::get_if<PragmaNode*>(&external)) return pragma(**node);
    return {};
  }

  /// Where args[] differs between a clause's descriptions, it is as many clauses.
  Checked<void> add_clause(ClauseNode* node) {
    adding_ = node;
    resolver_.begin_external();
    const auto probes = TRY(this->probes(*node));
    if (!resolver_.needs_clause_for_each(*node, probes)) return add_clause(node, probes);
    for (std::size_t i = 0; i < probes.size(); ++i) {
      resolver_.begin_external();
      auto added = add_clause(TRY(resolver_.copy_clause(*node, i)), {probes[i]});
      if (added) continue;
      added.error().text += fmt::format(" (in this clause for {})", probes[i].to_string());
      return added;
    }
    return {};
  }

  Checked<void> add_clause(ClauseNode* node, const std::vector<dif::ProbeDescription>& probes) {
    resolver_.enter_clause(probes);
    resolver_.types().forget_layouts();
    const bool ahead = node->predicate != nullptr && resolver_.names_unknown(*node->predicate);
    const auto parts = TRY(desugar(node, desugar_tools()));
    list(parts);
    resolver_.stability().take();
    if (ahead) {
      for (const ClauseNode* part : parts) define_variables(part->body, Resolver::Which::All);
      define_later_variables(*node->predicate);
    }
    const std::size_t first = program_.clauses.size();
    for (ClauseNode* part : parts) {
      TRY(clause(*part, probes));
      program_.clauses.back().continues = part != parts.front();
      if (part->repeat) {
        program_.clauses.back().repeat = part->repeat;
        program_.clauses.back().repeat->first += static_cast<std::uint32_t>(first);
      }
    }
    return {};
  }

  /// A predicate may name the variables that its clause's body defines.
  void define_variables(const std::vector<Statement*>& body, Resolver::Which which) {
    for (const Statement* statement : body) {
      for (Expr* part : {statement->init, statement->expression, statement->step}) {
        if (part != nullptr) resolver_.define_assigned(part, which);
      }
      define_variables(statement->then_body, which);
      define_variables(statement->else_body, which);
    }
  }

  /// And arrays and variables of threads that a later clause defines.
  void define_later_variables(const Expr& predicate) {
    bool is_later = false;
    for (const External& external : tree_.externals) {
      const auto* const clause = std::get_if<ClauseNode*>(&external);
      if (clause == nullptr) continue;
      if (is_later) {
        if (!resolver_.names_unknown(predicate)) break;
        const auto copy = resolver_.copy_clause(**clause, 0);
        if (!copy) break;
        define_variables((*copy)->body, Resolver::Which::Dynamic);
      }
      is_later = is_later || *clause == adding_;
    }
    resolver_.begin_external();  // what was copied of others is not this clause's growth
  }

  /// Before names are resolved, which changes what the tree looks like.
  void list(const std::vector<ClauseNode*>& parts) {
    if (!options_.list_desugared) return;
    for (const ClauseNode* part : parts) {
      if (!listing_.empty()) listing_ += '\n';
      listing_ += print_clause(*part);
      if (!part->repeat) continue;
      listing_ += fmt::format("/* then on from clause {} of these {}, at most {} times */\n",
                              part->repeat->first + 1, parts.size(), part->repeat->limit);
    }
  }

  DesugarTools desugar_tools() {
    return {tree_.arena, resolver_.types().int32, program_.clauses.size(),
            [this](Expr* e) -> std::optional<std::int64_t> {
              const auto value = resolver_.resolve_constant(e, "a loop's bound");
              return value ? std::optional(*value) : std::nullopt;
            }};
  }

  /// Libraries were left out already when what they depend on is missing; a program fails.
  Checked<void> pragma(const PragmaNode& node) {
    if (node.directive != "depends_on") return declarations_.read_pragma(node);
    const std::string &what = node.words[0], &name = node.words[1];
    if (node.words.size() != 2) {
      return complain("D_PRAGMA_MALFORM", node.at, "malformed #pragma D depends_on class name");
    }
    if (what != "provider" && what != "module" && what != "library") {
      return complain("D_PRAGMA_INVAL", node.at,
                      fmt::format("invalid class specified by #pragma D depends_on: {}", what));
    }
    if (node.at.file != 0) return {};
    if (what == "library") {
      return complain("D_PRAGMA_DEPEND", node.at,
                      fmt::format("main program may not explicitly depend on a library: {}", name));
    }
    const bool met = what == "module"
                         ? environment_.has_module(name)
                         : environment_.has_provider(name) || declarations_.has_provider(name);
    if (met) return {};
    return complain("D_PRAGMA_DEPEND", node.at,
                    fmt::format("program requires {} {}, which is not there", what, name));
  }

  /// The least that providers promise for the parts that the descriptions give.
  dif::Attributes description_attributes(const std::vector<dif::ProbeDescription>& probes) {
    dif::Attributes result;
    for (const dif::ProbeDescription& probe : probes) {
      const ProbeSignature found = environment_.match(probe);
      if (found.matched == 0) continue;
      const auto count = [&](const std::string& part, const dif::Attributes& attributes) {
        if (!part.empty()) result = dif::least(result, attributes);
      };
      count(probe.provider, found.attributes.provider);
      count(probe.module, found.attributes.module);
      count(probe.function, found.attributes.function);
      count(probe.name, found.attributes.name);
    }
    return result;
  }

  /// A number alone stands for the probe that has it.
  Checked<dif::ProbeDescription> numbered(const ProbePattern& pattern) {
    const std::string& text = *pattern.text;
    if (const auto id = parse_number<decltype(dif::ProbeId::value)>(text)) {
      if (auto named = environment_.probe_by_id(dif::ProbeId{*id})) return std::move(*named);
    }
    return complain("D_PDESC_INVAL", pattern.at,
                    fmt::format("invalid probe identifier {}: no probe has it", text));
  }

  Checked<std::vector<dif::ProbeDescription>> probes(const ClauseNode& node) {
    std::vector<dif::ProbeDescription> result;
    for (const ProbePattern& pattern : node.probes) {
      const bool is_number = pattern.text->find_first_not_of("0123456789") == std::string::npos;
      result.push_back(TRY(is_number && !pattern.text->empty()
                               ? numbered(pattern)
                               : parse_description(pattern, options_.specifier)));
      if (options_.allow_zero_matches) continue;
      const ProbeSignature found = environment_.match(result.back());
      if (found.matched > 0 && found.is_everywhere) continue;
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
    actions_.enter_clause();
    clause.description_attributes = description_attributes(probes);
    if (node.predicate != nullptr) clause.predicate = TRY(predicate(*node.predicate));
    for (Statement* statement : node.body) TRY(actions_.prepare(*statement->expression));
    for (Statement* statement : node.body) {
      Expr& expression = *statement->expression;
      const Expr& called = expression.kind == ExprKind::Assign ? *expression.b : expression;
      if (called.kind == ExprKind::Call)
        TRY(resolver_.stability().note_function(*called.text, called.at));
      clause.actions.push_back(TRY(actions_.build(expression)));
    }
    if (clause.actions.size() > dif::kMostActions) {
      return complain("D_UNKNOWN", node.at,
                      fmt::format("a clause may not have more than {} actions", dif::kMostActions));
    }
    clause.statement_attributes = resolver_.stability().take();
    clause.argument_types = resolver_.take_argument_types();
    clause.names = resolver_.namer().take_used();
    program_.clauses.push_back(std::move(clause));
    return {};
  }

  Checked<dif::Difo> predicate(Expr& e) {
    TRY(resolver_.resolve_compared(&e, "D_CG_DYN"));
    Types& types = resolver_.types();
    if (!types.is_scalar(e.type)) {
      return complain("D_PRED_SCALAR", e.at, "predicate result must be of scalar type");
    }
    return CodeGenerator::generate_value(resolver_, e);
  }

  Tree& tree_;
  const CompileOptions& options_;
  Environment& environment_;
  dif::Program program_;
  Resolver resolver_;
  Declarations declarations_{resolver_};
  ActionBuilder actions_;
  const ClauseNode* adding_ = nullptr;  // as it stands in the tree
  std::string listing_;
};

Checked<Compiled> compile_all(std::string_view source, CompileOptions& options,
                              Environment& environment) {
  Tree program;
  std::deque<Tree> libraries;
  std::unordered_set<std::string> type_names;
  std::vector<const Tree*> in_order;
  for (const std::size_t index : TRY(library_order(options.libraries, environment))) {
    Tree& tree = libraries.emplace_back();
    TRY(parse(options.libraries[index].text, static_cast<int>(index) + 1, options,
              environment.types(), type_names, tree));
    in_order.push_back(&tree);
  }
  const auto parsed = parse(source, 0, options, environment.types(), type_names, program);
  Compilation compilation(program, options, environment);
  if (parsed) return compilation.run(in_order);
  // Complaints about declarations that were read before come first.
  TRY(compilation.declare_all(in_order));
  return tl::make_unexpected(parsed.error());
}

}  // namespace

Result<Compiled, Diagnostic> compile(std::string_view source, const CompileOptions& options,
                                     Environment& environment) {
  add_system_types(environment.types());
  CompileOptions own = options;  // the program may set some
  auto compiled = compile_all(source, own, environment);
  if (compiled) return compiled;
  Diagnostic& diagnostic = compiled.error();
  std::string_view text = source;
  if (diagnostic.at.file != 0) {
    const auto& library = options.libraries[static_cast<std::size_t>(diagnostic.at.file) - 1];
    diagnostic.library = library.name;
    text = library.text;
  }
  diagnostic.source_line = line_of(text, diagnostic.at.source_line);
  return compiled;
}

}  // namespace ringside::d
