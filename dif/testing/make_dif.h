// Short ways to make DIF objects, clauses and programs in tests and benches.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "dif/program/builtin.h"
#include "dif/program/insn.h"
#include "dif/program/program.h"

namespace ringside::dif::testing {

inline constexpr ValueType kLong{ValueKind::Integer, true, 8};
inline constexpr ValueType kString{ValueKind::String, false, 0};

inline Difo difo(std::vector<std::uint32_t> text, ValueType result = kLong) {
  Difo made;
  made.text = std::move(text);
  made.strings = std::string(1, '\0');
  made.result = result;
  return made;
}
/// An object whose value is the constant.
inline Difo constant(std::uint64_t value) {
  Difo made = difo({encode_indexed(Opcode::Setx, 0, 1), encode_return(1)});
  made.integers = {value};
  return made;
}
inline Difo constant(const std::string& text) {
  Difo made = difo({encode_indexed(Opcode::Sets, 1, 1), encode_return(1)}, kString);
  made.strings += text + '\0';
  return made;
}
inline Difo builtin(Builtin which, ValueType result = kLong) {
  return difo({encode_indexed(Opcode::Ldgs, static_cast<unsigned>(which), 1), encode_return(1)},
              result);
}
/// An object that loads 8 bytes of guest kernel memory.
inline Difo load_from(std::uint64_t address) {
  Difo made =
      difo({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Ldx, 1, 0, 2), encode_return(2)});
  made.integers = {address};
  return made;
}

inline Action action(ActionKind kind, std::vector<Difo> arguments) {
  Action made;
  made.kind = kind;
  made.arguments = std::move(arguments);
  return made;
}
inline Action aggregate(std::uint32_t aggregation, std::vector<Difo> arguments) {
  Action made = action(ActionKind::Aggregate, std::move(arguments));
  made.aggregations = {aggregation};
  return made;
}
inline Clause clause(std::vector<Action> actions) {
  Clause made;
  made.actions = std::move(actions);
  return made;
}
inline Program program(std::vector<Clause> clauses, std::vector<Aggregation> aggregations = {}) {
  Program made;
  made.clauses = std::move(clauses);
  made.aggregations = std::move(aggregations);
  return made;
}
/// The program of `probe { @[execname] = count(); }`.
inline Program count_by_execname() {
  return program({clause({aggregate(0, {builtin(Builtin::Execname, kString)})})},
                 {Aggregation{"", AggregateFunction::Count, {kString}, 0}});
}

}  // namespace ringside::dif::testing
