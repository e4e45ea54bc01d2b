// The rules. For one object: every word is an opcode; registers exist; r0 is never written; unused
// fields are zero; branches go forward and stay inside; indices lie in their tables; every user
// variable is declared with the scope and kind that the instruction needs; calls name a subroutine
// that works; the last word is ret; the result fits a record. For a program: variables mean the
// same in every object, aggregations exist and their parameters make sense, and actions have the
// arguments that the engine takes from them.
#include "dif/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "dif/aggregate_function.h"
#include "dif/builtin.h"
#include "dif/insn.h"

namespace ringside::dif {

namespace {

constexpr std::size_t kMostWords = (256 << 10) / sizeof(Insn);  // the published DIFO size limit
constexpr std::size_t kMostTableEntries = 0x10000;
constexpr std::uint32_t kMostReferenceBytes = 16 << 10;  // of one by-reference variable
constexpr std::uint32_t kMostRecordBytes = 1 << 20;      // of one recorded value
constexpr std::uint64_t kMostClauseBytes = 1u << 31;     // of one record, whose offsets are 32 bits

class DifoVerifier {
 public:
  explicit DifoVerifier(const Difo& difo) : difo_(difo) {}

  Result<void> verify() {
    TRY(check_tables());
    for (const Variable& variable : difo_.variables) TRY(check_variable(variable));
    for (pc_ = 0; pc_ < difo_.text.size(); ++pc_) TRY(check_instruction());
    if (Insn{difo_.text.back()}.op() != Opcode::Ret) {
      return fail(ErrorCode::Invalid, "the last instruction is not ret");
    }
    return {};
  }

 private:
  template <class... Args>
  tl::unexpected<Error> refuse(fmt::format_string<Args...> text, Args&&... args) const {
    return fail(ErrorCode::Invalid, fmt::format("instruction {}: {}", pc_,
                                                fmt::format(text, std::forward<Args>(args)...)));
  }

  Result<void> check_tables() const;
  Result<void> check_type(const ValueType& type, std::uint32_t most, std::string_view what) const;
  Result<void> check_variable(const Variable& variable) const;
  Result<void> check_instruction() const;
  Result<void> check_form(Insn in, Form form) const;
  Result<void> registers(std::initializer_list<std::uint8_t> numbers) const;
  Result<void> written(std::uint8_t number) const;
  Result<void> zero(std::initializer_list<std::uint8_t> fields) const;
  Result<void> check_branch(Insn in) const;
  Result<void> check_constant(Insn in) const;
  Result<void> check_variable_use(Insn in, bool stores) const;
  Result<void> check_push(Insn in) const;
  Result<void> check_call(Insn in) const;

