// In this file, top to bottom: layouts and registers, an object's frame, the switch over opcodes,
// arithmetic, compares and branches, loads, the tuple stack, calls and faults.
#include "dif/evaluate/native_emitter.h"

#include <array>
#include <bit>
#include <cstddef>
#include <type_traits>

#include "dif/evaluate/evaluate.h"

namespace ringside::dif {

namespace x86 = asmjit::x86;
using asmjit::imm;

/// The places of what compiled code reads by itself.
struct NativeLayout {
  static constexpr std::int32_t kGeneration = offsetof(LineCache, generation_);
  static constexpr std::int32_t kTags = offsetof(LineCache, tags_);
  static constexpr std::int32_t kLines = offsetof(LineCache, lines_);
  static constexpr std::int32_t kTagLine = offsetof(LineCache::Tag, line);
  static constexpr std::int32_t kTagGeneration = offsetof(LineCache::Tag, generation);
  static constexpr std::size_t kTagSize = sizeof(LineCache::Tag);
};

namespace {

static_assert(std::is_standard_layout_v<RunState> && std::is_standard_layout_v<LineCache>);
static_assert(std::is_standard_layout_v<VariableSlot> && std::is_standard_layout_v<TupleValue>);
static_assert(sizeof(TupleValue) == 3 * sizeof(std::uint64_t));  // emit_push() multiplies by it

// The stack of an object: room for registers that a call loses, and the values compared last.
constexpr std::int32_t kSpilled = 0, kLeft = 16, kRight = 24, kFrame = 32;

// A call keeps those before kFirstLost. Nothing else lives in a register between instructions.
constexpr unsigned kFirstLost = 6;
constexpr RegisterBits kLostByCalls = register_bit(6) | register_bit(7);
const std::array<x86::Gp, kRegisters> kHomes = {x86::rax, x86::rbx, x86::rbp, x86::r12,
                                                x86::r13, x86::r14, x86::r10, x86::r11};
const x86::Gp kRun = x86::r15;

x86::Mem of_run(std::size_t at, std::uint32_t size = 8) {
  return {kRun, static_cast<std::int32_t>(at), size};
}

/// The processor's condition of a branch, after a compare of the two values.
x86::CondCode condition_of(Opcode op) {
  switch (op) {
    case Opcode::Be: return x86::CondCode::kE;
    case Opcode::Bne: return x86::CondCode::kNE;
    case Opcode::Bg: return x86::CondCode::kSignedGT;
    case Opcode::Bgu: return x86::CondCode::kUnsignedGT;
    case Opcode::Bge: return x86::CondCode::kSignedGE;
    case Opcode::Bgeu: return x86::CondCode::kUnsignedGE;
    case Opcode::Bl: return x86::CondCode::kSignedLT;
    case Opcode::Blu: return x86::CondCode::kUnsignedLT;
    case Opcode::Ble: return x86::CondCode::kSignedLE;
    default: return x86::CondCode::kUnsignedLE;  // bleu
  }
}

}  // namespace

const x86::Gp& NativeEmitter::rd() const {
  return kHomes[in_.rd()];
}

void NativeEmitter::emit(const asmjit::Label& entry) {
  for (std::size_t pc = 0; pc < labels_.size(); ++pc) {
    if (known_.is_target[pc]) labels_[pc] = code_.newLabel();
  }
  code_.bind(entry);
  emit_entry();
  for (pc_ = 0; pc_ < difo_.text.size(); ++pc_) {
    if (known_.is_target[pc_]) code_.bind(labels_[pc_]);
    in_ = Insn{difo_.text[pc_]};
    emit_instruction();
  }
  // A load that is made by a call may fault, which adds one more.
  for (std::size_t i = 0; i < asides_.size(); ++i) emit_aside(Aside(asides_[i]));
  code_.bind(faulted_);
  code_.mov(x86::edx, 1);
  emit_exit();
}

/// The value of a DIF register; r0's in `zero`, which changes the processor's flags.
const x86::Gp& NativeEmitter::value(unsigned number, const x86::Gp& zero) {
  if (number != 0) return kHomes[number];
  code_.xor_(zero.r32(), zero.r32());
  return zero;
}

void NativeEmitter::move(const x86::Gp& to, unsigned number) {
  const x86::Gp& from = value(number, to);
  if (from != to) code_.mov(to, from);
}

void NativeEmitter::emit_entry() {
  saved_.push_back(kRun);
  for (unsigned number = 1; number < kFirstLost; ++number) {
    if ((known_.used & register_bit(number)) != 0) saved_.push_back(kHomes[number]);
  }
  const bool spills = (known_.used & kLostByCalls) != 0;
  frame_ = spills || known_.keeps_compare ? kFrame : 0;
  // Calls need it aligned to 16 bytes; the return address lies there too.
  if ((saved_.size() + 1) % 2 != 0) frame_ += 8;
  for (const x86::Gp& one : saved_) code_.push(one);
  if (frame_ != 0) code_.sub(x86::rsp, frame_);
  code_.mov(kRun, x86::rdi);
  for (unsigned number = 1; number < kRegisters; ++number) {
    if ((known_.live[0] & register_bit(number)) != 0) move(kHomes[number], 0);
  }
  if (!known_.keeps_compare) return;
  // As if 1 was compared with 0: no condition code is set.
  code_.mov(x86::qword_ptr(x86::rsp, kLeft), 1);
  code_.mov(x86::qword_ptr(x86::rsp, kRight), 0);
}

void NativeEmitter::emit_exit() {
  if (frame_ != 0) code_.add(x86::rsp, frame_);
  for (std::size_t i = saved_.size(); i-- > 0;) code_.pop(saved_[i]);
  code_.ret();
}

/// Forms decide where operands lie (insn.h); opcodes.def says what the opcodes mean.
// NOLINTNEXTLINE(readability-function-size): one switch, so that the compiler checks it for holes.
void NativeEmitter::emit_instruction() {
  switch (in_.op()) {
    case Opcode::Or: return emit_commutative(x86::Inst::kIdOr);
    case Opcode::Xor: return emit_commutative(x86::Inst::kIdXor);
    case Opcode::And: return emit_commutative(x86::Inst::kIdAnd);
    case Opcode::Mul: return emit_commutative(x86::Inst::kIdImul);
    case Opcode::Add: return emit_sum();
    case Opcode::Sub: return emit_difference();
    case Opcode::Sll: return emit_shift(x86::Inst::kIdShlx, x86::Inst::kIdShl);
    case Opcode::Srl: return emit_shift(x86::Inst::kIdShrx, x86::Inst::kIdShr);
    case Opcode::Sra: return emit_shift(x86::Inst::kIdSarx, x86::Inst::kIdSar);
    case Opcode::Sdiv:
    case Opcode::Udiv:
    case Opcode::Srem:
    case Opcode::Urem: return emit_division();
    case Opcode::Not:
      move(rd(), in_.r1());
      code_.not_(rd());
      return;
    case Opcode::Mov: return move(rd(), in_.r1());
    case Opcode::Cmp:
    case Opcode::Tst:
    case Opcode::Scmp: return emit_compare();
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
    case Opcode::Bleu: return emit_branch();
    case Opcode::Ldsb:
    case Opcode::Ldsh:
    case Opcode::Ldsw:
    case Opcode::Ldub:
    case Opcode::Lduh:
    case Opcode::Lduw:
    case Opcode::Ldx: return emit_cached_load(offsetof(RunState, kernel));
    case Opcode::Uldsb:
    case Opcode::Uldsh:
    case Opcode::Uldsw:
    case Opcode::Uldub:
    case Opcode::Ulduh:
    case Opcode::Ulduw:
    case Opcode::Uldx: return emit_cached_load(offsetof(RunState, user));
    case Opcode::Rldsb:
    case Opcode::Rldsh:
    case Opcode::Rldsw:
    case Opcode::Rldub:
    case Opcode::Rlduh:
    case Opcode::Rlduw:
    case Opcode::Rldx:
    case Opcode::Allocs: return emit_call({in_.r1()});
    case Opcode::Stb:
    case Opcode::Sth:
    case Opcode::Stw:
    case Opcode::Stx: return emit_call({in_.rd(), in_.r1()});
    case Opcode::Copys: return emit_call({in_.r1(), in_.r2(), in_.rd()});
    case Opcode::Ret:
      move(x86::rax, in_.rd());
      code_.xor_(x86::edx, x86::edx);
      return emit_exit();
    case Opcode::Setx: code_.mov(rd(), imm(difo_.integers[in_.index()])); return;
    case Opcode::Sets:
      code_.mov(rd(), imm(make_handle(Arena::Constants, strings_ + std::uint64_t{in_.index()})));
      return;
    case Opcode::Ldls: {
      const std::size_t slot = in_.index() - kFirstUserVariable;
      code_.mov(rd(), of_run(offsetof(RunState, locals)));
      code_.mov(rd(),
                x86::qword_ptr(rd(), static_cast<std::int32_t>(slot * sizeof(VariableSlot) +
                                                               offsetof(VariableSlot, value))));
      return;
    }
    case Opcode::Ldga: return emit_call_with(in_.r1(), in_.r2());
    case Opcode::Stgs:
    case Opcode::Stls:
    case Opcode::Stts:
    case Opcode::Stgaa:
    case Opcode::Sttaa: return emit_call_with(in_.index(), in_.rd());
    case Opcode::Ldgs:
    case Opcode::Ldts:
    case Opcode::Ldgaa:
    case Opcode::Ldtaa:
    case Opcode::Call: return emit_call_with(in_.index());
    case Opcode::Pushtr:
    case Opcode::Pushtv: return emit_push();
    case Opcode::Popts: return emit_pop();
    case Opcode::Flushts: code_.mov(of_run(offsetof(RunState, tuple_depth)), 0); return;
    case Opcode::Nop:
    case Opcode::Ldta:
    case Opcode::Stga:
    case Opcode::Xlate:
    case Opcode::Xlarg: return;  // but for nop, Analysis has refused them
  }
}

void NativeEmitter::emit_sum() {
  const x86::Gp &a = value(in_.r1(), x86::rax), &b = value(in_.r2(), x86::rcx);
  code_.lea(rd(), x86::ptr(a, b));
}

void NativeEmitter::emit_difference() {
  const x86::Gp &a = value(in_.r1(), x86::rax), &b = value(in_.r2(), x86::rcx);
  if (rd() == b && rd() != a) {
    code_.neg(rd());
    code_.add(rd(), a);
    return;
  }
  if (rd() != a) code_.mov(rd(), a);
  code_.sub(rd(), b);
}

void NativeEmitter::emit_commutative(x86::Inst::Id id) {
  const x86::Gp &a = value(in_.r1(), x86::rax), &b = value(in_.r2(), x86::rcx);
  if (rd() == b) {
    code_.emit(id, rd(), a);
    return;
  }
  if (rd() != a) code_.mov(rd(), a);
  code_.emit(id, rd(), b);
}

/// The processor, too, takes the count modulo 64.
void NativeEmitter::emit_shift(x86::Inst::Id by_register, x86::Inst::Id by_cl) {
  if (has_bmi2_) {
    const x86::Gp &a = value(in_.r1(), x86::rax), &b = value(in_.r2(), x86::rcx);
    code_.emit(by_register, rd(), a, b);
    return;
  }
  move(x86::rcx, in_.r2());
  move(x86::rax, in_.r1());
  code_.emit(by_cl, x86::rax, x86::cl);
  code_.mov(rd(), x86::rax);
}

/// By 0 is a fault. By -1, signed, is done without a division, which would trap for the least
/// number.
void NativeEmitter::emit_division() {
  const Opcode op = in_.op();
  const bool is_signed = op == Opcode::Sdiv || op == Opcode::Srem;
  const bool remainder = op == Opcode::Srem || op == Opcode::Urem;
  const asmjit::Label done = code_.newLabel(), divides = code_.newLabel();
  move(x86::rcx, in_.r2());
  move(x86::rax, in_.r1());
  code_.test(x86::rcx, x86::rcx);
  code_.jz(fault(FaultKind::DivideByZero));
  if (is_signed) {
    code_.cmp(x86::rcx, -1);
    code_.jne(divides);
    code_.neg(x86::rax);
    code_.xor_(x86::edx, x86::edx);
    code_.jmp(done);
    code_.bind(divides);
    code_.cqo();
    code_.idiv(x86::rcx);
  } else {
    code_.xor_(x86::edx, x86::edx);
    code_.div(x86::rcx);
  }
  code_.bind(done);
  code_.mov(rd(), remainder ? x86::rdx : x86::rax);
}

/// Ends with the processor's flags as the compare's. Strings compare as their order does with 0.
void NativeEmitter::emit_compare() {
  const bool strings = in_.op() == Opcode::Scmp;
  if (strings) emit_call({in_.r1(), in_.r2()});
  const x86::Gp& left = strings ? x86::rax : value(in_.r1(), x86::rax);
  const x86::Gp& right = value(in_.op() == Opcode::Cmp ? in_.r2() : 0, x86::rcx);
  if (known_.keeps_compare) {
    code_.mov(x86::qword_ptr(x86::rsp, kLeft), left);
    code_.mov(x86::qword_ptr(x86::rsp, kRight), right);
  }
  code_.cmp(left, right);
}

void NativeEmitter::emit_branch() {
  const asmjit::Label& to = labels_[in_.label()];
  if (in_.op() == Opcode::Ba) {
    code_.jmp(to);
    return;
  }
  if (!known_.flags_at_hand[pc_]) {
    code_.mov(x86::rax, x86::qword_ptr(x86::rsp, kLeft));
    code_.cmp(x86::rax, x86::qword_ptr(x86::rsp, kRight));
  }
  code_.j(condition_of(in_.op()), to);
}

/// A load from a line that the cache has, as LineCache::read() does it; any other by a call. A
/// kernel address that is a handle goes that way too.
void NativeEmitter::emit_cached_load(std::size_t cache) {
  static_assert(std::has_single_bit(LineCache::kLine) && std::has_single_bit(LineCache::kLines));
  constexpr auto kLineBits = static_cast<std::uint32_t>(std::countr_zero(LineCache::kLine));
  constexpr auto kAll = static_cast<std::uint32_t>(LineCache::kLine * LineCache::kLines - 1);
  constexpr auto kOffset = static_cast<std::uint32_t>(LineCache::kLine - 1);
  constexpr auto kTagBits = static_cast<std::uint32_t>(std::countr_zero(NativeLayout::kTagSize));
  static_assert(std::has_single_bit(NativeLayout::kTagSize));
  const asmjit::Label slowly = fault(), back = code_.newLabel();
  asides_.back().back = back;
  const x86::Gp& at = value(in_.r1(), x86::rdi);
  const std::uint32_t size = loaded_bytes(in_.op());
  if (cache == offsetof(RunState, kernel)) {
    code_.mov(x86::rcx, at);
    code_.shr(x86::rcx, 56);
    code_.cmp(x86::ecx, static_cast<std::uint32_t>(kHandle));
    code_.je(slowly);
  }
  if (size > 1) {
    code_.mov(x86::eax, at.r32());
    code_.and_(x86::eax, kOffset);
    code_.cmp(x86::eax, static_cast<std::uint32_t>(LineCache::kLine) - size);
    code_.ja(slowly);
  }
  code_.mov(x86::rsi, of_run(cache));
  code_.mov(x86::eax, at.r32());
  code_.and_(x86::eax, kAll);  // its place among the lines
  code_.mov(x86::edx, x86::eax);
  code_.shr(x86::edx, kLineBits);
  code_.shl(x86::edx, kTagBits);
  code_.add(x86::rdx, x86::rsi);
  code_.mov(x86::rcx, at);
  code_.shr(x86::rcx, kLineBits);
  const std::int32_t tag = NativeLayout::kTags;
  code_.cmp(x86::qword_ptr(x86::rdx, tag + NativeLayout::kTagLine), x86::rcx);
  code_.jne(slowly);
  code_.mov(x86::rcx, x86::qword_ptr(x86::rsi, NativeLayout::kGeneration));
  code_.cmp(x86::qword_ptr(x86::rdx, tag + NativeLayout::kTagGeneration), x86::rcx);
  code_.jne(slowly);
  emit_value_at(x86::ptr(x86::rsi, x86::rax, 0, NativeLayout::kLines, size));
  code_.bind(back);
}

void NativeEmitter::emit_value_at(const x86::Mem& at) {
  const unsigned bytes = loaded_bytes(in_.op());
  const bool is_signed = loads_signed(in_.op());
  if (bytes == 8) {
    code_.mov(rd(), at);
  } else if (bytes == 4 && is_signed) {
    code_.movsxd(rd(), at);
  } else if (bytes == 4) {
    code_.mov(rd().r32(), at);
  } else if (is_signed) {
    code_.movsx(rd(), at);
  } else {
    code_.movzx(rd().r32(), at);
  }
}

void NativeEmitter::emit_push() {
  constexpr std::size_t kTuple = offsetof(RunState, tuple);
  const auto part = [](std::size_t at, std::uint32_t size) {
    return x86::Mem(kRun, x86::rcx, 3, static_cast<std::int32_t>(kTuple + at), size);
  };
  code_.mov(x86::rax, of_run(offsetof(RunState, tuple_depth)));
  code_.cmp(x86::rax, static_cast<std::int32_t>(kTupleSlots));
  code_.je(fault(FaultKind::TupleOverflow));
  ValueKind kind = ValueKind::Integer;
  if (in_.op() == Opcode::Pushtr) {
    const bool is_string = static_cast<TupleType>(in_.r1()) == TupleType::String;
    kind = is_string ? ValueKind::String : ValueKind::Bytes;
    if (in_.r2() != 0) {
      code_.test(kHomes[in_.r2()], kHomes[in_.r2()]);
      code_.js(fault(FaultKind::IllegalOperation));
    }
  }
  code_.lea(x86::rcx, x86::ptr(x86::rax, x86::rax, 1));
  code_.add(x86::rax, 1);
  code_.mov(of_run(offsetof(RunState, tuple_depth)), x86::rax);
  code_.mov(part(offsetof(TupleValue, value), 8), value(in_.rd(), x86::rdx));
  code_.mov(part(offsetof(TupleValue, size), 8), value(in_.r2(), x86::rdx));
  code_.mov(part(offsetof(TupleValue, kind), 1), static_cast<std::int32_t>(kind));
}

void NativeEmitter::emit_pop() {
  const asmjit::Label empty = code_.newLabel();
  code_.cmp(of_run(offsetof(RunState, tuple_depth)), 0);
  code_.je(empty);
  code_.sub(of_run(offsetof(RunState, tuple_depth)), 1);
  code_.bind(empty);
}

/// Calls what the opcode is done by; the values of these registers are its arguments.
void NativeEmitter::emit_call(std::initializer_list<unsigned> registers) {
  constexpr std::array kArguments = {x86::rsi, x86::rdx, x86::rcx};
  std::size_t next = 0;
  for (const unsigned number : registers) move(kArguments[next++], number);
  finish_call();
}

/// The same with a constant, and maybe the value of a register after it.
void NativeEmitter::emit_call_with(std::uint64_t constant, std::optional<unsigned> number) {
  code_.mov(x86::esi, constant);
  if (number) move(x86::rdx, *number);
  finish_call();
}

/// The registers that the rest of the object needs and a call does not keep.
RegisterBits NativeEmitter::lost_by_call() const {
  const unsigned lost = known_.live[pc_ + 1] & ~register_effect(in_).writes & kLostByCalls;
  return static_cast<RegisterBits>(lost);
}

void NativeEmitter::finish_call() {
  const RegisterBits lost = lost_by_call();
  const auto place = [](unsigned number) {
    return x86::qword_ptr(x86::rsp,
                          kSpilled + static_cast<std::int32_t>(8 * (number - kFirstLost)));
  };
  for (unsigned number = kFirstLost; number < kRegisters; ++number) {
    if ((lost & register_bit(number)) != 0) code_.mov(place(number), kHomes[number]);
  }
  code_.mov(x86::rdi, kRun);
  // SAFETY: the address of a function of this type, which code of another compiler calls.
  code_.mov(x86::rax, imm(reinterpret_cast<std::uintptr_t>(Evaluator::native_call(in_.op()))));
  code_.call(x86::rax);
  code_.test(x86::rdx, x86::rdx);
  code_.jnz(fault());
  for (unsigned number = kFirstLost; number < kRegisters; ++number) {
    if ((lost & register_bit(number)) != 0) code_.mov(kHomes[number], place(number));
  }
  if (register_effect(in_).writes != 0) code_.mov(rd(), x86::rax);
}

void NativeEmitter::emit_aside(const Aside& aside) {
  pc_ = aside.pc;
  in_ = Insn{difo_.text[pc_]};
  code_.bind(aside.label);
  if (aside.back) {
    emit_call({in_.r1()});
    code_.jmp(*aside.back);
    return;
  }
  if (aside.raises != FaultKind::Unknown) {
    code_.mov(of_run(offsetof(RunState, fault) + offsetof(Fault, kind), 4),
              static_cast<std::int32_t>(aside.raises));
    code_.mov(of_run(offsetof(RunState, fault) + offsetof(Fault, address)), 0);
  }
  code_.mov(of_run(offsetof(RunState, fault) + offsetof(Fault, pc), 4),
            static_cast<std::int32_t>(pc_ * sizeof(Insn)));
  code_.jmp(faulted_);
}

}  // namespace ringside::dif
