// Machine code for the objects of a program, which the Evaluator runs instead of interpreting them.
// The code keeps DIF's registers in the processor's. It computes, compares, branches, pushes, and
// loads from a cached line of the guest by itself. For all else it calls the functions that the
// interpreter uses too (Evaluator::perform()). So an object has the same value, the same fault and
// the same effects in both; the interpreter (evaluate.cc) is the reference, and random programs
// compare them (native_code_test.cc).
//
// These stay with the interpreter:
//   - objects of a program that has more than kMostWords words before them: bounds time and memory
//   - opcodes that the verifier refuses, and objects that are none of the program's
//   - everything, where the host is no x86-64 processor or grants no executable memory: refusal()
//
// All code is made before the first firing. Its pages are written first and made executable then;
// they are never both, and never written again. libasmjit encodes the instructions.
// Fire context: find() and what it answers with yes, everything else no.
// Threads: all members that are const on any number at once, as the code itself.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dif/evaluate/line_cache.h"
#include "dif/evaluate/variables.h"
#include "dif/program/insn.h"
#include "dif/program/program.h"

namespace ringside::dif {

class ConstantStrings;
class Evaluator;

/// The state of an object's run beside its registers. Compiled code finds all of it by offset.
struct RunState {
  Evaluator* evaluator = nullptr;
  const LineCache* kernel = nullptr;
  const LineCache* user = nullptr;
  const VariableSlot* locals = nullptr;  // this-> variables
  std::size_t tuple_depth = 0;
  std::array<TupleValue, kTupleSlots> tuple;
  Fault fault;  // of compiled code that answered so
};

/// Two words, so that the calling convention has both in registers.
struct NativeAnswer {
  std::uint64_t value = 0;
  std::uint64_t faulted = 0;  // not 0: RunState::fault says why
};
/// One compiled object.
using NativeFunction = NativeAnswer (*)(RunState& run);
/// The function that compiled code calls for one opcode. Evaluator::perform() says what `a`, `b`
/// and `c` are.
using NativeCall = NativeAnswer (*)(RunState& run, std::uint64_t a, std::uint64_t b,
                                    std::uint64_t c);

class NativeCode {
 public:
  /// Finds nothing before compile().
  NativeCode() = default;
  NativeCode(const NativeCode&) = delete;
  NativeCode& operator=(const NativeCode&) = delete;
  ~NativeCode();

  /// Once, for a program that the verifier accepted, which must outlive this. `constants` are its
  /// own.
  void compile(const Program& program, const ConstantStrings& constants);
  /// Null: the interpreter runs it.
  NativeFunction find(const Difo& difo) const {
    for (std::size_t at = place_of(&difo);; at = (at + 1) & (functions_.size() - 1)) {
      if (functions_[at].difo == &difo) return functions_[at].function;
      if (functions_[at].difo == nullptr) return nullptr;
    }
  }
  /// Why there is no code at all, for the user; empty where there is, or none was wanted.
  const std::string& refusal() const { return refusal_; }

  static constexpr std::size_t kMostWords = 1 << 18;

 private:
  struct Compiled {
    const Difo* difo = nullptr;
    NativeFunction function = nullptr;
  };

  std::size_t place_of(const Difo* difo) const {
    // SAFETY: the number only chooses a place to look at first.
    const auto number = reinterpret_cast<std::uintptr_t>(difo);
    return (number >> 4) * 0x9e37'79b9'7f4a'7c15 >> shift_;
  }
  void add(const Difo* difo, std::uint64_t offset);

  std::vector<Compiled> functions_ = std::vector<Compiled>(2);  // a power of 2, never full
  unsigned shift_ = 63;                                         // 64 less that power
  std::span<std::byte> memory_;
  std::string refusal_;
};

}  // namespace ringside::dif
