// In this file, top to bottom: places, one definition from its tree, all of the libraries,
// compiling.
#include "dif/d/probe_definitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <unordered_set>

#include "dif/d/libraries.h"
#include "dif/d/syntax/parse.h"
#include "dif/d/syntax/print_tree.h"
#include "dif/d/types/system_types.h"
#include "dif/program/builtin.h"

namespace ringside::d {
namespace {

using dif::DefinitionText;
using dif::ProbeBeginning;
using dif::ProbeDefinition;
using dif::ProbePlace;

tl::unexpected<Diagnostic> refuse(const Location& at, std::string text) {
  return complain("D_PROV_PLACE", at, std::move(text));
}

// Places

Checked<ProbePlace> one_place(const ProbePattern& pattern) {
  const auto parsed = parse_description(pattern, CompileOptions::Specifier::Name);
  const dif::ProbeDescription place = parsed.value_or(dif::ProbeDescription());
  const auto& [provider, module, function, name, machine] = place;
  const bool is_edge =
      machine.empty() && !function.empty() && (name == "entry" || name == "return");
  if (is_edge && provider == "fbt") {
    const auto kind = name == "entry" ? ProbePlace::Kind::Entry : ProbePlace::Kind::Return;
    return ProbePlace{
        .kind = kind, .module = module.empty() ? "vmlinux" : module, .name = function};
  }
  if (is_edge && provider == "pid*" && !module.empty() && !dif::is_glob(function)) {
    const auto kind = name == "entry" ? ProbePlace::Kind::UserEntry : ProbePlace::Kind::UserReturn;
    return ProbePlace{.kind = kind, .module = module, .name = function};
  }
  if (machine.empty() && module.empty() && function.empty() && !name.empty()) {
    if (provider == "sdt") return ProbePlace{.kind = ProbePlace::Kind::Tracepoint, .name = name};
    if (provider == "counter" && name.ends_with(']')) {
      return ProbePlace{.kind = ProbePlace::Kind::Counter, .name = name};
    }
  }
  return refuse(pattern.at,
                fmt::format("a probe cannot stand on {}: a place is fbt::FUNCTION:entry, "
                            "fbt::FUNCTION:return, sdt:::TRACEPOINT, counter:::COUNTER[INDEX] or "
                            "pid*:FILE:FUNCTION:entry or return",
                            *pattern.text));
}

Checked<ProbePlace> place_of(const std::vector<ProbePattern>& alternatives) {
  ProbePlace place = TRY(one_place(alternatives.front()));
  for (std::size_t n = 1; n < alternatives.size(); ++n) {
    const ProbePlace other = TRY(one_place(alternatives[n]));
    const std::size_t bracket = place.name.find('[');
    const bool is_counter = place.kind == ProbePlace::Kind::Counter;
    const bool fits = other.kind == place.kind && other.module == place.module &&
                      place.kind != ProbePlace::Kind::Tracepoint && !place.is_of_processes() &&
                      (!is_counter || other.name.compare(0, bracket, place.name, 0, bracket) == 0);
    if (!fits) {
      return refuse(alternatives[n].at,
                    "alternatives are functions, all at their entry or all at their return, or "
                    "elements of one counter");
    }
    if (is_counter) place.name.pop_back();
    place.name += '|' + other.name.substr(is_counter ? bracket + 1 : 0);
  }
  return place;
}

// One definition from its tree

constexpr std::size_t kMostValues = 32;  // of one place
/// Providers whose probes no library defines: a clause of dtrace:::BEGIN would run in the guest.
constexpr std::array<std::string_view, 8> kNotDefined = {"dtrace",  "fbt",     "instr", "pid",
                                                         "profile", "syscall", "sdt",   "vm"};

class DefinitionReader {
 public:
  DefinitionReader(const ProviderNode& provider, const ProviderNode::Probe& probe,
                   std::size_t library)
      : provider_(provider), probe_(probe) {
    made_.provider = *provider.name;
    made_.name = dashed(*probe.name);
    made_.library = library;
    made_.line = probe.at.line;
  }

