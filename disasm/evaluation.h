// Runs a few instructions of a guest on the host, over a copy of its registers. They read its
// memory and their own writes, which the guest never sees. For code that computes something and has
// no other effect that matters, such as the arguments of a static tracepoint. decode_evaluable()
// refuses all other instructions. Used by providers/sdt. Does not: find the instructions, or follow
// them. Fire context: Evaluation yes; decode_evaluable() no.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "disasm/decoder.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"

namespace ringside::disasm {

/// The instruction at the start of `bytes` as if it lay at `address`. Unsupported, with the
/// instruction's text, when its effect is none that can be evaluated.
Result<Operation> decode_evaluable(std::span<const std::byte> bytes, GuestVirt address);

/// The state of a vCPU that goes its own way on the host.
class Evaluation {
 public:
  /// `memory` must outlive it.
  Evaluation(const Registers& registers, const GuestReader& memory)
      : registers_(registers), memory_(memory) {}

  /// Runs one instruction; the address of the next one. Fault: memory that is not mapped, or more
  /// written than is kept.
  Result<GuestVirt, Fault> step(const Operation& in);

  const Registers& registers() const { return registers_; }
  /// `bytes` is at most 8. Sees what was written.
  Result<std::uint64_t, Fault> load(GuestVirt at, std::uint8_t bytes) const;
  /// Whether one of these bytes was written, and not settled.
  bool has_written(GuestVirt at, std::uint64_t bytes) const;
  /// Settles the writes so far: the vCPU is about to make them itself. Those to the `bytes` bytes
  /// from `stack` on stay unsettled.
  void settle_outside(GuestVirt stack, std::uint64_t bytes);
  /// IllegalOperation when there is no more room.
  Result<void, Fault> store(GuestVirt at, std::uint8_t bytes, std::uint64_t value);

 private:
  /// Written bytes of an aligned word.
  struct Word {
    std::uint64_t at = 0, value = 0;
    std::uint64_t mask = 0;     // ff for each byte that was written
    std::uint64_t settled = 0;  // of those
  };
  static constexpr std::size_t kMostWords = 48;

  GuestVirt address_of(const Operation& in) const;
  Result<std::uint64_t, Fault> read(const Operation& in, const Operand& operand) const;
  Result<void, Fault> write(const Operation& in, const Operand& operand, std::uint64_t value);
  Result<void, Fault> push(std::uint64_t value);
  Result<std::uint64_t, Fault> pop();
  Result<void, Fault> run(const Operation& in);
  Result<void, Fault> logic(const Operation& in);
  Result<void, Fault> add(const Operation& in);
  Result<void, Fault> subtract(const Operation& in);
  Result<void, Fault> shift(const Operation& in);
  Result<void, Fault> multiply(const Operation& in);
  Result<void, Fault> bit_test(const Operation& in);
  Result<void, Fault> exchange(const Operation& in);
  void set_flags(std::uint64_t value, std::uint8_t bytes, bool carry, bool overflow);
  bool has(std::uint64_t flag) const { return (registers_.rflags & flag) != 0; }
  bool holds(const Operation& in) const {
    return arch::condition_holds(in.condition, registers_.rflags);
  }
  Word* word_at(std::uint64_t at);

  Registers registers_;
  const GuestReader& memory_;
  std::array<Word, kMostWords> words_;
  std::size_t count_ = 0;
};

}  // namespace ringside::disasm
