// The rules for one object: every word is an opcode; registers exist; r0 is never written; unused
// fields are zero; branches go forward and stay inside; indices lie in their tables; every user
// variable is declared with the scope and kind that the instruction needs; calls name a subroutine
// that works; the last word is ret; the result fits a record. Those for whole programs:
// verify_program.cc.
#include "dif/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "dif/program/builtin.h"
#include "dif/program/insn.h"

namespace ringside::dif {

namespace {

constexpr std::size_t kMostWords = (256 << 10) / sizeof(Insn);  // the published DIFO size limit
constexpr std::size_t kMostTableEntries = 0x10000;
constexpr std::uint32_t kMostReferenceBytes = 16 << 10;  // of one by-reference variable

class DifoVerifier {
 public:
  explicit DifoVerifier(const Difo& difo) : difo_(difo) {}

  Result<void> verify() {
    TRY(check_tables());
    for (const Variable& variable : difo_.variables) {
      TRY(check_variable(variable));
      declared_.emplace(variable.scope, variable.kind, variable.id);
    }
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
  std::set<std::tuple<VariableScope, VariableKind, std::uint16_t>> declared_;
  std::size_t pc_ = 0;
};

Result<void> DifoVerifier::check_tables() const {
  if (difo_.text.empty()) return fail(ErrorCode::Invalid, "there are no instructions");
  if (difo_.text.size() > kMostWords) return fail(ErrorCode::Limit, "the code is too long");
  if (difo_.variables.size() > kMostTableEntries) {
    return fail(ErrorCode::Limit, "there are too many variables");
  }
  if (difo_.integers.size() > kMostTableEntries || difo_.strings.size() > kMostTableEntries) {
    return fail(ErrorCode::Limit, "a constant table is too long");
  }
  if (!difo_.strings.empty() && difo_.strings.back() != '\0') {
    return fail(ErrorCode::Invalid, "the last string constant does not end");
  }
  return check_value_type(difo_.result, kMostRecordBytes, "the result");
}

Result<void> DifoVerifier::check_variable(const Variable& variable) const {
  if (variable.id < kFirstUserVariable) {
    return fail(ErrorCode::Invalid, fmt::format("variable id {:#x} is reserved", variable.id));
  }
  const bool known =
      variable.scope <= VariableScope::Clause && variable.kind <= VariableKind::Associative;
  const ValueKind kind = variable.type.kind;
  const bool storable =
      kind == ValueKind::Integer || kind == ValueKind::String || kind == ValueKind::Bytes;
  if (!known || !storable) {
    return fail(ErrorCode::Invalid, fmt::format("variable '{}' has no such kind", variable.name));
  }
  if (variable.scope == VariableScope::Clause && variable.kind == VariableKind::Associative) {
    return fail(ErrorCode::Invalid,
                fmt::format("clause-local variable '{}' cannot be an array", variable.name));
  }
  return check_value_type(variable.type, kMostReferenceBytes,
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
      if (in.op() != Opcode::Ldga || !find_builtin_array(in.r1())) {
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
  if (!declared_.contains({use.scope, use.kind, id}))
    return refuse("variable {:#x} is not declared for this use", id);
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
                fmt::format("instruction {}: {}() {}", pc_, info->name, info->reason));
  }
  return {};
}

}  // namespace

Result<void> check_value_type(const ValueType& type, std::uint32_t most, std::string_view what) {
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
    case ValueKind::KernelStack:
      if (type.size >= 8 && type.size % 8 == 0 && type.size <= most) return {};
      break;
    case ValueKind::UserStack:  // the process id comes before the frames
      if (type.size >= 16 && type.size % 8 == 0 && type.size <= most) return {};
      break;
    case ValueKind::KernelSymbol:
    case ValueKind::KernelModule:
      if (type.size == 8) return {};
      break;
    case ValueKind::UserSymbol:
    case ValueKind::UserModule:
    case ValueKind::UserAddress:
      if (type.size == 16) return {};
      break;
  }
  return fail(ErrorCode::Invalid, fmt::format("{} cannot have {} bytes", what, type.size));
}

Result<void> verify_difo(const Difo& difo) {
  return DifoVerifier(difo).verify();
}

std::string_view guest_changing_call(const Difo& difo) {
  for (const std::uint32_t word : difo.text) {
    const Insn in{word};
    if (in.op() == Opcode::Stga) return "stga";
    if (in.op() != Opcode::Call) continue;
    const auto called = find_subroutine(in.index());
    if (called && called->changes != Changes::Nothing) return called->name;
  }
  return {};
}

}  // namespace ringside::dif
