// Finds out, before any trap, which memory of the guest a slice (slice.h) reads, and which of the
// tracepoint's arguments are addresses that a record can tell. A recorded trap copies that memory
// (vmm/shim/fetch_list.h), so the slice can be evaluated later.
// It follows the slice's instructions as disasm::Evaluation does, but without values. It knows of a
// register or a word either an address, which is a distance from a register of the trap, from a
// word that was loaded, or from the CPU's own data; or the largest number that it can hold; or
// nothing. Used by SiteWatch. Fire context: no.
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

class SliceNeeds {
 public:
  explicit SliceNeeds(const CpuNumber& cpu) : cpu_(cpu) {}

  /// Of a register or a word, as far as it is known. Both are empty: it may be anything.
  struct Value {
    std::optional<dif::RecordAddress> address{};
    std::optional<std::uint64_t> most{};  // the largest number that it can be

    static Value of(std::uint64_t number) {
      return {dif::RecordAddress{dif::RecordAddress::Base::Constant, 0,
                                 static_cast<std::int64_t>(number)},
              number};
    }
    std::optional<std::uint64_t> constant() const;
    bool operator==(const Value&) const = default;
  };
  /// Bytes that the slice itself has written.
  struct Word {
    dif::RecordAddress at;
    std::uint8_t bytes = 0;
    Value value;
  };
  /// Before an instruction, on one way through the slice.
  struct State {
    std::array<Value, 16> registers;  // in x86's numbering
    std::vector<Word> written{};
  };

  /// At the trap.
  static State first();
  static Value& register_of(State& state, arch::Register which);
  /// Runs one instruction, and adds to needs() what it reads. Whoever calls this follows jumps,
  /// calls and returns.
  void step(State& state, const disasm::Operation& in);
  /// The value of 1 to 8 bytes there.
  Value load(State& state, const Value& at, std::uint8_t bytes);
  void store(State& state, const Value& at, std::uint8_t bytes, const Value& value);
  Value pop(State& state);
  /// The same value with its address as needs() has it: there a register of the trap is an argument
  /// of plan().
  Value resolved(Value value);
  /// Makes it an obstacle of needs() that not all addresses are known.
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
