// In this file, top to bottom: arithmetic, set-up, parts of instructions, the interpreter, what
// compiled code calls.
#include "dif/evaluate/evaluate.h"

#include <algorithm>
#include <type_traits>

namespace ringside::dif {

namespace {

/// Signed division with every input defined. Both cases taken out here raise SIGFPE on x86, which
/// would end the tracer, not the script.
Result<std::uint64_t, Fault> divide_signed(std::uint64_t a, std::uint64_t b) {
  if (b == 0) return raise(FaultKind::DivideByZero);
  if (b == UINT64_MAX) return 0 - a;  // by -1: two's complement negation, MIN stays MIN
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(a) / static_cast<std::int64_t>(b));
}

Result<std::uint64_t, Fault> remainder_signed(std::uint64_t a, std::uint64_t b) {
  if (b == 0) return raise(FaultKind::DivideByZero);
  if (b == UINT64_MAX) return 0;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(a) % static_cast<std::int64_t>(b));
}

Result<std::uint64_t, Fault> divide(std::uint64_t a, std::uint64_t b) {
  if (b == 0) return raise(FaultKind::DivideByZero);
  return a / b;
}

Result<std::uint64_t, Fault> remainder(std::uint64_t a, std::uint64_t b) {
  if (b == 0) return raise(FaultKind::DivideByZero);
  return a % b;
}

/// As a register holds it: extended by its sign when T has one.
template <class T>
std::uint64_t extend(T value) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  } else {
    return value;
  }
}

}  // namespace

ConstantStrings::ConstantStrings(const Program& program) {
  std::unordered_map<std::string_view, std::uint32_t> known;  // most objects have none, or the same
  for_each_difo(program, [&](const Difo& difo) {
    const auto [at, fresh] = known.emplace(difo.strings, static_cast<std::uint32_t>(text_.size()));
    if (fresh) text_ += difo.strings;
    begins_.emplace(&difo, at->second);
  });
}

Evaluator::Evaluator(const Program& program, const EngineOptions& options, SharedState& shared,
                     SpeculationIds& speculations, unsigned vcpu)
    : constants_(shared.constants),
      code_(shared.code),
      access_(shared.locks),
      memory_(options),
      variables_(program, options, shared.variables, access_, memory_, shared.first_vcpu + vcpu),
      builtins_(memory_),
      subroutines_(memory_, builtins_, access_, speculations) {
  memory_.set_constants(constants_.text());
  memory_.set_access(access_);
  run_.evaluator = this;
  run_.kernel = &memory_.kernel_lines();
  run_.user = &memory_.user_lines();
  run_.locals = variables_.locals();
}

void Evaluator::begin_firing(const ProbeIdentity& probe, const FireRecord& record,
                             const GuestContext& guest) {
  memory_.begin_firing(guest.kernel(), guest.user());
  builtins_.begin_firing(probe, record, guest);
  subroutines_.begin_firing();
}

void Evaluator::begin_clause(EcbId ecb) {
  builtins_.begin_clause(ecb);
}

Result<std::uint64_t, Fault> Evaluator::interpret(const Difo& difo) {
  regs_ = {};
  cc_ = {};
  auto result = run(difo);
  if (!result) result.error().pc = static_cast<std::uint32_t>(pc_ * sizeof(Insn));
  return result;
}

/// A null pointer compares as the empty string.
Result<int, Fault> Evaluator::order_strings(std::uint64_t a, std::uint64_t b) {
  memory_.release_staging();
  std::string_view left, right;
  if (a != 0) left = TRY(memory_.another_string(a, memory_.string_size()));
  if (b != 0) right = TRY(memory_.another_string(b, memory_.string_size()));
  return left.compare(right);
}

template <class T>
Result<std::uint64_t, Fault> Evaluator::load(std::uint64_t at) {
  T value{};
  TRY(memory_.read(at, std::as_writable_bytes(std::span(&value, 1))));
  return extend(value);
}

template <class T>
Result<std::uint64_t, Fault> Evaluator::load_user(std::uint64_t at) {
  T value{};
  TRY(memory_.read_user(at, std::as_writable_bytes(std::span(&value, 1))));
  return extend(value);
}

