// One instruction of a kernel, run twice on this processor: in place, and displaced into a slot.
// Its displacements are changed so that what it accesses is memory of ours, and its branches so
// that they lead to us; what a program may not do is a signal, the same one at the same
// instruction. Not linked into the product; x86-64 alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ringside::disasm {

/// The instruction without its displacement and its immediate operand: what differs in nothing else
/// is one form.
std::string form_of(std::span<const std::byte> instruction);

struct FormVerdict {
  enum class Kind : std::uint8_t {
    Same,     // it ran, and did the same in its slot
    Signal,   // both times the same signal: privileged, or unknown to this processor
    LeftOut,  // it would change this process (GS, protection keys) or never does the same twice
    Refused,  // relocate() refuses it
    Different,
  };
  Kind kind = Kind::Same;
  std::string what;  // of Refused the reason, of Different what differs
};

/// Takes over the process's handlers of SIGSEGV, SIGILL, SIGFPE, SIGBUS and SIGTRAP while it lives.
class FormRunner {
 public:
  FormRunner();
  FormRunner(const FormRunner&) = delete;
  FormRunner& operator=(const FormRunner&) = delete;
  ~FormRunner();

  /// With `rounds` different sets of registers.
  FormVerdict run(std::span<const std::byte> instruction, unsigned rounds) {
    return run_beside(instruction, instruction, rounds);
  }
  /// With another instruction of the same length in the slot: to see that a difference is found.
  FormVerdict run_beside(std::span<const std::byte> instruction,
                         std::span<const std::byte> displaced, unsigned rounds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringside::disasm