  Checked<ProbeDefinition> read() {
    if (std::ranges::find(kNotDefined, made_.provider) != kNotDefined.end()) {
      return refuse(probe_.at,
                    fmt::format("libraries cannot add probes to the provider {}", made_.provider));
    }
    TRY(read_arguments());
    const auto& parts = probe_.definition->parts;
    if (parts.size() > 2) {
      return refuse(parts[2].at, "a probe has a place, and at most one beginning before it");
    }
    if (parts.size() == 2) TRY(read_beginning(parts.front()));
    if (!parts.empty()) TRY(read_end(parts.back()));
    const bool has_parameters = made_.place.kind == ProbePlace::Kind::Entry ||
                                made_.place.kind == ProbePlace::Kind::OwnReturn;
    if (made_.passes_parameters && !has_parameters) {
      return refuse(probe_.at,
                    "parameters (...) are those of a function, at its entry or from there "
                    "to its return");
    }
    if (!parts.empty()) TRY(qualify(provider_.qualifiers));
    TRY(qualify(probe_.definition->qualifiers));
    const bool is_nowhere = made_.place.kind == ProbePlace::Kind::Nowhere;
    if (parts.empty() != is_nowhere) {
      return refuse(probe_.at, fmt::format("probe {} has {}", made_.name,
                                           parts.empty() ? "no place" : "a place, and is absent"));
    }
    return std::move(made_);
  }

 private:
  /// As in dtrace's provider files: wait__start is the probe wait-start.
  static std::string dashed(std::string name) {
    for (std::size_t at = 0; (at = name.find("__", at)) != name.npos; ++at)
      name.replace(at, 2, "-");
    return name;
  }

  Checked<void> read_arguments() {
    made_.passes_parameters = probe_.native.variadic && probe_.native.parameters != nullptr;
    if (probe_.native.parameters != nullptr) {
      for (const Declaration* parameter : *probe_.native.parameters) {
        const Text name = parameter->declarators.front()->name;
        const std::string type = print_type(*parameter);
        if (type == "void" && probe_.native.parameters->size() == 1) break;
        if (name == nullptr) return refuse(parameter->at, "an argument of the probe has no name");
        const bool is_second = std::ranges::any_of(
            made_.arguments, [&](const auto& before) { return before.name == *name; });
        if (is_second) {
          return refuse(parameter->at, fmt::format("two arguments of the probe are {}", *name));
        }
        made_.arguments.push_back({*name, type, 0});
      }
    }
    if (made_.arguments.size() > dif::kMaxProbeArguments) {
      return refuse(probe_.at, fmt::format("probe {} has more than {} arguments", made_.name,
                                           dif::kMaxProbeArguments));
    }
    if (!probe_.has_translated || probe_.translated.parameters == nullptr) return {};
    for (const Declaration* shown : *probe_.translated.parameters) {
      const Text name = shown->declarators.front()->name;
      const auto native =
          std::ranges::find_if(made_.arguments, [&](const ProbeDefinition::Argument& argument) {
            return name != nullptr && argument.name == *name;
          });
      if (native == made_.arguments.end()) {
        return refuse(shown->at, "args[] are made of the probe's arguments, by their names");
      }
      made_.translated.push_back(
          {print_type(*shown), static_cast<unsigned>(native - made_.arguments.begin())});
    }
    return {};
  }

  /// self->name, or self->name[object].
  struct Memory {
    Text name = nullptr;
    Expr* key = nullptr;
  };
  static std::optional<Memory> memory(const Expr& e) {
    const auto is_self = [](const Expr& one) {
      return one.kind == ExprKind::Scoped && one.scope == Scope::Thread;
    };
    if (is_self(e)) return Memory{e.text, nullptr};
    if (e.kind == ExprKind::Index && is_self(*e.a) && e.list.size() == 1) {
      return Memory{e.a->text, e.list[0]};
    }
    return std::nullopt;
  }

