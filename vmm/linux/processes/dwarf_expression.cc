#include "vmm/linux/processes/dwarf_expression.h"

#include <bit>
#include <limits>
#include <utility>

#include "vmm/linux/processes/dwarf_cursor.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kDeepest = 32;

/// Opcodes (DWARF 5, table 7.9). Those with a number in them are ranges of 32.
enum Op : std::uint8_t {
  kAddr = 0x03,
  kDeref = 0x06,
  kConst1u = 0x08,
  kConst1s,
  kConst2u,
  kConst2s,
  kConst4u,
  kConst4s,
  kConst8u,
  kConst8s,
  kConstu,
  kConsts,
  kDup,
  kDrop,
  kOver,
  kPick,
  kSwap,
  kRot,
  kAbs = 0x19,
  kAnd,
  kDiv,
  kMinus,
  kMod,
  kMul,
  kNeg,
  kNot,
  kOr,
  kPlus,
  kPlusUconst,
  kShl,
  kShr,
  kShra,
  kXor,
  kBra,
  kEq,
  kGe,
  kGt,
  kLe,
  kLt,
  kNe,
  kSkip,
  kLit0 = 0x30,
  kReg0 = 0x50,
  kBreg0 = 0x70,
  kEndOfBreg = 0x90,
  kBregx = 0x92,
  kDerefSize = 0x94,
  kNop = 0x96,
};

/// The stack; a step that is not possible makes ok() false.
class Evaluation {
 public:
  Evaluation(const DwarfExpression& expression, const GuestReader& image,
             const GuestReader& process, const FrameRegisters& registers)
      : cursor_(image, expression.at, expression.at.wrapping_add(expression.length)),
        process_(process),
        registers_(registers) {}

  std::optional<std::uint64_t> run(std::optional<std::uint64_t> first, StepBudget& budget) {
    if (first) push(*first);
    while (ok() && !cursor_.at_end()) {
      if (!budget.take()) return std::nullopt;
      const auto op = cursor_.take<std::uint8_t>();
      if (!push_constant(op) && !move_on_stack(op) && !compute(op) && !branch(op)) {
        return std::nullopt;
      }
    }
    const std::uint64_t top = pop();
    return ok() ? std::optional(top) : std::nullopt;
  }

 private:
  bool ok() const { return ok_ && cursor_.ok(); }
  void push(std::uint64_t value) {
    if (depth_ == stack_.size()) {
      ok_ = false;
    } else {
      stack_[depth_++] = value;
    }
  }
  void push_signed(std::int64_t value) { push(static_cast<std::uint64_t>(value)); }
  std::uint64_t pop() {
    if (depth_ == 0) {
      ok_ = false;
      return 0;
    }
    return stack_[--depth_];
  }
  /// The element so many below the top.
  std::uint64_t peek(std::size_t below) {
    if (below >= depth_) {
      ok_ = false;
      return 0;
    }
    return stack_[depth_ - 1 - below];
  }
  void push_register(std::uint64_t number, std::int64_t offset) {
    if (number >= registers_.size()) {
      ok_ = false;
      return;
    }
    push(registers_[number] + static_cast<std::uint64_t>(offset));
  }
  void push_memory(std::size_t bytes) {
    const GuestVirt at(pop());
    std::uint64_t word = 0;
    const auto out = std::as_writable_bytes(std::span(&word, 1));
    if (bytes == 0 || bytes > out.size() || !process_.read(at, out.first(bytes))) {
      ok_ = false;
      return;
    }
    push(word);
  }

  /// Each of these says whether it knows the operation.
  bool push_constant(std::uint8_t op) {
    if (op >= kLit0 && op < kReg0) {
      push(op - std::uint64_t{kLit0});
      return true;
    }
    if (op >= kBreg0 && op < kEndOfBreg) {
      push_register(op - std::uint64_t{kBreg0}, cursor_.take_sleb());
      return true;
    }
    switch (op) {
      case kAddr:
      case kConst8u:
      case kConst8s: push(cursor_.take<std::uint64_t>()); return true;
      case kConst1u: push(cursor_.take<std::uint8_t>()); return true;
      case kConst1s: push_signed(cursor_.take<std::int8_t>()); return true;
      case kConst2u: push(cursor_.take<std::uint16_t>()); return true;
      case kConst2s: push_signed(cursor_.take<std::int16_t>()); return true;
      case kConst4u: push(cursor_.take<std::uint32_t>()); return true;
      case kConst4s: push_signed(cursor_.take<std::int32_t>()); return true;
      case kConstu: push(cursor_.take_uleb()); return true;
      case kConsts: push_signed(cursor_.take_sleb()); return true;
      case kBregx: {
        const std::uint64_t number = cursor_.take_uleb();
        push_register(number, cursor_.take_sleb());
        return true;
      }
      default: return false;
    }
  }

