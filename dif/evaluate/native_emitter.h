// Emits the machine code of one object (native_code.h). A register of DIF has one of the
// processor's for the whole object. Two of these do not survive calls, and are saved around a call
// if they are needed after it. Fire context: no.
#pragma once

#include <asmjit/x86.h>

#include <optional>
#include <vector>

#include "dif/evaluate/native_analysis.h"
#include "dif/program/insn.h"
#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::dif {

class NativeEmitter {
 public:
  /// All must outlive this. `strings`: where the object's lie among the program's. `has_bmi2`: the
  /// processor has the instructions of that name.
  NativeEmitter(asmjit::x86::Assembler& code, const Difo& difo, const NativeAnalysis& known,
                std::uint32_t strings, bool has_bmi2)
      : code_(code),
        difo_(difo),
        known_(known),
        strings_(strings),
        has_bmi2_(has_bmi2),
        labels_(difo.text.size()),
        faulted_(code.newLabel()) {}

  /// The code is a NativeFunction and begins at `entry`.
  void emit(const asmjit::Label& entry);

 private:
  /// Code that is seldom needed, behind the object's own.
  struct Aside {
    asmjit::Label label;
    std::size_t pc = 0;
    FaultKind raises = FaultKind::Unknown;   // Unknown: RunState has the fault
    std::optional<asmjit::Label> back = {};  // of a load that is made by a call
  };

  void emit_entry();
  void emit_exit();
  void emit_instruction();
  void emit_sum();
  void emit_difference();
  void emit_commutative(asmjit::x86::Inst::Id id);
  void emit_shift(asmjit::x86::Inst::Id by_register, asmjit::x86::Inst::Id by_cl);
  void emit_division();
  void emit_compare();
  void emit_branch();
  void emit_cached_load(std::size_t cache);
  void emit_value_at(const asmjit::x86::Mem& at);
  void emit_push();
  void emit_pop();
  void emit_call(std::initializer_list<unsigned> registers);
  void emit_call_with(std::uint64_t constant, std::optional<unsigned> number = {});
  void finish_call();
  void emit_aside(const Aside& aside);

  asmjit::Label fault(FaultKind raises = FaultKind::Unknown) {
    asides_.push_back({code_.newLabel(), pc_, raises});
    return asides_.back().label;
  }
  const asmjit::x86::Gp& rd() const;
  void move(const asmjit::x86::Gp& to, unsigned number);
  const asmjit::x86::Gp& value(unsigned number, const asmjit::x86::Gp& zero);
  RegisterBits lost_by_call() const;

  asmjit::x86::Assembler& code_;
  const Difo& difo_;
  const NativeAnalysis& known_;
  const std::uint32_t strings_;
  const bool has_bmi2_;
  std::vector<asmjit::Label> labels_;
  std::vector<Aside> asides_;
  const asmjit::Label faulted_;
  std::vector<asmjit::x86::Gp> saved_;
  std::int32_t frame_ = 0;
  std::size_t pc_ = 0;
  Insn in_;
};

}  // namespace ringside::dif