  const Difo& difo_;
  std::size_t pc_ = 0;
};

Result<void> DifoVerifier::check_tables() const {
  if (difo_.text.empty()) return fail(ErrorCode::Invalid, "there are no instructions");
  if (difo_.text.size() > kMostWords) return fail(ErrorCode::Limit, "the code is too long");
  if (difo_.integers.size() > kMostTableEntries || difo_.strings.size() > kMostTableEntries) {
    return fail(ErrorCode::Limit, "a constant table is too long");
  }
  if (!difo_.strings.empty() && difo_.strings.back() != '\0') {
    return fail(ErrorCode::Invalid, "the last string constant does not end");
  }
  return check_type(difo_.result, kMostRecordBytes, "the result");
}

Result<void> DifoVerifier::check_type(const ValueType& type, std::uint32_t most,
                                      std::string_view what) const {
  switch (type.kind) {
    case ValueKind::Void: return {};
    case ValueKind::Integer: {
      const bool fits = type.size == 1 || type.size == 2 || type.size == 4 || type.size == 8;
      if (fits) return {};
      break;
    }
    case ValueKind::String:
      if (type.size <= most) return {};
      break;
    case ValueKind::Bytes:
      if (type.size > 0 && type.size <= most) return {};
      break;
  }
  return fail(ErrorCode::Invalid, fmt::format("{} cannot have {} bytes", what, type.size));
}

Result<void> DifoVerifier::check_variable(const Variable& variable) const {
  if (variable.id < kFirstUserVariable) {
    return fail(ErrorCode::Invalid, fmt::format("variable id {:#x} is reserved", variable.id));
  }
  const bool known =
      variable.scope <= VariableScope::Clause && variable.kind <= VariableKind::Associative;
  if (!known || variable.type.kind == ValueKind::Void) {
    return fail(ErrorCode::Invalid, fmt::format("variable '{}' has no such kind", variable.name));
  }
  if (variable.scope == VariableScope::Clause && variable.kind == VariableKind::Associative) {
    return fail(ErrorCode::Invalid,
                fmt::format("clause-local variable '{}' cannot be an array", variable.name));
  }
  return check_type(variable.type, kMostReferenceBytes,
                    fmt::format("variable '{}'", variable.name));
}

Result<void> DifoVerifier::check_instruction() const {
  const Insn in{difo_.text[pc_]};
  const auto info = opcode_info(static_cast<std::uint8_t>(in.op()));
  if (!info) return refuse("{} is no opcode", in.word >> 24);
  return check_form(in, info->form);
}

Result<void> DifoVerifier::check_form(Insn in, Form form) const {
  switch (form) {
    case Form::Rrr: TRY(registers({in.r1(), in.r2()})); return written(in.rd());
    case Form::Rr:
    case Form::Load:
      TRY(registers({in.r1()}));
      TRY(zero({in.r2()}));
      return written(in.rd());
    case Form::Compare: TRY(registers({in.r1(), in.r2()})); return zero({in.rd()});
    case Form::Test: TRY(registers({in.r1()})); return zero({in.r2(), in.rd()});
    case Form::Branch: return check_branch(in);
    case Form::Store:
      TRY(registers({in.r1()}));
      TRY(zero({in.r2()}));
      return written(in.rd());
    case Form::Copy: TRY(registers({in.r1(), in.r2()})); return written(in.rd());
    case Form::Return: TRY(registers({in.rd()})); return zero({in.r1(), in.r2()});
    case Form::None: return zero({in.r1(), in.r2(), in.rd()});
    case Form::SetInteger:
    case Form::SetString: TRY(check_constant(in)); return written(in.rd());
    case Form::LoadArray:
      if (in.op() != Opcode::Ldga || in.r1() != kArgsArray) {
        return refuse("there is no array {:#x} to load from", in.r1());
      }
      TRY(registers({in.r2()}));
      return written(in.rd());
    case Form::StoreArray: return refuse("no built-in array can be written");
    case Form::LoadVariable: TRY(check_variable_use(in, false)); return written(in.rd());
    case Form::StoreVariable: TRY(check_variable_use(in, true)); return registers({in.rd()});
    case Form::Push: return check_push(in);
    case Form::Call: TRY(check_call(in)); return written(in.rd());
    case Form::Translate: return refuse("translators are resolved by the compiler");
  }
  return {};
}

Result<void> DifoVerifier::registers(std::initializer_list<std::uint8_t> numbers) const {
  for (const std::uint8_t number : numbers) {
    if (number >= kRegisters) return refuse("there is no register {}", number);
  }
  return {};
}

/// A register that is written, or that holds the address of a store: r0 is neither.
Result<void> DifoVerifier::written(std::uint8_t number) const {
  if (number == 0) return refuse("register 0 cannot be written");
  return registers({number});
}

Result<void> DifoVerifier::zero(std::initializer_list<std::uint8_t> fields) const {
  for (const std::uint8_t field : fields) {
    if (field != 0) return refuse("unused bits are set");
  }
  return {};
}

Result<void> DifoVerifier::check_branch(Insn in) const {
  if (in.label() <= pc_) return refuse("branch to {} goes backward", in.label());
  if (in.label() >= difo_.text.size()) return refuse("branch to {} leaves the code", in.label());
  return {};
}

Result<void> DifoVerifier::check_constant(Insn in) const {
  const bool integer = in.op() == Opcode::Setx;
  const std::size_t size = integer ? difo_.integers.size() : difo_.strings.size();
  if (in.index() < size) return {};
  return refuse("there is no {} constant {}", integer ? "integer" : "string", in.index());
}

struct VariableUse {
  VariableScope scope;
  VariableKind kind;
};

VariableUse use_of(Opcode op) {
  switch (op) {
    case Opcode::Ldts:
    case Opcode::Stts: return {VariableScope::Thread, VariableKind::Scalar};
    case Opcode::Ldls:
    case Opcode::Stls: return {VariableScope::Clause, VariableKind::Scalar};
    case Opcode::Ldgaa:
    case Opcode::Stgaa: return {VariableScope::Global, VariableKind::Associative};
    case Opcode::Ldtaa:
    case Opcode::Sttaa: return {VariableScope::Thread, VariableKind::Associative};
    default: return {VariableScope::Global, VariableKind::Scalar};  // ldgs, stgs
  }
}

Result<void> DifoVerifier::check_variable_use(Insn in, bool stores) const {
  const std::uint16_t id = in.index();
  if (id < kFirstUserVariable) {
    if (stores) return refuse("variable {:#x} cannot be written", id);
    if (in.op() == Opcode::Ldgs && find_builtin(id)) return {};
    return refuse("there is no built-in variable {:#x}", id);
  }
  const VariableUse use = use_of(in.op());
  const bool declared = std::ranges::any_of(difo_.variables, [&](const Variable& variable) {
    return variable.id == id && variable.scope == use.scope && variable.kind == use.kind;
  });
  if (!declared) return refuse("variable {:#x} is not declared for this use", id);
  return {};
}

Result<void> DifoVerifier::check_push(Insn in) const {
  const auto type = static_cast<TupleType>(in.r1());
  const bool known =
      type == TupleType::Value || (type == TupleType::String && in.op() == Opcode::Pushtr);
  if (!known) return refuse("tuple type {} cannot be pushed so", in.r1());
  return registers({in.r2(), in.rd()});
}

Result<void> DifoVerifier::check_call(Insn in) const {
  const auto info = find_subroutine(in.index());
  if (!info) return refuse("there is no subroutine {}", in.index());
  if (info->status == SubroutineStatus::Missing) {
    return fail(ErrorCode::Unsupported,
                fmt::format("instruction {}: {}() is not supported yet", pc_, info->name));
  }
  return {};
}

// ---- programs ----

Result<void> check_arguments(const Action& action, const Program& program) {
  const auto expect = [&](std::size_t wanted) -> Result<void> {
    if (action.arguments.size() == wanted) return {};
    return fail(ErrorCode::Invalid,
                fmt::format("{} arguments where {} are needed", action.arguments.size(), wanted));
  };
  switch (action.kind) {
    case ActionKind::Trace:
    case ActionKind::Exit:
    case ActionKind::Normalize:
    case ActionKind::Evaluate: return expect(1);
    case ActionKind::Tracemem:
      if (action.argument == 0 || action.argument > kMostRecordBytes) {
        return fail(ErrorCode::Invalid, "tracemem() of no possible size");
      }
      return expect(1);
    case ActionKind::Aggregate: {
      if (action.aggregations.size() != 1) return fail(ErrorCode::Invalid, "no aggregation");
      const Aggregation& aggregation = program.aggregations[action.aggregations[0]];
      const bool has_value = aggregation.function != AggregateFunction::Count;
      return expect(aggregation.keys.size() + (has_value ? 1 : 0) +
                    (action.quantize_increment ? 1 : 0));
    }
    case ActionKind::Clear:
    case ActionKind::Trunc:
    case ActionKind::Denormalize:
    case ActionKind::Setopt:
    case ActionKind::Printa: return expect(0);
    case ActionKind::Printf: return {};
  }
  return {};
}

Result<void> check_action(const Action& action, const Program& program) {
  for (const std::uint32_t aggregation : action.aggregations) {
    if (aggregation >= program.aggregations.size()) {
      return fail(ErrorCode::Invalid, fmt::format("there is no aggregation {}", aggregation));
    }
  }
  TRY(check_arguments(action, program));
  if (action.kind != ActionKind::Aggregate) return {};
  const auto& keys = program.aggregations[action.aggregations[0]].keys;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const ValueType& given = action.arguments[i].result;
    if (given.kind != keys[i].kind || given.size != keys[i].size) {
      return fail(ErrorCode::Invalid,
                  fmt::format("key {} has another type than its aggregation's", i));
    }
  }
  return {};
}

/// No record of the clause is longer, whatever strsize is.
std::uint64_t most_recorded_bytes(const Clause& clause) {
  constexpr std::uint64_t kAlignment = 8;
  std::uint64_t bytes = 0;
  for (const Action& action : clause.actions) {
    for (const Difo& difo : action.arguments) {
      const bool known = difo.result.kind != ValueKind::String;
      bytes += kAlignment + (action.kind == ActionKind::Tracemem ? action.argument
                             : known                             ? difo.result.size
                                                                 : kMostRecordBytes);
    }
  }
  return bytes;
}

/// A variable means the same wherever it is declared, because all objects share its storage.
class VariableTable {
 public:
  Result<void> add(const Difo& difo) {
    for (const Variable& variable : difo.variables) {
      const auto [at, fresh] = known_.emplace(std::pair(variable.scope, variable.id), variable);
      if (!fresh && (at->second.kind != variable.kind || at->second.type != variable.type)) {
        return fail(ErrorCode::Invalid,
                    fmt::format("variable '{}' changes its type", variable.name));
      }
    }
    return {};
  }