template <class T>
Result<std::uint64_t, Fault> Evaluator::load_state(std::uint64_t at) {
  if (!is_handle(at)) return raise(FaultKind::KernelPrivilege, at);
  T value{};
  TRY(memory_.read_state(at, std::as_writable_bytes(std::span(&value, 1))));
  return extend(value);
}

template <class T>
Result<void, Fault> Evaluator::store(std::uint64_t at, std::uint64_t value) {
  if (at % sizeof(T) != 0) return raise(FaultKind::BadAlignment, at);
  const auto out = TRY(memory_.writable(at, sizeof(T)));
  const T narrow = static_cast<T>(value);
  std::memcpy(out.data(), &narrow, sizeof narrow);
  return {};
}

/// Strings are pushed by reference and read when they are used.
Result<void, Fault> Evaluator::push(Insn in) {
  if (run_.tuple_depth == kTupleSlots) return raise(FaultKind::TupleOverflow);
  const std::uint64_t size = regs_[in.r2()];
  ValueKind kind = ValueKind::Integer;
  if (in.op() == Opcode::Pushtr) {
    if (static_cast<std::int64_t>(size) < 0) return raise(FaultKind::IllegalOperation);
    const bool is_string = static_cast<TupleType>(in.r1()) == TupleType::String;
    kind = is_string ? ValueKind::String : ValueKind::Bytes;
  }
  run_.tuple[run_.tuple_depth++] = {regs_[in.rd()], size, kind};
  return {};
}

Result<std::uint64_t, Fault> Evaluator::zeroed_scratch(std::uint64_t size) {
  const std::uint64_t handle = TRY(memory_.allocate(size));
  std::ranges::fill(TRY(memory_.writable(handle, size)), std::byte{0});
  return handle;
}

std::uint64_t Evaluator::constant_string(const Difo& difo, std::uint16_t index) const {
  return make_handle(Arena::Constants, constants_.of(difo) + index);
}

Result<void, Fault> Evaluator::copy(std::uint64_t from, std::uint64_t size, std::uint64_t to) {
  const auto out = TRY(memory_.writable(to, size));
  return memory_.read(from, out);
}

Result<std::uint64_t, Fault> Evaluator::load_scalar(std::uint16_t id) {
  if (id >= kFirstUserVariable) return variables_.load(VariableScope::Global, id);
  return builtins_.load(id);
}

Result<std::uint64_t, Fault> Evaluator::load_element(VariableScope scope, std::uint16_t id,
                                                     bool keyed) {
  const Owner owner = scope == VariableScope::Thread ? TRY(builtins_.owner()) : Owner{};
  return variables_.load_dynamic(scope, id, owner, keyed ? tuple() : std::span<TupleValue>());
}

Result<void, Fault> Evaluator::store_element(VariableScope scope, std::uint16_t id, bool keyed,
                                             std::uint64_t value) {
  const Owner owner = scope == VariableScope::Thread ? TRY(builtins_.owner()) : Owner{};
  return variables_.store_dynamic(scope, id, owner, keyed ? tuple() : std::span<TupleValue>(),
                                  value);
}

