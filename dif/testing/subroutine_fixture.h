// For the tests of subroutines: calls one as DIF would, on a fake guest.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dif/evaluate/subroutines.h"
#include "dif/testing/fake_guest.h"

namespace ringside::dif::testing {

inline constexpr std::uint64_t kKernel = 0xffff'8880'0000'1000;
inline constexpr std::uint64_t kUser = 0x7f00'0000'1000;

class SubroutineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_.begin_firing(guest_.kernel(), guest_.user());
    builtins_.begin_firing({}, record_, guest_);
    memory_.begin_clause();
  }
  TupleValue text(std::string_view s) {
    return {memory_.new_string(s).value(), 0, ValueKind::String};
  }
  static TupleValue number(std::int64_t n) {
    return {static_cast<std::uint64_t>(n), 0, ValueKind::Integer};
  }
  Result<std::uint64_t, Fault> call(Subroutine which, std::vector<TupleValue> arguments) {
    return subroutines_.call(which, arguments);
  }
  std::int64_t as_number(Subroutine which, std::vector<TupleValue> arguments) {
    return static_cast<std::int64_t>(call(which, std::move(arguments)).value());
  }
  /// The text of the answer; "(null)" and "(fault)" for those.
  std::string as_text(Subroutine which, std::vector<TupleValue> arguments) {
    const auto answer = call(which, std::move(arguments));
    if (!answer) return "(fault)";
    if (*answer == 0) return "(null)";
    return std::string(memory_.string(*answer, 256).value());
  }

  FakeGuest guest_;
  Memory memory_{EngineOptions{}};
  BuiltinVariables builtins_{memory_};
  SharedLocks locks_{1};
  SharedAccess access_{locks_};
  SpeculationIds speculations_;
  Subroutines subroutines_{memory_, builtins_, access_, speculations_};
  FireRecord record_;
};

}  // namespace ringside::dif::testing
