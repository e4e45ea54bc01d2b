// Finds which memory of the guest a slice looks at, and which addresses the tracepoint's arguments
// are, before anything has run: so that a trap that is recorded has it (vmm/shim/fetch_list.h). The
// slice's ways are followed with addresses in the place of values: a register of the trap, a word
// that was loaded, the CPU's own data, and a distance from it. Used by SiteWatch. Fire context: no.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "dif/verify/record_needs.h"
#include "disasm/decoder.h"
#include "providers/context/argument_plan.h"

namespace ringside::providers {

/// The word from which a CPU knows its number.
struct CpuNumber {
  std::optional<std::uint64_t> offset{};  // from its per-CPU base
  std::uint64_t most = 0;                 // the largest that there is
};

/// A vCPU that goes its own way, like disasm::Evaluation, with addresses for values.
class SliceNeeds {
 public:
  explicit SliceNeeds(const CpuNumber& cpu) : cpu_(cpu) {}

  /// The addresses that are known on one way. Of a value that is none, the largest that it can be.
  struct Value {
    std::optional<dif::RecordAddress> address{};
    std::optional<std::uint64_t> most{};

    static Value of(std::uint64_t number) {
      return {dif::RecordAddress{dif::RecordAddress::Base::Constant, 0,
                                 static_cast<std::int64_t>(number)},
              number};
    }
    std::optional<std::uint64_t> constant() const;
    bool operator==(const Value&) const = default;
  };
  struct Word {
    dif::RecordAddress at;
    std::uint8_t bytes = 0;
    Value value;
  };
  struct State {
    std::array<Value, 16> registers;  // in x86's numbering
    std::vector<Word> written{};
  };

  /// A trap's registers.
  static State first();
  static Value& register_of(State& state, arch::Register which);
  /// Runs one instruction, which adds to needs() what it looks at. A jump or a call changes no more
  /// than the stack.
  void step(State& state, const disasm::Operation& in);
  /// The value of 1 to 8 bytes there.
  Value load(State& state, const Value& at, std::uint8_t bytes);
  void store(State& state, const Value& at, std::uint8_t bytes, const Value& value);
  Value pop(State& state);
  /// A value whose address needs() can have.
  Value resolved(Value value);
  /// Notes that it cannot be told beforehand what is looked at.
  void prevent();

  const dif::RecordNeeds& needs() const { return needs_; }
  /// Says what the arguments in needs() are.
  const ArgumentPlan& plan() const { return plan_; }

 private:
  Value address_of(State& state, const disasm::Operation& in);
  Value read(State& state, const disasm::Operation& in, const disasm::Operand& operand);
  void write(State& state, const disasm::Operation& in, const disasm::Operand& operand,
             const Value& value);
  void push(State& state, const Value& value);
  void test_bit(State& state, const disasm::Operation& in);
  Value result(const disasm::Operation& in, const Value& to, const Value& from) const;

  const CpuNumber cpu_;
  dif::RecordNeeds needs_;
  ArgumentPlan plan_;
  std::size_t arguments_ = 0;  // of plan_, in use
};

}  // namespace ringside::providers