  Checked<void> read_beginning(const ProbeDefinitionNode::Part& part) {
    ProbeBeginning& beginning = made_.beginning.emplace();
    beginning.place = TRY(place_of(part.places));
    if (part.condition != nullptr) beginning.condition = text_of(*part.condition);
    for (const Statement* statement : part.body) {
      const Expr* const e = statement->expression;
      const bool is_assignment = e != nullptr && e->kind == ExprKind::Assign &&
                                 (!e->compound || e->op == Op::BitOr) && memory(*e->a);
      if (!is_assignment) {
        return refuse(part.at,
                      "a beginning remembers values: self->name = value;, or self->"
                      "name[object] = value;");
      }
      const Memory to = *memory(*e->a);
      TRY(check_key(to, beginning.key, !beginning.remembered.empty(), e->at));
      beginning.remembered.push_back({*to.name, text_of(*e->b), e->compound});
    }
    if (beginning.remembered.empty() && !made_.passes_parameters) {
      return refuse(part.at, "a beginning remembers values");
    }
    return {};
  }

  /// All values have the same object, or none of them has one.
  static Checked<void> check_key(const Memory& memory, std::optional<DefinitionText>& key,
                                 bool is_known, const Location& at) {
    std::optional<DefinitionText> here;
    if (memory.key != nullptr) here = text_of(*memory.key);
    const bool same = here.has_value() == key.has_value() && (!here || here->text == key->text);
    if (is_known && !same) return refuse(at, "all that is remembered belongs to one object");
    key = std::move(here);
    return {};
  }

  Checked<void> read_end(const ProbeDefinitionNode::Part& part) {
    made_.place = TRY(place_of(part.places));
    if (made_.beginning) TRY(check_beginning(part));
    for (const Statement* statement : part.body) TRY(read_value(part, statement->expression));
    for (ProbeDefinition::Argument& argument : made_.arguments) {
      const auto value = find_value(argument.name, ValueKind::Argument);
      if (!value) {
        return refuse(part.at, fmt::format("argument {} of probe {} has no value", argument.name,
                                           made_.name));
      }
      argument.value = *value;
    }
    target_.reset();
    if (part.condition != nullptr) {
      Expr* condition = part.condition;
      TRY(rewrite(condition));
      made_.condition = text_of(*condition);
    }
    if (made_.beginning && made_.beginning->key && !made_.beginning->key_at_end) {
      return refuse(part.at, "the end has to name the object, as self->name[object]");
    }
    return {};
  }

  /// name = value; of an argument, and this->name = value; of a value that others use.
  Checked<void> read_value(const ProbeDefinitionNode::Part& part, Expr* e) {
    const bool is_assignment = e != nullptr && e->kind == ExprKind::Assign && !e->compound;
    const auto kind = is_assignment ? kind_of(*e->a) : std::nullopt;
    if (!kind) {
      return refuse(part.at,
                    "a place gives the probe's arguments (name = value;), and values for "
                    "them to use (this->name = value;)");
    }
    const std::string& name = *e->a->text;
    const auto argument =
        std::ranges::find(made_.arguments, name, &ProbeDefinition::Argument::name);
    const bool is_argument = *kind == ValueKind::Argument;
    if (is_argument && argument == made_.arguments.end()) {
      return refuse(e->at, fmt::format("{} is no argument of probe {}", name, made_.name));
    }
    target_ = find_value(name, *kind);
    TRY(rewrite(e->b));
    if (!target_) {
      if (made_.values.size() == kMostValues) {
        return refuse(e->at, fmt::format("a place has at most {} values", kMostValues));
      }
      target_ = made_.values.size();
      made_.values.push_back({name, is_argument ? argument->type : std::string(), {}});
      kinds_.push_back(*kind);
    }
    made_.values[*target_].choices.push_back(text_of(*e->b));
    return {};
  }

