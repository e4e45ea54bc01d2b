// In this file, top to bottom: types of other machines, probes, reasons.
#include "cli/program/machines_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/program/environment.h"

namespace ringside::cli {

namespace {

/// Types come from a guest: they may lead in a circle.
constexpr unsigned kMostSteps = 32;

std::optional<TypeId> find_named(const TypeGraph& graph, const Type& type) {
  if (type.name.empty()) return std::nullopt;
  switch (type.kind) {
    case TypeKind::Struct:
    case TypeKind::Union:
    case TypeKind::Enum: return graph.find(type.kind, type.name);
    case TypeKind::Forward:
      return graph.find(type.is_union ? TypeKind::Union : TypeKind::Struct, type.name);
    default: return graph.find(type.name);
  }
}

TypeId find_or_make(TypeGraph& to, const TypeGraph& from, TypeId id, unsigned steps) {
  const Type type = from[id];
  if (steps == 0 || type.kind == TypeKind::Void) return {};
  const auto next = [&] { return find_or_make(to, from, type.target, steps - 1); };
  switch (type.kind) {
    case TypeKind::Pointer: return to.pointer_to(next());
    case TypeKind::Userland: {
      // A structure of a program is no other graph's of that name.
      const TypeKind kind = from[from.resolve(id)].kind;
      const bool is_plain = kind == TypeKind::Integer || kind == TypeKind::Pointer;
      return to.userland(is_plain ? next() : TypeId{});
    }
    case TypeKind::Array: return to.array_of(next(), type.count);
    case TypeKind::Const:
    case TypeKind::Volatile:
    case TypeKind::Restrict: {
      Type qualified = type;
      qualified.target = next();
      return to.add(qualified);
    }
    default: break;
  }
  if (const auto known = find_named(to, type)) return *known;
  if (type.kind == TypeKind::Typedef) return next();
  TypeId made;
  if (type.kind == TypeKind::Function) {
    std::vector<Parameter> parameters;
    for (const Parameter& parameter : from.parameters(id)) {
      parameters.push_back({parameter.name, find_or_make(to, from, parameter.type, steps / 2)});
    }
    return to.add_function(next(), parameters, type.is_variadic);
  }
  if (type.kind == TypeKind::Enum) {
    made = to.add_enum(type.name, type.size, type.is_signed, {});
  } else if (type.kind == TypeKind::Integer || type.kind == TypeKind::Float) {
    made = to.add(type);
  } else {
    Type unknown;
    unknown.kind = TypeKind::Forward;
    unknown.name = type.name;
    unknown.is_union = type.kind == TypeKind::Union || type.is_union;
    made = to.add(unknown);
  }
  if (!type.name.empty()) to.index(made);
  return made;
}

}  // namespace

TypeId type_of_other_graph(TypeGraph& to, const TypeGraph& from, TypeId id) {
  return &to == &from ? id : find_or_make(to, from, id, kMostSteps);
}

d::ProbeSignature MachinesEnvironment::signature(const dif::ProbeDescription& pattern) {
  const auto [at, is_new] = signatures_.try_emplace(pattern.to_string());
  if (is_new) at->second = find(pattern, &d::Environment::signature);
  return at->second;
}

d::ProbeSignature MachinesEnvironment::find(const dif::ProbeDescription& pattern, Ask ask) {
  d::ProbeSignature signature;
  for (const Machine& machine : machines_) {
    if (!dif::is_for(pattern, machine.name)) continue;
    d::ProbeSignature found = (machine.environment->*ask)(pattern);
    if (found.matched == 0) signature.is_everywhere = false;
    if (found.matched == 0 || signature.matched != 0) {
      signature.matched += found.matched;
      continue;
    }
    const bool is_everywhere = signature.is_everywhere;
    signature = std::move(found);
    signature.is_everywhere = is_everywhere;
    for (TypeId& type : signature.arguments) {
      type = type_of_other_graph(types(), machine.environment->types(), type);
    }
  }
  return signature;
}

void MachinesEnvironment::for_each_signature(
    const dif::ProbeDescription& pattern,
    const std::function<bool(const d::ProbeSignature&)>& visit) {
  const bool of_first =
      dif::is_for(pattern, machines_.front().name) && first().match(pattern).matched != 0;
  if (of_first) return first().for_each_signature(pattern, visit);
  d::Environment::for_each_signature(pattern, visit);
}

std::optional<dif::ProbeDescription> MachinesEnvironment::probe_by_id(dif::ProbeId id) {
  std::optional<dif::ProbeDescription> common;
  for (const Machine& machine : machines_) {
    auto found = machine.environment->probe_by_id(id);
    if (found && common && *found != *common) return std::nullopt;
    if (found) common = std::move(found);
  }
  return common;
}

std::string MachinesEnvironment::why_no_match(const dif::ProbeDescription& pattern) {
  if (std::string why = why_no_machine(pattern); !why.empty()) return why;
  if (machines_.size() == 1) return first().why_no_match(pattern);
  for (const Machine& machine : machines_) {
    if (!dif::is_for(pattern, machine.name)) continue;
    if (machine.environment->match(pattern).matched != 0) continue;
    const std::string why = machine.environment->why_no_match(pattern);
    if (!why.empty()) return fmt::format("on {}, {}", machine.name, why);
    return fmt::format("{} has none (NAME:provider:module:function:name is about one machine)",
                       machine.name);
  }
  return {};
}

std::string MachinesEnvironment::why_no_machine(const dif::ProbeDescription& pattern) const {
  std::string names;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    if (dif::is_for(pattern, machines_[i].name)) return {};
    const bool last = i + 1 == machines_.size();
    names += (i == 0 ? "" : last ? " and " : ", ") + machines_[i].name;
  }
  if (names.empty()) {
    return fmt::format("there is no machine {}, and no other; {}", pattern.machine, kNameAGuest);
  }
  return fmt::format("there is no machine {}; there {} {}", pattern.machine,
                     machines_.size() == 1 ? "is" : "are", names);
}

}  // namespace ringside::cli
