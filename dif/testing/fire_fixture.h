// A test fixture with an engine, a fake guest, and short ways to fire and to look at records.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dif/engine/engine.h"
#include "dif/testing/fake_guest.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"

namespace ringside::dif::testing {

inline constexpr ProbeId kBegin{1}, kEnd{2}, kError{3}, kProbe{4};
inline constexpr std::uint64_t kUnmapped = 0xffff'8880'0000'0000;

class FireFixture : public ::testing::Test {
 protected:
  /// An engine that runs clause i on probes[i].
  void start(Program source, std::vector<ProbeId> probes, EngineOptions options = {},
             unsigned vcpus = 2) {
    auto verified = verify_program(std::move(source));
    ASSERT_TRUE(verified) << verified.error().message;
    engine_.emplace(std::move(*verified), options, vcpus);
    for (std::uint32_t i = 0; i < probes.size(); ++i) {
      engine_->enable(i, probes[i], {"fbt", "vmlinux", "vfs_read", "entry"});
    }
    engine_->set_end_probe(kEnd);
    engine_->set_error_probe(kError);
  }
  void fire(ProbeId probe, std::uint64_t timestamp = 1, std::uint32_t vcpu = 0) {
    engine_->fire(probe, FireRecord{vcpu, timestamp, 0}, guest_);
  }
  std::int64_t number(const Record& record, std::size_t field = 0) {
    const RecordField& at = engine_->ecb(record.ecb).fields[field];
    std::int64_t value = 0;
    std::memcpy(&value, record.data.data() + at.offset, std::min<std::size_t>(at.size, 8));
    return value;
  }
  /// The 8-byte words of a field.
  std::vector<std::uint64_t> words(const Record& record, std::size_t field = 0) {
    const RecordField& at = engine_->ecb(record.ecb).fields[field];
    std::vector<std::uint64_t> values(at.size / 8);
    std::memcpy(values.data(), record.data.data() + at.offset, values.size() * 8);
    return values;
  }
  std::string text(const Record& record, std::size_t field = 0) {
    // SAFETY: characters may alias any bytes; the engine ends every recorded string with a NUL.
    return reinterpret_cast<const char*>(record.data.data() +
                                         engine_->ecb(record.ecb).fields[field].offset);
  }
  /// The first field of each record.
  std::vector<std::int64_t> numbers(const TraceData& trace_data) {
    std::vector<std::int64_t> values;
    for (const Record& record : trace_data.records) values.push_back(number(record));
    return values;
  }
  static std::uint64_t drops(const TraceData& trace_data, DropKind kind, std::size_t vcpu = 0) {
    return trace_data.drops[vcpu][static_cast<std::size_t>(kind)];
  }

  FakeGuest guest_;
  std::optional<Engine> engine_;
};

inline Clause trace(Difo value) {
  return clause({action(ActionKind::Trace, {std::move(value)})});
}

inline Difo load_variable(Opcode op, VariableScope scope, unsigned id = 0x500) {
  Difo object = difo({encode_indexed(op, id, 1), encode_return(1)});
  object.variables = {{static_cast<std::uint16_t>(id), scope, VariableKind::Scalar, kLong, "x"}};
  return object;
}

/// `variable = value` for a scalar.
inline Action assign(Opcode op, VariableScope scope, std::uint64_t value, unsigned id = 0x500) {
  Difo object = constant(value);
  object.text = {encode_indexed(Opcode::Setx, 0, 1), encode_indexed(op, id, 1), encode_return(1)};
  object.variables = {{static_cast<std::uint16_t>(id), scope, VariableKind::Scalar, kLong, "x"}};
  return action(ActionKind::Evaluate, {object});
}

/// `++global`: its new value.
inline Difo increment(unsigned id = 0x500) {
  Difo object = load_variable(Opcode::Ldgs, VariableScope::Global, id);
  object.integers = {1};
  object.text = {encode_indexed(Opcode::Ldgs, id, 1), encode_indexed(Opcode::Setx, 0, 2),
                 encode(Opcode::Add, 1, 2, 1), encode_indexed(Opcode::Stgs, id, 1),
                 encode_return(1)};
  return object;
}

/// `global < limit`
inline Difo less_than(unsigned id, std::uint64_t limit) {
  Difo object = load_variable(Opcode::Ldgs, VariableScope::Global, id);
  object.integers = {limit, 1};
  object.text = {encode_indexed(Opcode::Ldgs, id, 1), encode_indexed(Opcode::Setx, 0, 2),
                 encode(Opcode::Cmp, 1, 2),           encode_branch(Opcode::Bl, 6),
                 encode(Opcode::Mov, 0, 0, 1),        encode_return(1),
                 encode_indexed(Opcode::Setx, 1, 1),  encode_return(1)};
  return object;
}

}  // namespace ringside::dif::testing