  enum class ValueKind : std::uint8_t { Argument, Local };
  static std::optional<ValueKind> kind_of(const Expr& e) {
    if (e.kind == ExprKind::Name) return ValueKind::Argument;
    if (e.kind == ExprKind::Scoped && e.scope == Scope::Clause) return ValueKind::Local;
    return std::nullopt;
  }

  std::optional<std::size_t> find_value(const std::string& name, ValueKind kind) const {
    for (std::size_t n = 0; n < made_.values.size(); ++n) {
      if (made_.values[n].name == name && kinds_[n] == kind) return n;
    }
    return std::nullopt;
  }

  static bool is_call_of_one_function(const ProbePlace& from, const ProbePlace& to) {
    using enum ProbePlace::Kind;
    const bool is_pair = (from.kind == Entry && to.kind == Return) ||
                         (from.kind == UserEntry && to.kind == UserReturn);
    return is_pair && from.module == to.module && from.name == to.name;
  }

  /// Without an object, both are places of one function, or the beginning is in a process.
  Checked<void> check_beginning(const ProbeDefinitionNode::Part& part) {
    const ProbePlace& from = made_.beginning->place;
    const bool is_call = is_call_of_one_function(from, made_.place);
    const bool has_object = made_.beginning->key.has_value();
    if (!is_call && !has_object && !from.is_of_processes()) {
      return refuse(part.at,
                    "a beginning and its end are the entry and the return of one function, "
                    "or have an object: self->name[object]");
    }
    if (made_.place.is_of_processes() && (!is_call || has_object)) {
      return refuse(part.at, "an end in a process is the return of the call that is the beginning");
    }
    if (is_call && !has_object && made_.place.kind == ProbePlace::Kind::Return) {
      made_.place.kind = ProbePlace::Kind::OwnReturn;
    }
    const std::size_t most = dif::most_remembered(made_.place.kind);
    if (made_.beginning->remembered.size() <= most) return {};
    return refuse(part.at, fmt::format("a beginning remembers at most {} values here", most));
  }

  bool may_lack_result() const {
    return made_.place.kind == ProbePlace::Kind::Return ||
           made_.place.kind == ProbePlace::Kind::UserReturn;
  }

  /// An expression of the end: values become markers, what is remembered the words of it.
  Checked<void> rewrite(Expr*& e) {
    if (e == nullptr) return {};
    if (const auto remembered = memory(*e)) return rewrite_memory(*e, *remembered);
    if (const auto kind = kind_of(*e)) {
      rewrite_name(*e, *kind);
      return {};
    }
    if (may_lack_result() && e->kind == ExprKind::Index && e->a->kind == ExprKind::Name &&
        *e->a->text == "args") {
      made_.place.needs_result = true;
    }
    for (Expr** part : {&e->a, &e->b, &e->c}) TRY(rewrite(*part));
    for (Expr*& part : e->list) TRY(rewrite(part));
    return {};
  }

  /// A value that is known there; the one that is given has no value yet.
  void rewrite_name(Expr& e, ValueKind kind) {
    if (*e.text == "arg1" && may_lack_result()) made_.place.needs_result = true;
    const auto value = find_value(*e.text, kind);
    if (!value || value == target_) return;
    e.kind = ExprKind::Name;
    e.text = &texts_.emplace_back(ProbeDefinition::marker(*value));
  }