/// The verifier checked register numbers, indices, forward branches and the closing ret, so none
/// of that is checked here.
// NOLINTNEXTLINE(readability-function-size): one switch, so that the compiler checks it for holes.
Result<std::uint64_t, Fault> Evaluator::run(const Difo& difo) {
  const std::uint32_t* const text = difo.text.data();
  for (std::size_t pc = 0;; ++pc) {
    pc_ = pc;  // for a fault's report; the loop itself keeps to the local
    const Insn in{text[pc]};
    // Fields that are no registers are masked so that reading them as such is harmless.
    const std::uint64_t a = regs_[in.r1() % kRegisters], b = regs_[in.r2() % kRegisters];
    std::uint64_t& d = regs_[in.rd() % kRegisters];
    const Opcode op = in.op();
    switch (op) {  // no default: -Wswitch names the opcode we forgot
      case Opcode::Or: d = a | b; break;
      case Opcode::Xor: d = a ^ b; break;
      case Opcode::And: d = a & b; break;
      case Opcode::Sll: d = a << (b & 63); break;
      case Opcode::Srl: d = a >> (b & 63); break;
      case Opcode::Sra:
        d = static_cast<std::uint64_t>(static_cast<std::int64_t>(a) >> (b & 63));
        break;
      case Opcode::Sub: d = a - b; break;
      case Opcode::Add: d = a + b; break;
      case Opcode::Mul: d = a * b; break;
      case Opcode::Sdiv: d = TRY(divide_signed(a, b)); break;
      case Opcode::Udiv: d = TRY(divide(a, b)); break;
      case Opcode::Srem: d = TRY(remainder_signed(a, b)); break;
      case Opcode::Urem: d = TRY(remainder(a, b)); break;
      case Opcode::Not: d = ~a; break;
      case Opcode::Mov: d = a; break;
      case Opcode::Cmp: cc_ = compare(a, b); break;
      case Opcode::Tst: cc_ = compare(a, 0); break;
      case Opcode::Scmp: {
        const int order = TRY(order_strings(a, b));
        cc_ = {.negative = order < 0, .zero = order == 0};
        break;
      }
      case Opcode::Ba:
      case Opcode::Be:
      case Opcode::Bne:
      case Opcode::Bg:
      case Opcode::Bgu:
      case Opcode::Bge:
      case Opcode::Bgeu:
      case Opcode::Bl:
      case Opcode::Blu:
      case Opcode::Ble:
      case Opcode::Bleu:
        if (takes_branch(op, cc_)) pc = in.label() - std::size_t{1};
        break;
      case Opcode::Ldsb:
      case Opcode::Ldsh:
      case Opcode::Ldsw:
      case Opcode::Ldub:
      case Opcode::Lduh:
      case Opcode::Lduw:
      case Opcode::Ldx:
      case Opcode::Uldsb:
      case Opcode::Uldsh:
      case Opcode::Uldsw:
      case Opcode::Uldub:
      case Opcode::Ulduh:
      case Opcode::Ulduw:
      case Opcode::Uldx:
      case Opcode::Rldsb:
      case Opcode::Rldsh:
      case Opcode::Rldsw:
      case Opcode::Rldub:
      case Opcode::Rlduh:
      case Opcode::Rlduw:
      case Opcode::Rldx:
      case Opcode::Allocs: d = TRY(perform(op, a)); break;
      case Opcode::Stb:
      case Opcode::Sth:
      case Opcode::Stw:
      case Opcode::Stx: TRY(perform(op, d, a)); break;
      case Opcode::Copys: TRY(perform(op, a, b, d)); break;
      case Opcode::Ret: return d;
      case Opcode::Nop: break;
      case Opcode::Setx: d = difo.integers[in.index()]; break;
      case Opcode::Sets: d = constant_string(difo, in.index()); break;
      case Opcode::Ldga: d = TRY(perform(op, in.r1(), b)); break;
      case Opcode::Ldls: d = variables_.load(VariableScope::Clause, in.index()); break;
      case Opcode::Ldgs:
      case Opcode::Ldts:
      case Opcode::Ldgaa:
      case Opcode::Ldtaa:
      case Opcode::Call: d = TRY(perform(op, in.index())); break;
      case Opcode::Stgs:
      case Opcode::Stls:
      case Opcode::Stts:
      case Opcode::Stgaa:
      case Opcode::Sttaa: TRY(perform(op, in.index(), d)); break;
      case Opcode::Pushtr:
      case Opcode::Pushtv: TRY(push(in)); break;
      case Opcode::Popts:
        if (run_.tuple_depth > 0) --run_.tuple_depth;
        break;
      case Opcode::Flushts: run_.tuple_depth = 0; break;
      case Opcode::Ldta:
      case Opcode::Stga:
      case Opcode::Xlate:
      case Opcode::Xlarg: return raise(FaultKind::IllegalOperation);  // the verifier refuses them
    }
  }
}

