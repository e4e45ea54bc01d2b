// Runs DIF: one verified object at a time, in the firing that was begun. Every input is defined:
// registers are 0 at first, shifts are masked, division by zero is a fault, MIN / -1 is MIN;
// forward branches bound the time. Objects run as machine code (native_code.h). The interpreter
// here defines what they do, and runs those that have none: a plain switch. Fire context: yes, but
// for the constructor.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "dif/evaluate/builtin_variables.h"
#include "dif/evaluate/memory.h"
#include "dif/evaluate/native_code.h"
#include "dif/evaluate/subroutines.h"
#include "dif/evaluate/variables.h"
#include "dif/program/insn.h"
#include "dif/program/program.h"

namespace ringside::dif {

/// The strings of a program's objects, in one piece: so a pointer to one outlives the object's run.
class ConstantStrings {
 public:
  explicit ConstantStrings(const Program& program);
  std::string_view text() const { return text_; }
  /// Where an object's strings lie in text(); 0 for an object of another program.
  std::uint32_t of(const Difo& difo) const {
    const auto found = begins_.find(&difo);
    return found == begins_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<const Difo*, std::uint32_t> begins_;
  std::string text_;
};

/// The state that the evaluators of all vCPUs have in common.
struct SharedState {
  SharedState(const Program& program, const EngineOptions& options, unsigned vcpus,
              GlobalsShare share = {})
      : constants(program),
        globals(share.globals != nullptr
                    ? std::move(share.globals)
                    : std::make_shared<SharedGlobals>(program, options, vcpus)),
        first_vcpu(share.first_vcpu),
        locks(globals->locks),
        variables(globals->variables) {
    if (options.jit) code.compile(program, constants);
  }

  const ConstantStrings constants;
  NativeCode code;
  const std::shared_ptr<SharedGlobals> globals;
  const unsigned first_vcpu;  // among those that share the globals
  SharedLocks& locks;
  SharedVariables& variables;
};

/// One for each vCPU.
class Evaluator {
 public:
  /// For the objects of `program`, which the verifier accepted. speculation() gets its ids from
  /// `speculations`, which must outlive this, as `shared` must.
  Evaluator(const Program& program, const EngineOptions& options, SharedState& shared,
            SpeculationIds& speculations, unsigned vcpu);
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  void begin_firing(const ProbeIdentity& probe, const FireRecord& record,
                    const GuestContext& guest);
  /// Scratch memory is the caller's to begin anew (Memory::begin_clause()).
  void begin_clause(EcbId ecb);
  /// The object's value: a number, or an address that memory() can read. A fault's pc is the
  /// instruction's offset in bytes.
  Result<std::uint64_t, Fault> evaluate(const Difo& difo) {
    run_.tuple_depth = 0;
    const NativeFunction compiled = code_.find(difo);
    if (compiled == nullptr) return interpret(difo);
    return result_of(compiled(run_));
  }

  /// The function for an opcode that compiled code does not do by itself.
  static NativeCall native_call(Opcode op);

  Memory& memory() { return memory_; }
  Variables& variables() { return variables_; }
  SharedAccess& access() { return access_; }
  BuiltinVariables& builtins() { return builtins_; }

 private:
  Result<std::uint64_t, Fault> interpret(const Difo& difo);
  Result<std::uint64_t, Fault> run(const Difo& difo);
  Result<std::uint64_t, Fault> result_of(NativeAnswer answer) const {
    if (answer.faulted != 0) return tl::make_unexpected(run_.fault);
    return answer.value;
  }
  template <Opcode kOp>
  Result<std::uint64_t, Fault> perform(std::uint64_t a, std::uint64_t b, std::uint64_t c);
  Result<std::uint64_t, Fault> perform(Opcode op, std::uint64_t a, std::uint64_t b = 0,
                                       std::uint64_t c = 0) {
    return result_of(native_call(op)(run_, a, b, c));
  }
  template <Opcode kOp>
  static NativeAnswer call(RunState& run, std::uint64_t a, std::uint64_t b, std::uint64_t c);
  Result<int, Fault> order_strings(std::uint64_t a, std::uint64_t b);
  template <class T>
  Result<std::uint64_t, Fault> load(std::uint64_t at);
  template <class T>
  Result<std::uint64_t, Fault> load_user(std::uint64_t at);
  template <class T>
  Result<std::uint64_t, Fault> load_state(std::uint64_t at);
  template <class T>
  Result<void, Fault> store(std::uint64_t at, std::uint64_t value);
  Result<void, Fault> push(Insn in);
  std::uint64_t constant_string(const Difo& difo, std::uint16_t index) const;
  Result<std::uint64_t, Fault> zeroed_scratch(std::uint64_t size);
  Result<void, Fault> copy(std::uint64_t from, std::uint64_t size, std::uint64_t to);
  Result<std::uint64_t, Fault> load_scalar(std::uint16_t id);
  Result<std::uint64_t, Fault> load_element(VariableScope scope, std::uint16_t id, bool keyed);
  Result<void, Fault> store_element(VariableScope scope, std::uint16_t id, bool keyed,
                                    std::uint64_t value);
  std::span<const TupleValue> tuple() const {
    return std::span(run_.tuple).first(run_.tuple_depth);
  }

  const ConstantStrings& constants_;
  const NativeCode& code_;
  SharedAccess access_;
  Memory memory_;
  Variables variables_;
  BuiltinVariables builtins_;
  Subroutines subroutines_;
  std::array<std::uint64_t, kRegisters> regs_{};
  ConditionCodes cc_;
  std::size_t pc_ = 0;
  RunState run_;
};

}  // namespace ringside::dif