  Checked<void> rewrite_memory(Expr& e, const Memory& remembered) {
    if (!made_.beginning) return refuse(e.at, "nothing was remembered: there is no beginning");
    auto& known = made_.beginning->remembered;
    const auto found =
        std::ranges::find(known, *remembered.name, &ProbeBeginning::Remembered::name);
    if (found == known.end() || (remembered.key != nullptr) != made_.beginning->key.has_value()) {
      return refuse(e.at, fmt::format("self->{} was not remembered so", *remembered.name));
    }
    auto& key = made_.beginning->key_at_end;
    TRY(check_key(remembered, key, key.has_value(), e.at));
    const auto n = static_cast<unsigned>(found - known.begin());
    e.kind = ExprKind::Name;
    e.a = nullptr;
    e.list.clear();
    e.text =
        &texts_.emplace_back(fmt::format("arg{}", dif::first_remembered(made_.place.kind) + n));
    return {};
  }

  Checked<void> qualify(std::span<const ProbeDefinitionNode::Qualifier> qualifiers) {
    for (const auto& qualifier : qualifiers) TRY(qualify(qualifier));
    return {};
  }

  Checked<void> qualify(const ProbeDefinitionNode::Qualifier& qualifier) {
    const std::string& word = *qualifier.word;
    const std::string& text = *qualifier.texts.front();
    const bool is_one = qualifier.texts.size() == 1;
    if (word == "never_in") return take_prefixes(qualifier, made_.place.never_in);
    if (word == "never_called_by") return take_prefixes(qualifier, made_.place.never_called_by);
    if (word == "absent" && is_one) {
      made_.place = {.kind = ProbePlace::Kind::Nowhere, .name = text};
      return {};
    }
    if (word == "unless_inlined" && is_one) {
      made_.place.unless_inlined = text;
      return {};
    }
    if (word == "fine_if_inlined" && is_one) {
      made_.place.or_in_callers = true;
      return {};
    }
    if ((word == "only_on" || word == "never_on") && is_one && text == "PREEMPT_RT") {
      made_.kernels =
          word == "only_on" ? ProbeDefinition::Kernels::RealTime : ProbeDefinition::Kernels::Usual;
      return {};
    }
    return refuse(
        qualifier.at,
        fmt::format("{} \"{}\" says nothing of a probe: never_in, never_called_by, absent, "
                    "unless_inlined, fine_if_inlined, only_on and never_on do",
                    word, text));
  }

  Checked<void> take_prefixes(const ProbeDefinitionNode::Qualifier& qualifier,
                              std::vector<std::string>& to) {
    for (const Text text : qualifier.texts) {
      const std::string_view prefix = std::string_view(*text).substr(0, text->size() - 1);
      if (!text->ends_with('*') || dif::is_glob(std::string(prefix))) {
        return refuse(qualifier.at, fmt::format("names of functions end with *: \"{}\"", *text));
      }
      to.emplace_back(prefix);
    }
    return {};
  }

  static DefinitionText text_of(const Expr& e) { return {print_expression(e), e.at.line}; }

