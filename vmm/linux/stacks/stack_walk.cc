// One step of a walk goes from a frame to the one that it returns to. In this file, top to bottom:
// a step, the walk.
#include "vmm/linux/stacks/stack_walk.h"

#include <string_view>

#include "vmm/arch/arch.h"

namespace ringside::guest_linux {
namespace {

using Base = OrcEntry::Base;
using Kind = OrcEntry::Kind;

using arch::InterruptFrame;
using arch::SavedRegisters;

constexpr std::size_t word_of(arch::Register which) {
  return arch::saved_word(which).word;
}
constexpr std::size_t kR13 = word_of(&Registers::r13), kBp = word_of(&Registers::rbp),
                      kR10 = word_of(&Registers::r10), kAx = word_of(&Registers::rax),
                      kDx = word_of(&Registers::rdx), kDi = word_of(&Registers::rdi);

/// More frames than a stack has room for.
constexpr std::size_t kMostSteps = 4096;

bool is_user(std::uint64_t cs) {
  return (cs & 3) == 3;
}

class StackWalk {
 public:
  StackWalk(const StackTables& tables, const GuestReader& stack, const Registers& from)
      : tables_(tables), stack_(stack), bp_(from.*arch::kFramePointer) {
    go_to(from.*arch::kProgramCounter, from.*arch::kStackPointer);
    registers_ = arch::save(from);
    have_registers_ = true;
    interrupted_ = true;
  }

  std::uint64_t ip() const { return ip_; }
  /// After step() has returned false: whether it reached the end of the stack.
  bool is_at_end() const { return at_end_; }

  /// rsp points at the return address.
  bool step_to_caller() { return finish_call(sp_ + 8); }

  bool step() {
    // A return address is after the call, which may be the last instruction of its function.
    const auto entry = tables_.find(interrupted_ ? ip_ : ip_ - 1);
    at_end_ = entry && entry->kind == Kind::End;
    if (!entry || entry->kind == Kind::Undefined || entry->kind == Kind::End) return false;
    const auto frame = frame_end(*entry);
    if (!frame) return false;
    const std::uint64_t old_bp = bp_;
    switch (entry->kind) {
      case Kind::Call:
        // Within one stack a frame ends above its beginning. The stack that an interrupt came from
        // may lie anywhere.
        if (!leaves_stack(*entry) && *frame <= sp_) return false;
        if (!finish_call(*frame)) return false;
        break;
      case Kind::Registers:
        if (!take_registers(*frame)) return false;
        break;
      case Kind::PartialRegisters:
        if (!take_interrupt_frame(*frame)) return false;
        break;
      case Kind::Undefined:
      case Kind::End: return false;
    }
    interrupted_ = entry->is_signal;
    return restore_bp(*entry, *frame, old_bp);
  }

 private:
  std::optional<std::uint64_t> word(std::uint64_t at) const {
    const auto value = ringside::load<std::uint64_t>(stack_, GuestVirt(at));
    return value ? std::optional(*value) : std::nullopt;
  }
  std::optional<std::uint64_t> saved_register(std::size_t index) const {
    return have_registers_ ? std::optional(registers_[index]) : std::nullopt;
  }

  /// Whether the frame ends on another stack than it is on: code that changes stacks keeps the one
  /// that it came from in the new one's first word.
  static bool leaves_stack(const OrcEntry& entry) { return entry.sp == Base::SpIndirect; }

  /// The stack pointer after the frame is left.
  std::optional<std::uint64_t> frame_end(const OrcEntry& entry) const {
    const auto offset = static_cast<std::uint64_t>(std::int64_t{entry.sp_offset});
    const auto plus_offset = [&](std::optional<std::uint64_t> base) {
      return base ? std::optional(*base + offset) : std::nullopt;
    };
    switch (entry.sp) {
      case Base::Sp: return sp_ + offset;
      case Base::Bp: return bp_ + offset;
      case Base::SpIndirect: return plus_offset(word(sp_));
      case Base::BpIndirect: return word(bp_ + offset);
      case Base::Ax: return saved_register(kAx);
      case Base::Dx: return saved_register(kDx);
      case Base::Di: return saved_register(kDi);
      case Base::R10: return saved_register(kR10);
      case Base::R13: return saved_register(kR13);
      case Base::PreviousSp:
      case Base::Undefined: return std::nullopt;
    }
    return std::nullopt;
  }

  void go_to(std::uint64_t ip, std::uint64_t sp) {
    const auto at = tables_.original({ip, sp}, stack_);
    ip_ = at.pc;
    sp_ = at.sp;
  }

  bool finish_call(std::uint64_t frame) {
    const auto back = word(frame - 8);
    if (!back) return false;
    go_to(*back, frame);
    have_registers_ = false;
    interrupted_ = false;
    return true;
  }

  bool take_registers(std::uint64_t at) {
    const auto all = ringside::load<SavedRegisters>(stack_, GuestVirt(at));
    at_end_ = all && is_user((*all)[word_of(&Registers::cs)]);
    if (!all || at_end_) return false;
    registers_ = *all;
    have_registers_ = true;
    go_to(registers_[word_of(&Registers::rip)], registers_[word_of(&Registers::rsp)]);
    return true;
  }

  /// The other registers are as they were: nobody has touched them yet.
  bool take_interrupt_frame(std::uint64_t at) {
    const auto frame = ringside::load<InterruptFrame>(stack_, GuestVirt(at));
    at_end_ = frame && is_user(frame->cs);
    if (!frame || at_end_) return false;
    go_to(frame->ip, frame->sp);
    return true;
  }

  bool restore_bp(const OrcEntry& entry, std::uint64_t frame, std::uint64_t old_bp) {
    const auto offset = static_cast<std::uint64_t>(std::int64_t{entry.bp_offset});
    std::optional<std::uint64_t> bp;
    switch (entry.bp) {
      case Base::PreviousSp: bp = word(frame + offset); break;
      case Base::Bp: bp = word(old_bp + offset); break;
      case Base::Undefined: bp = have_registers_ ? saved_register(kBp) : old_bp; break;
      default: return false;
    }
    if (bp) bp_ = *bp;
    return bp.has_value();
  }

  const StackTables& tables_;
  const GuestReader& stack_;
  std::uint64_t sp_ = 0, bp_, ip_ = 0;
  SavedRegisters registers_;
  bool have_registers_;
  bool interrupted_;  // ip_ has not been executed yet
  bool at_end_ = false;
};

}  // namespace

std::size_t unwind(const StackTables& tables, const GuestReader& stack, const Registers& from,
                   WalkStart start, std::span<std::uint64_t> frames) {
  StackWalk walk(tables, stack, from);
  if (start == WalkStart::Caller && !walk.step_to_caller()) return 0;
  std::size_t count = 0;
  while (count < frames.size() && tables.is_text(walk.ip())) {
    frames[count++] = walk.ip();
    if (!walk.step()) break;
  }
  return count;
}

std::optional<bool> passes(const StackTables& tables, const GuestReader& stack,
                           const Registers& from, WalkStart start, Kernel::AddressRange range) {
  StackWalk walk(tables, stack, from);
  if (start == WalkStart::Caller && !walk.step_to_caller()) return std::nullopt;
  for (std::size_t steps = 0; steps < kMostSteps; ++steps) {
    if (range.contains(GuestVirt(walk.ip()))) return true;
    if (walk.step()) continue;
    return walk.is_at_end() ? std::optional(false) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace ringside::guest_linux