/// The work of one opcode that is more than a number's, for compiled code and the interpreter. The
/// operands are, in the order of insn.h: the array or the variable's or subroutine's number; the
/// values of r1 and r2; the value of rd where it is no result. Of a store the address comes first.
/// Answers with what rd gets, or with the order of two strings.
template <Opcode kOp>
Result<std::uint64_t, Fault> Evaluator::perform(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const auto id = static_cast<std::uint16_t>(a);
  const auto done = [](const Result<void, Fault>& result) {
    return result.map([] { return std::uint64_t{0}; });
  };
  switch (kOp) {
    case Opcode::Scmp: return static_cast<std::uint64_t>(std::int64_t{TRY(order_strings(a, b))});
    case Opcode::Ldsb: return load<std::int8_t>(a);
    case Opcode::Ldsh: return load<std::int16_t>(a);
    case Opcode::Ldsw: return load<std::int32_t>(a);
    case Opcode::Ldub: return load<std::uint8_t>(a);
    case Opcode::Lduh: return load<std::uint16_t>(a);
    case Opcode::Lduw: return load<std::uint32_t>(a);
    case Opcode::Ldx: return load<std::uint64_t>(a);
    case Opcode::Uldsb: return load_user<std::int8_t>(a);
    case Opcode::Uldsh: return load_user<std::int16_t>(a);
    case Opcode::Uldsw: return load_user<std::int32_t>(a);
    case Opcode::Uldub: return load_user<std::uint8_t>(a);
    case Opcode::Ulduh: return load_user<std::uint16_t>(a);
    case Opcode::Ulduw: return load_user<std::uint32_t>(a);
    case Opcode::Uldx: return load_user<std::uint64_t>(a);
    case Opcode::Rldsb: return load_state<std::int8_t>(a);
    case Opcode::Rldsh: return load_state<std::int16_t>(a);
    case Opcode::Rldsw: return load_state<std::int32_t>(a);
    case Opcode::Rldub: return load_state<std::uint8_t>(a);
    case Opcode::Rlduh: return load_state<std::uint16_t>(a);
    case Opcode::Rlduw: return load_state<std::uint32_t>(a);
    case Opcode::Rldx: return load_state<std::uint64_t>(a);
    case Opcode::Stb: return done(store<std::uint8_t>(a, b));
    case Opcode::Sth: return done(store<std::uint16_t>(a, b));
    case Opcode::Stw: return done(store<std::uint32_t>(a, b));
    case Opcode::Stx: return done(store<std::uint64_t>(a, b));
    case Opcode::Allocs: return zeroed_scratch(a);
    case Opcode::Copys: return done(copy(a, b, c));
    case Opcode::Ldga:
      return a == kArgsArray ? builtins_.argument(b)
                             : builtins_.machine_register(static_cast<std::uint8_t>(a), b);
    case Opcode::Ldgs: return load_scalar(id);
    case Opcode::Stgs: return done(variables_.store(VariableScope::Global, id, b));
    case Opcode::Stls: return done(variables_.store(VariableScope::Clause, id, b));
    case Opcode::Ldts: return load_element(VariableScope::Thread, id, false);
    case Opcode::Stts: return done(store_element(VariableScope::Thread, id, false, b));
    case Opcode::Ldgaa: return load_element(VariableScope::Global, id, true);
    case Opcode::Stgaa: return done(store_element(VariableScope::Global, id, true, b));
    case Opcode::Ldtaa: return load_element(VariableScope::Thread, id, true);
    case Opcode::Sttaa: return done(store_element(VariableScope::Thread, id, true, b));
    case Opcode::Call: {
      const std::uint64_t value = TRY(subroutines_.call(static_cast<Subroutine>(id), tuple()));
      run_.tuple_depth = 0;
      return value;
    }
    default: return raise(FaultKind::IllegalOperation);  // both do it by themselves
  }
}

template <Opcode kOp>
NativeAnswer Evaluator::call(RunState& run, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const Result<std::uint64_t, Fault> result = run.evaluator->perform<kOp>(a, b, c);
  if (result) return {*result, 0};
  run.fault = result.error();
  return {0, 1};
}

NativeCall Evaluator::native_call(Opcode op) {
  switch (op) {
#define DIF_OP(name, number, text, form) \
  case Opcode::name:                     \
    return call<Opcode::name>;
#include "dif/program/opcodes.def"
#undef DIF_OP
  }
  return nullptr;
}

}  // namespace ringside::dif