  const ProviderNode& provider_;
  const ProviderNode::Probe& probe_;
  ProbeDefinition made_;
  std::vector<ValueKind> kinds_;       // of made_.values
  std::optional<std::size_t> target_;  // the value that is given, when it has been given before
  std::deque<std::string> texts_;
};

/// The beginning passes the same functions as the end, and for the same reasons not.
void share_places(ProbeDefinition& definition) {
  if (!definition.beginning) return;
  definition.beginning->place.never_in = definition.place.never_in;
  definition.beginning->place.never_called_by = definition.place.never_called_by;
}

// All of the libraries

/// Of a provider all are of processes, or none is: those have a process's number in its name.
Checked<void> check_beside(const std::vector<ProbeDefinition>& before, const ProbeDefinition& one,
                           const Location& at) {
  const auto is_absent = [](const ProbeDefinition& probe) {
    return probe.place.kind == ProbePlace::Kind::Nowhere;
  };
  const auto differs = [&](const ProbeDefinition& other) {
    return other.provider == one.provider && !is_absent(other) &&
           other.is_of_processes() != one.is_of_processes();
  };
  const char last = one.provider.empty() ? '\0' : one.provider.back();
  if (one.is_of_processes() && last >= '0' && last <= '9') {
    return refuse(at, fmt::format("the name of provider {} ends with a digit, where programs put "
                                  "the number of a process",
                                  one.provider));
  }
  if (is_absent(one) || std::ranges::none_of(before, differs)) return {};
  return refuse(at, fmt::format("provider {} has probes of the kernel: give those of processes, or "
                                "that begin there, another provider",
                                one.provider));
}

Checked<std::vector<ProbeDefinition>> read_all(CompileOptions& options, Environment& environment) {
  std::vector<ProbeDefinition> all;
  std::unordered_set<std::string> type_names;
  for (const std::size_t index : TRY(library_order(options.libraries, environment))) {
    Tree tree;
    TRY(parse(options.libraries[index].text, static_cast<int>(index) + 1, options,
              environment.types(), type_names, tree));
    for (const External& external : tree.externals) {
      const auto* const node = std::get_if<ProviderNode*>(&external);
      if (node == nullptr) continue;
      for (const ProviderNode::Probe& probe : (*node)->probes) {
        if (probe.definition == nullptr) continue;
        ProbeDefinition made = TRY(DefinitionReader(**node, probe, index).read());
        TRY(check_beside(all, made, probe.at));
        share_places(made);
        all.push_back(std::move(made));
      }
    }
  }
  return all;
}

Diagnostic with_source(Diagnostic diagnostic, const std::vector<LibrarySource>& libraries) {
  if (diagnostic.at.file == 0) return diagnostic;
  const auto& library = libraries[static_cast<std::size_t>(diagnostic.at.file) - 1];
  diagnostic.library = library.name;
  diagnostic.source_line = line_of(library.text, diagnostic.at.source_line);
  return diagnostic;
}

}  // namespace

Result<std::vector<ProbeDefinition>, Diagnostic> read_probe_definitions(
    const std::vector<LibrarySource>& libraries, Environment& environment) {
  add_system_types(environment.types());
  CompileOptions options;
  options.libraries = libraries;
  auto all = read_all(options, environment);
  if (!all) return tl::make_unexpected(with_source(std::move(all).error(), libraries));
  return all;
}

// Compiling

namespace {

/// The library and those that it depends on.
std::vector<LibrarySource> needed_by(std::size_t library,
                                     const std::vector<LibrarySource>& libraries) {
  std::vector<LibrarySource> needed{libraries[library]};
  for (std::size_t n = 0; n < needed.size(); ++n) {
    for (const std::string_view name : libraries_needed_by(needed[n])) {
      const auto is_it = [&](const LibrarySource& one) { return library_name(one) == name; };
      const auto found = std::ranges::find_if(libraries, is_it);
      if (found == libraries.end() || std::ranges::any_of(needed, is_it)) continue;
      needed.push_back(*found);
    }
  }
  return needed;
}

}  // namespace

Result<dif::Program, Diagnostic> compile_definition_part(
    const dif::DefinitionPart& part, const std::vector<LibrarySource>& libraries,
    std::size_t library, Environment& environment) {
  CompileOptions options;
  options.libraries = needed_by(library, libraries);
  std::string text = "place:::\n";
  const auto at_its_line = [&](const DefinitionText& one) {
    text += fmt::format("\n# {}\n", std::max(one.line, 1));
  };
  if (!part.condition.text.empty()) {
    at_its_line(part.condition);
    text += "/ " + part.condition.text + " /\n";
  }
  text += "{\n";
  for (const DefinitionText& value : part.values) {
    at_its_line(value);
    text += "trace(" + value.text + ");\n";
  }
  text += "}\n";
  auto compiled = compile(text, options, environment);
  if (!compiled) {
    Diagnostic diagnostic = std::move(compiled).error();
    if (diagnostic.library.empty()) diagnostic.library = libraries[library].name;
    return tl::make_unexpected(std::move(diagnostic));
  }
  return std::move(compiled->program);
}

}  // namespace ringside::d
