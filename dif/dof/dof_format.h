// Shared by the writer and the reader of DOF: the container's layout, and one description of each
// part of a Program (transfer()) that both walk, so that they cannot disagree. Source of the
// container: DTrace's published object format (ident, header and section headers as in ELF; the
// numbers of the published section types). The entries are ours: docs/dof.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dif/program/program.h"

namespace ringside::dif::dof {

inline constexpr std::array<std::uint8_t, 4> kMagic = {0x7f, 'D', 'O', 'F'};
inline constexpr std::uint8_t kModelLp64 = 2, kLittleEndian = 1, kVersion = 2, kDifVersion = 2;
inline constexpr std::size_t kIdentBytes = 16, kHeaderBytes = 64, kSectionHeaderBytes = 32;
inline constexpr std::uint32_t kLoadable = 1;        // section flag
inline constexpr std::uint32_t kOurs = 0x5253'0000;  // private section types
inline constexpr std::uint32_t kFormat = 6;          // of the entries; in the header's flags

enum class Table : std::uint8_t {
#define DOF_TABLE(name, section_type, entry) name,
#include "dif/dof/tables.def"
};
inline constexpr auto kSectionTypes = std::to_array<std::uint32_t>({
#define DOF_TABLE(name, section_type, entry) section_type,
#include "dif/dof/tables.def"
});
inline constexpr std::size_t kTables = kSectionTypes.size();

using Option = std::pair<std::string, std::string>;
using Enumerator = std::pair<std::string, std::int64_t>;

// One function for each kind of entry. The archive `a` writes, reads or measures: number() any
// integer or bool, choice() an enumerator up to its last, action() a kind by its number, text() a
// string, list() the entries of another table, at_most_one() an optional one.

template <class A>
void transfer(A& a, std::uint32_t& word) {
  a.number(word);
}
template <class A>
void transfer(A& a, std::uint64_t& integer) {
  a.number(integer);
}

template <class A>
void transfer(A& a, ValueType& type) {
  a.choice(type.kind, ValueKind::UserAddress);
  a.number(type.is_signed);
  a.number(type.size);
}

template <class A>
void transfer(A& a, Variable& variable) {
  a.number(variable.id);
  a.choice(variable.scope, VariableScope::Clause);
  a.choice(variable.kind, VariableKind::Associative);
  transfer(a, variable.type);
  a.text(variable.name);
}

template <class A>
void transfer(A& a, Relocation& relocation) {
  a.choice(relocation.place, Relocation::Place::Variable);
  a.number(relocation.index);
  a.number(relocation.name);
}

template <class A>
void transfer(A& a, Difo& difo) {
  a.list(Table::Words, difo.text);
  a.list(Table::Integers, difo.integers);
  a.text(difo.strings);
  a.list(Table::Variables, difo.variables);
  transfer(a, difo.result);
  a.number(difo.destructive);
  a.list(Table::Relocations, difo.relocations);
}

template <class A>
void transfer(A& a, ProbeDescription& probe) {
  a.text(probe.provider);
  a.text(probe.module);
  a.text(probe.function);
  a.text(probe.name);
  a.text(probe.machine);
}

template <class A>
void transfer(A& a, Action& action) {
  a.action(action.kind);
  a.list(Table::Objects, action.arguments);
  a.text(action.format);
  a.text(action.text);
  a.list(Table::Indices, action.aggregations);
  a.number(action.argument);
  a.number(action.has_argument);
  a.number(action.quantize_increment);
  a.list(Table::Indices, action.shapes);
}

template <class A>
void transfer(A& a, Attributes& attributes) {
  a.choice(attributes.name, Stability::Standard);
  a.choice(attributes.data, Stability::Standard);
  a.choice(attributes.dependency, DependencyClass::Common);
}

template <class A>
void transfer(A& a, ArgumentType& argument) {
  a.number(argument.index);
  a.text(argument.type);
}

template <class A>
void transfer(A& a, Clause& clause) {
  a.list(Table::Probes, clause.probes);
  a.at_most_one(Table::Objects, clause.predicate);
  a.list(Table::Actions, clause.actions);
  bool repeats = clause.repeat.has_value();
  a.number(repeats);
  Repeat repeat = clause.repeat.value_or(Repeat{});
  a.number(repeat.first);
  a.number(repeat.limit);
  if (repeats) clause.repeat = repeat;
  a.number(clause.continues);
  a.text(clause.source_name);
  a.number(clause.line);
  transfer(a, clause.description_attributes);
  transfer(a, clause.statement_attributes);
  a.list(Table::ArgumentTypes, clause.argument_types);
  a.list(Table::Indices, clause.names);
}

template <class A>
void transfer(A& a, Option& option) {
  a.text(option.first);
  a.text(option.second);
}

template <class A>
void transfer(A& a, Aggregation& aggregation) {
  a.text(aggregation.name);
  a.choice(aggregation.function, AggregateFunction::Llquantize);
  a.list(Table::KeyTypes, aggregation.keys);
  a.number(aggregation.parameters);
}

template <class A>
void transfer(A& a, TypeShape::Member& member) {
  a.text(member.name);
  a.number(member.shape);
  a.number(member.bit_offset);
  a.number(member.bit_width);
}

template <class A>
void transfer(A& a, Enumerator& enumerator) {
  a.text(enumerator.first);
  a.number(enumerator.second);
}

template <class A>
void transfer(A& a, TypeShape& shape) {
  a.choice(shape.kind, TypeShape::Kind::Function);
  a.text(shape.name);
  a.number(shape.size);
  a.number(shape.is_signed);
  a.number(shape.is_char);
  a.number(shape.element);
  a.number(shape.count);
  a.list(Table::Members, shape.members);
  a.list(Table::Enumerators, shape.enumerators);
  bool is_named = shape.kernel_name.has_value();
  a.number(is_named);
  std::uint32_t name = shape.kernel_name.value_or(0);
  a.number(name);
  if (is_named) shape.kernel_name = name;
}

template <class A>
void transfer(A& a, KernelNeed& need) {
  a.text(need.module);
  a.text(need.type);
  a.text(need.release);
  a.text(need.build);
  a.number(need.types_hash);
}

template <class A>
void transfer(A& a, KernelName& name) {
  a.choice(name.kind, KernelName::Kind::Elements);
  a.text(name.module);
  a.text(name.name);
  a.text(name.path);
  a.text(name.type);
  a.number(name.value);
  a.number(name.fixed);
  a.number(name.unit);
  a.number(name.line);
}

/// The tables that nothing refers to are the program itself.
template <class A>
void transfer_program(A& a, Program& program, std::vector<Option>& options) {
  a.all(Table::Clauses, program.clauses);
  a.all(Table::Options, options);
  a.all(Table::Aggregations, program.aggregations);
  a.all(Table::Shapes, program.shapes);
  a.all(Table::Needs, program.needs);
  a.all(Table::KernelNames, program.kernel_names);
}

/// Bytes of one entry of each table.
std::array<std::uint32_t, kTables> entry_sizes();

}  // namespace ringside::dif::dof