 private:
  std::map<std::pair<VariableScope, std::uint16_t>, Variable> known_;
};

Result<void> in_context(Result<void> result, std::size_t clause, std::string_view where) {
  if (result) return result;
  return fail(result.error().code,
              fmt::format("DIF of clause {}, {}: {}", clause + 1, where, result.error().message));
}

Result<void> check_clause(Clause& clause, std::size_t number, const Program& program,
                          VariableTable& variables) {
  const auto check = [&](Difo& difo) -> Result<void> {
    TRY(verify_difo(difo));
    // No instruction that passes can change the guest: copyout and stga are refused.
    difo.destructive = false;
    return variables.add(difo);
  };
  if (clause.predicate) TRY(in_context(check(*clause.predicate), number, "predicate"));
  for (std::size_t i = 0; i < clause.actions.size(); ++i) {
    Action& action = clause.actions[i];
    const std::string where = fmt::format("action {}", i + 1);
    for (Difo& difo : action.arguments) TRY(in_context(check(difo), number, where));
    TRY(in_context(check_action(action, program), number, where));
  }
  if (most_recorded_bytes(clause) > kMostClauseBytes) {
    return fail(ErrorCode::Limit, fmt::format("clause {} records more than fits", number + 1));
  }
  return {};
}

}  // namespace

Result<void> verify_difo(const Difo& difo) {
  return DifoVerifier(difo).verify();
}

Result<VerifiedProgram> verify_program(Program program) {
  for (const Aggregation& aggregation : program.aggregations) {
    TRY(check_aggregation(aggregation));
  }
  VariableTable variables;
  for (std::size_t i = 0; i < program.clauses.size(); ++i) {
    TRY(check_clause(program.clauses[i], i, program, variables));
  }
  return VerifiedProgram(std::move(program));
}

}  // namespace ringside::dif
