// Builds one DIF object: registers, forward labels, constant tables. Knows nothing of D.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dif/d/code/spill.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/program/insn.h"
#include "dif/program/program.h"

namespace ringside::d {

using dif::Opcode;

/// A place that branches go to; always further on.
struct Label {
  std::uint32_t index = 0;
};

class Emitter {
 public:
  /// `registers` counts r0, and is at most what DIF has. If an object needs more, the variables
  /// `slots` replace them.
  Emitter(unsigned registers, SpillSlots slots) : registers_(registers), slots_(std::move(slots)) {}
  /// The lowest free register, or the complaint that there are too few to spill any.
  Checked<unsigned> allocate(const Location& at);
  /// A register with the value in it, by its name where it has one.
  Checked<unsigned> constant(std::uint64_t value, const Location& at);
  Checked<unsigned> constant(std::uint64_t value, std::optional<std::uint32_t> name,
                             const Location& at);
  /// r0 may be released, to no effect.
  void release(unsigned reg) { used_[reg] = reg == 0; }
  /// Marks a register used again that was released: the branches of ?: meet in one.
  void take(unsigned reg) { used_[reg] = true; }

  void emit(Opcode op, unsigned r1 = 0, unsigned r2 = 0, unsigned rd = 0);
  void indexed(Opcode op, unsigned index, unsigned rd);
  void push(Opcode op, dif::TupleType type, unsigned size, unsigned value);
  /// `size` names the size of what the variable holds, where the kernel says it.
  void variable(Opcode op, const dif::Variable& variable, std::optional<std::uint32_t> size,
                unsigned rd);
  void set_integer(std::uint64_t value, unsigned rd);
  /// A value of the kernel's, by its index in Program::kernel_names; `value` where it was compiled.
  void set_named(std::uint32_t name, std::uint64_t value, unsigned rd);
  void set_string(std::string_view text, unsigned rd);

  Label label();
  void branch(Opcode op, Label to);
  void place(Label label);

  /// The instructions that are emitted from here on are of this part of the source; answers with
  /// the part before.
  unsigned begin_part(unsigned part) { return std::exchange(part_, part); }

  /// Ends the object with `ret reg`. `size` names the size of the result, as for variables.
  Checked<dif::Difo> finish(unsigned reg, const dif::ValueType& result, const Location& at,
                            std::optional<std::uint32_t> size = std::nullopt);

 private:
  const unsigned registers_;
  const SpillSlots slots_;
  std::vector<bool> used_{true};
  std::vector<WideInsn> text_;
  unsigned part_ = 0;
  dif::Difo difo_;
  std::unordered_map<std::uint64_t, unsigned> integers_;
  std::unordered_map<std::uint32_t, unsigned> named_;
  std::unordered_map<std::string, unsigned> strings_;
  std::vector<std::uint32_t> labels_;  // where they were placed
};

}  // namespace ringside::d
