// Arguments of probes in processes, as the notes of static probes (USDT) describe them: for each a
// size, negative if it has a sign, and an operand of the assembler, as in
//   8@%rdi   -4@$5   4@-20(%rbp)   8@16(%rax,%rdx,8)   1@%ah
// A distance from rip is one from the probe.
// SystemTap's description: "UserSpaceProbeImplementation", "Argument Format"; the operands are
// those of the GNU assembler for x86-64.
// Pure, and then as ComputedArguments. Hostile input: the text is a file's, the memory a process's.
// Fire context: argument() yes, the rest no.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "disasm/decoder.h"
#include "providers/context/argument_plan.h"

namespace ringside::providers {

struct ArgumentOperand {
  enum class Kind : std::uint8_t {
    Constant,
    Register,
    Memory,
    Unknown,  // a symbol, a floating-point register, or what cannot be read
  };
  Kind kind = Kind::Unknown;
  std::uint8_t bytes = sizeof(std::uint64_t);  // 1, 2, 4 or 8
  bool is_signed = false;
  std::uint64_t constant = 0;
  arch::Register which = nullptr;
  bool is_high_byte = false;  // of the register's low word, as %ah
  disasm::MemoryOperand memory{};

  bool operator==(const ArgumentOperand&) const = default;
};

/// At most as many as a probe has arguments. An operand that cannot be told is Unknown.
std::vector<ArgumentOperand> parse_operands(std::string_view text);

class OperandArguments final : public ComputedArguments {
 public:
  explicit OperandArguments(std::vector<ArgumentOperand> operands)
      : operands_(std::move(operands)) {}

  /// Good for as long as this object.
  ArgumentPlan plan() const;
  Result<std::uint64_t, Fault> argument(unsigned n, const ArgumentMoment& at) const override;
  RecordedArgument recorded(unsigned n) const override;

 private:
  const std::vector<ArgumentOperand> operands_;
};

}  // namespace ringside::providers