  bool move_on_stack(std::uint8_t op) {
    switch (op) {
      case kDeref: push_memory(sizeof(std::uint64_t)); return true;
      case kDerefSize: push_memory(cursor_.take<std::uint8_t>()); return true;
      case kDup: push(peek(0)); return true;
      case kDrop: pop(); return true;
      case kOver: push(peek(1)); return true;
      case kPick: push(peek(cursor_.take<std::uint8_t>())); return true;
      case kSwap: {
        const std::uint64_t top = pop(), second = pop();
        push(top);
        push(second);
        return true;
      }
      case kRot: {
        const std::uint64_t top = pop(), second = pop(), third = pop();
        push(top);
        push(third);
        push(second);
        return true;
      }
      case kNop: return true;
      default: return false;
    }
  }

  bool compute(std::uint8_t op) {
    switch (op) {
      case kAbs: {
        const std::uint64_t value = pop();
        push(static_cast<std::int64_t>(value) < 0 ? 0 - value : value);
        return true;
      }
      case kNeg: push(0 - pop()); return true;
      case kNot: push(~pop()); return true;
      case kPlusUconst: push(pop() + cursor_.take_uleb()); return true;
      default:
        return (op >= kAnd && op <= kXor) || (op >= kEq && op <= kNe) ? compute_two(op) : false;
    }
  }
  bool compute_two(std::uint8_t op) {
    const std::uint64_t b = pop(), a = pop();
    const auto signed_a = static_cast<std::int64_t>(a), signed_b = static_cast<std::int64_t>(b);
    switch (op) {
      case kAnd: push(a & b); return true;
      case kOr: push(a | b); return true;
      case kXor: push(a ^ b); return true;
      case kPlus: push(a + b); return true;
      case kMinus: push(a - b); return true;
      case kMul: push(a * b); return true;
      case kDiv: divide(a, b); return true;
      case kMod: b == 0 ? void(ok_ = false) : push(a % b); return true;
      case kShl: push(b < 64 ? a << b : 0); return true;
      case kShr: push(b < 64 ? a >> b : 0); return true;
      case kShra: push_signed(signed_a >> (b < 64 ? b : 63)); return true;
      case kEq: push(a == b ? 1 : 0); return true;
      case kNe: push(a != b ? 1 : 0); return true;
      case kGe: push(signed_a >= signed_b ? 1 : 0); return true;
      case kGt: push(signed_a > signed_b ? 1 : 0); return true;
      case kLe: push(signed_a <= signed_b ? 1 : 0); return true;
      case kLt: push(signed_a < signed_b ? 1 : 0); return true;
      default: return false;
    }
  }
  /// Signed; the smallest number by -1 is itself, where the CPU would trap.
  void divide(std::uint64_t a, std::uint64_t b) {
    if (b == 0) {
      ok_ = false;
    } else if (b == std::numeric_limits<std::uint64_t>::max()) {
      push(0 - a);
    } else {
      push_signed(static_cast<std::int64_t>(a) / static_cast<std::int64_t>(b));
    }
  }

  bool branch(std::uint8_t op) {
    if (op != kSkip && op != kBra) return false;
    const auto distance = static_cast<std::uint64_t>(std::int64_t{cursor_.take<std::int16_t>()});
    if (op == kSkip || pop() != 0) cursor_.go_to(cursor_.at().wrapping_add(distance));
    return true;
  }

  DwarfCursor cursor_;
  const GuestReader& process_;
  const FrameRegisters& registers_;
  std::array<std::uint64_t, kDeepest> stack_;
  std::size_t depth_ = 0;
  bool ok_ = true;
};

}  // namespace

std::optional<std::uint64_t> evaluate(const DwarfExpression& expression, const GuestReader& image,
                                      const GuestReader& process, const FrameRegisters& registers,
                                      std::optional<std::uint64_t> first, StepBudget& budget) {
  return Evaluation(expression, image, process, registers).run(first, budget);
}

}  // namespace ringside::guest_linux
