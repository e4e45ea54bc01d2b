// Walks a piece of kernel text, instruction by instruction. An int3 counts as an instruction only
// where the compiler puts one: after code that does not go on, and as padding. Any other int3 hides
// the first byte of an unknown instruction, so the walk cannot go on after it.
// Pure.
#pragma once

#include <span>

#include "disasm/decoder.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"

namespace ringside::providers {

class TextSweep {
 public:
  /// `bytes` lie at `start`, where an instruction begins. Whether they reach to the function's end.
  enum class Reach : std::uint8_t { ToTheEnd, NotToTheEnd };
  TextSweep(std::span<const std::byte> bytes, GuestVirt start, Reach reach)
      : bytes_(bytes), start_(start), reach_(reach) {}

  /// Where the next instruction begins.
  GuestVirt here() const { return start_.wrapping_add(at_); }
  bool is_done() const { return at_ >= bytes_.size(); }
  /// The instruction at here(), and a step past it.
  /// Error (Unsupported): it does not decode, or an int3 covers it.
  Result<disasm::Instruction> next();

 private:
  bool is_padding() const;

  std::span<const std::byte> bytes_;
  GuestVirt start_;
  Reach reach_;
  std::size_t at_ = 0;
  disasm::Flow before_ = disasm::Flow::Next;  // of the instruction that ends at here()
};

}  // namespace ringside::providers
