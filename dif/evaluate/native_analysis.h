// Facts about an object that its machine code is made by: which registers are needed where, and
// which branches have their compare right before them. Branches only go forward, so one walk from
// the end finds them. Used by the emitter (native_emitter.h). Fire context: no.
#pragma once

#include <cstdint>
#include <vector>

#include "dif/program/insn.h"
#include "dif/program/program.h"

namespace ringside::dif {

using RegisterBits = std::uint8_t;  // a bit for each register of DIF; none for r0
static_assert(kRegisters == 8);

constexpr RegisterBits register_bit(unsigned number) {
  return static_cast<RegisterBits>(1u << number & 0xfe);
}

struct RegisterEffect {
  RegisterBits reads = 0, writes = 0;
};
/// Of a verified instruction.
RegisterEffect register_effect(Insn in);

struct NativeAnalysis {
  /// Of a verified object.
  explicit NativeAnalysis(const Difo& difo);

  std::vector<RegisterBits> live;  // registers that are read from the instruction on
  std::vector<bool> is_target;     // of a branch
  /// Of a conditional branch: the processor's flags are those of the compare before it.
  std::vector<bool> flags_at_hand;
  RegisterBits used = 0;
  bool compiles = true;        // has no opcode that the verifier refuses
  bool keeps_compare = false;  // some branch is not right behind its compare
};

}  // namespace ringside::dif
