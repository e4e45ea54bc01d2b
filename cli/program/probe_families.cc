#include "cli/program/probe_families.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dif/program/builtin.h"
#include "dif/program/probe_description.h"

namespace ringside::cli {
namespace {

using dif::ProbeDefinition;
using dif::ProbePlace;

/// As a definition can write the type; a number for what it cannot.
std::string written_type(const TypeGraph& types, TypeId id) {
  const Type& plain = types[types.resolve(id)];
  if (plain.kind == TypeKind::Pointer) {
    const Type& target = types[types.resolve(plain.target)];
    if (target.kind == TypeKind::Struct && !target.name.empty()) {
      return fmt::format("struct {} *", target.name);
    }
    if (target.kind == TypeKind::Integer && target.is_char) return "char *";
  }
  if (plain.kind == TypeKind::Integer && plain.size == sizeof(int)) {
    return plain.is_signed ? "int" : "unsigned int";
  }
  return plain.is_signed ? "long" : "unsigned long";
}

/// Adds the parameters of the function as arguments, as far as there is room.
void add_parameters(ProbeDefinition& definition, const TypeGraph& types,
                    std::span<const Parameter> parameters) {
  const bool is_call = definition.place.kind == ProbePlace::Kind::OwnReturn;
  for (std::size_t n = 0; n < parameters.size(); ++n) {
    if (definition.arguments.size() == dif::kMaxProbeArguments) return;
    const std::string name = parameters[n].name.empty() ? fmt::format("parameter{}", n)
                                                        : std::string(parameters[n].name);
    std::string value = fmt::format("args[{}]", n);
    if (is_call) {
      auto& remembered = definition.beginning->remembered;
      if (remembered.size() == dif::most_remembered(definition.place.kind)) return;
      value =
          fmt::format("arg{}", dif::first_remembered(definition.place.kind) + remembered.size());
      remembered.push_back({name, {fmt::format("arg{}", n), definition.line}, false});
    }
    const std::string type = written_type(types, parameters[n].type);
    definition.arguments.push_back({name, type, definition.values.size()});
    definition.values.push_back({name, type, {{value, definition.line}}});
  }
}

/// Whether it stands for several probes.
bool is_family(const ProbeDefinition& definition) {
  const ProbePlace& place = definition.place;
  return definition.passes_parameters || (place.is_function() && dif::is_glob(place.name));
}

class Family {
 public:
  Family(ProbeDefinition pattern, const guest_linux::Kernel& kernel)
      : pattern_(std::move(pattern)),
        never_in_(std::exchange(pattern_.place.never_in, {})),
        kernel_(kernel) {
    if (pattern_.beginning) pattern_.beginning->place.never_in.clear();
  }

  void add_if_matched(const guest_linux::Symbol& function) {
    const ProbePlace& place = pattern_.place;
    if (!dif::field_matches(place.name, function.name)) return;
    const bool is_left_out = std::ranges::any_of(
        never_in_, [&](const std::string& prefix) { return function.name.starts_with(prefix); });
    const auto& module = kernel_.symbols().modules()[function.module].name;
    if (module == place.module && !is_left_out) functions_.push_back(&function);
  }

  void append_to(std::vector<ProbeDefinition>& all) {
    std::ranges::sort(functions_, {}, &guest_linux::Symbol::name);
    for (const guest_linux::Symbol* const function : functions_) {
      if (auto one = of_function(*function)) all.push_back(std::move(*one));
    }
  }

 private:
  std::optional<ProbeDefinition> of_function(const guest_linux::Symbol& function) const {
    const TypeGraph& types = kernel_.types();
    const auto prototype = kernel_.prototype(function);
    if (!prototype || types[*prototype].kind != TypeKind::Function) return std::nullopt;
    ProbeDefinition one = pattern_;
    one.place.name = std::string(function.name);
    if (one.beginning) one.beginning->place.name = one.place.name;
    if (one.passes_parameters) add_parameters(one, types, types.parameters(*prototype));
    return one;
  }

  ProbeDefinition pattern_;  // without never_in, which each copy would carry along
  const std::vector<std::string> never_in_;
  const guest_linux::Kernel& kernel_;
  std::vector<const guest_linux::Symbol*> functions_;
};

}  // namespace

std::vector<ProbeDefinition> expand_families(std::vector<ProbeDefinition> definitions,
                                             const guest_linux::Kernel& kernel) {
  std::vector<Family> families;
  for (const ProbeDefinition& definition : definitions) {
    if (is_family(definition)) families.emplace_back(definition, kernel);
  }
  // One walk for all: a kernel has 200,000 symbols.
  for (const guest_linux::Symbol& symbol : kernel.symbols().symbols()) {
    if (!symbol.is_text()) continue;
    for (Family& family : families) family.add_if_matched(symbol);
  }
  std::vector<ProbeDefinition> all;
  auto family = families.begin();
  for (ProbeDefinition& definition : definitions) {
    if (is_family(definition)) {
      (family++)->append_to(all);
    } else {
      all.push_back(std::move(definition));
    }
  }
  return all;
}

}  // namespace ringside::cli
