#include "dif/verify/verify.h"

#include <gtest/gtest.h>

#include "dif/program/aggregate_function.h"
#include "dif/testing/make_dif.h"

namespace ringside::dif {
namespace {

using namespace testing;

/// Why the object with these words (and a closing ret) is refused; empty when it is not.
std::string refusal(std::vector<std::uint32_t> text) {
  text.push_back(encode_return(0));
  Difo object = difo(std::move(text));
  object.integers = {1};
  object.variables = {{0x500, VariableScope::Global, VariableKind::Scalar, kLong, "x"}};
  const auto done = verify_difo(object);
  return done ? "" : done.error().message;
}

TEST(Verifier, AcceptsWhatTheRulesAllow) {
  EXPECT_EQ(refusal({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Add, 1, 0, 2),
                     encode_indexed(Opcode::Stgs, 0x500, 2), encode_branch(Opcode::Ba, 4)}),
            "");
}

TEST(Verifier, RefusesAClauseWhoseRecordsOffsetsCannotReach) {
  constexpr std::uint64_t kReach = std::uint64_t{1} << 31;
  Action dump = action(ActionKind::Tracemem, {constant(0)});
  dump.argument = kMostRecordBytes;
  std::vector<Action> actions(2046, dump);
  actions.push_back(action(ActionKind::Trace, {constant("may be as long as any")}));
  actions.push_back(action(ActionKind::Trace, {constant(1)}));
  // Each value begins at a multiple of 8.
  dump.argument = kReach - 2047 * (std::uint64_t{kMostRecordBytes} + 8) - (8 + 8) - 8;
  actions.push_back(dump);
  const auto verified = [&actions] { return verify_program(program({clause(actions)})); };

  EXPECT_TRUE(verified());
  ++actions.back().argument;
  ASSERT_FALSE(verified());
  EXPECT_EQ(verified().error().message, "clause 1 records more than fits");
  EXPECT_EQ(verified().error().code, ErrorCode::Limit);
}

TEST(Verifier, RefusesRegistersThatDoNotExist) {
  EXPECT_EQ(refusal({encode(Opcode::Add, 8, 0, 1)}), "instruction 0: there is no register 8");
  EXPECT_EQ(refusal({encode(Opcode::Add, 0, 9, 1)}), "instruction 0: there is no register 9");
  EXPECT_EQ(refusal({encode(Opcode::Add, 0, 0, 10)}), "instruction 0: there is no register 10");
  EXPECT_NE(refusal({encode_push(Opcode::Pushtv, TupleType::Value, 8, 1)}), "");
  EXPECT_NE(refusal({encode_push(Opcode::Pushtv, TupleType::Value, 0, 8)}), "");
  EXPECT_NE(refusal({encode_indexed(Opcode::Stgs, 0x500, 8)}), "");
  for (const std::uint32_t word :
       {encode(Opcode::Not, 8, 0, 1), encode(Opcode::Ldx, 8, 0, 1), encode(Opcode::Cmp, 8, 0),
        encode(Opcode::Cmp, 0, 8), encode(Opcode::Tst, 8, 0), encode(Opcode::Stx, 8, 0, 1),
        encode(Opcode::Stx, 1, 0, 8), encode(Opcode::Copys, 8, 0, 1),
        encode(Opcode::Copys, 0, 8, 1), encode(Opcode::Copys, 0, 0, 8), encode_return(8),
        encode(Opcode::Ldga, 0, 8, 1), encode(Opcode::Ldga, 0, 0, 8),
        encode_indexed(Opcode::Setx, 0, 8), encode_indexed(Opcode::Ldgs, 0x500, 8),
        encode_indexed(Opcode::Call, 0, 8)}) {
    EXPECT_EQ(refusal({word}), "instruction 0: there is no register 8") << std::hex << word;
  }
}

TEST(Verifier, RefusesToWriteRegisterZero) {
  const std::string why = "instruction 0: register 0 cannot be written";
  EXPECT_EQ(refusal({encode(Opcode::Mov, 1, 0, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Ldx, 1, 0, 0)}), why);
  EXPECT_EQ(refusal({encode_indexed(Opcode::Setx, 0, 0)}), why);
  EXPECT_EQ(refusal({encode_indexed(Opcode::Ldgs, 0x100, 0)}), why);
  EXPECT_EQ(refusal({encode_indexed(Opcode::Call, 0, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Stx, 1, 0, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Not, 1, 0, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Copys, 1, 2, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Ldga, 0, 1, 0)}), why);
}

TEST(Verifier, RefusesUnusedBits) {
  const std::string why = "instruction 0: unused bits are set";
  EXPECT_EQ(refusal({encode(Opcode::Cmp, 1, 2, 3)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Tst, 1, 2, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Not, 1, 2, 3)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Nop, 0, 0, 1)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Ldx, 1, 1, 1)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Tst, 1, 0, 2)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Nop, 1, 0, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Nop, 0, 1, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Stx, 1, 1, 1)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Ret, 1, 0, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Ret, 0, 1, 0)}), why);
}

TEST(Verifier, BranchesGoForwardAndStayInside) {
  EXPECT_EQ(refusal({encode_branch(Opcode::Ba, 0)}), "instruction 0: branch to 0 goes backward");
  EXPECT_EQ(refusal({encode(Opcode::Nop), encode_branch(Opcode::Be, 0)}),
            "instruction 1: branch to 0 goes backward");
  EXPECT_EQ(refusal({encode_branch(Opcode::Ba, 2)}), "instruction 0: branch to 2 leaves the code");
}

TEST(Verifier, IndicesLieInTheirTables) {
  EXPECT_EQ(refusal({encode_indexed(Opcode::Setx, 1, 1)}),
            "instruction 0: there is no integer constant 1");
  EXPECT_EQ(refusal({encode_indexed(Opcode::Sets, 1, 1)}),
            "instruction 0: there is no string constant 1");
}

TEST(Verifier, VariablesAreKnownAndUsedAsDeclared) {
  EXPECT_EQ(refusal({encode_indexed(Opcode::Ldgs, 0x118, 1)}), "");
  EXPECT_NE(refusal({encode_indexed(Opcode::Ldgs, 0x119, 1)}), "") << "zonename: not here";
  EXPECT_NE(refusal({encode_indexed(Opcode::Stgs, 0x118, 1)}), "") << "built-ins are read only";
  EXPECT_NE(refusal({encode_indexed(Opcode::Ldgs, 0x501, 1)}), "") << "not declared";
  EXPECT_NE(refusal({encode_indexed(Opcode::Ldts, 0x500, 1)}), "") << "declared as a global";
  EXPECT_NE(refusal({encode_indexed(Opcode::Ldgaa, 0x500, 1)}), "") << "declared as a scalar";
  EXPECT_EQ(refusal({encode(Opcode::Ldga, 2, 0, 1)}), "") << "uregs";
  EXPECT_NE(refusal({encode(Opcode::Ldga, 3, 0, 1)}), "") << "no array but args, regs and uregs";
}

TEST(Verifier, RefusesOpcodesThatNeverRun) {
  EXPECT_EQ(refusal({0}), "instruction 0: 0 is no opcode");
  EXPECT_EQ(refusal({81u << 24}), "instruction 0: 81 is no opcode");
  EXPECT_NE(refusal({encode_indexed(Opcode::Xlate, 0, 1)}), "");
  EXPECT_NE(refusal({encode(Opcode::Stga, 0, 1, 2)}), "");
  EXPECT_NE(refusal({encode(Opcode::Ldta, 0, 1, 2)}), "");
}

TEST(Verifier, NamesTheSubroutineThatIsMissing) {
  EXPECT_EQ(refusal({encode_indexed(Opcode::Call, 19, 1)}),
            "instruction 0: msgsize() is about STREAMS messages, which Linux does not have");
  EXPECT_EQ(refusal({encode_indexed(Opcode::Call, 99, 1)}),
            "instruction 0: there is no subroutine 99");
  EXPECT_EQ(refusal({encode_indexed(Opcode::Call, 8, 1)}), "");
}

TEST(Verifier, TupleTypesFitTheirInstruction) {
  EXPECT_EQ(refusal({encode_push(Opcode::Pushtr, TupleType::String, 0, 1)}), "");
  EXPECT_NE(refusal({encode_push(Opcode::Pushtv, TupleType::String, 0, 1)}), "");
  EXPECT_NE(refusal({encode(Opcode::Pushtr, 2, 0, 1)}), "");
  EXPECT_EQ(refusal({encode_push(Opcode::Pushtv, TupleType::Value, 0, 1)}), "");
  EXPECT_EQ(refusal({encode_push(Opcode::Pushtr, TupleType::Value, 1, 1)}), "");
}

TEST(Verifier, AnObjectEndsWithRetAndHasARecordableResult) {
  EXPECT_FALSE(verify_difo(difo({encode(Opcode::Nop)})));
  EXPECT_FALSE(verify_difo(difo({})));
  EXPECT_FALSE(verify_difo(difo({encode_return(0)}, {ValueKind::Integer, true, 3})));
  EXPECT_FALSE(verify_difo(difo({encode_return(0)}, {ValueKind::Bytes, true, 0})));
  Difo open = difo({encode_return(0)});
  open.strings = "x";
  EXPECT_FALSE(verify_difo(open));
}

/// Why an object is refused that returns 0 as a value of this type.
std::string result_refusal(ValueKind kind, std::uint32_t size) {
  const auto done = verify_difo(difo({encode_return(0)}, {kind, false, size}));
  return done ? "" : done.error().message;
}

TEST(Verifier, AResultHasASizeThatItsKindHas) {
  for (const std::uint32_t size : {1, 2, 4, 8}) {
    EXPECT_EQ(result_refusal(ValueKind::Integer, size), "");
  }
  for (const std::uint32_t size : {0, 3, 5, 7, 9, 16}) {
    EXPECT_EQ(result_refusal(ValueKind::Integer, size),
              "the result cannot have " + std::to_string(size) + " bytes");
  }
  constexpr std::uint32_t kMost = 1 << 20;
  struct Sizes {
    ValueKind kind;
    std::uint32_t least, most;  // 0: any smaller one is possible, too
  };
  for (const auto& [kind, least, most] : std::vector<Sizes>{{ValueKind::String, 0, kMost},
                                                            {ValueKind::Bytes, 1, kMost},
                                                            {ValueKind::KernelStack, 8, kMost},
                                                            {ValueKind::UserStack, 16, kMost},
                                                            {ValueKind::KernelSymbol, 8, 8},
                                                            {ValueKind::KernelModule, 8, 8},
                                                            {ValueKind::UserSymbol, 16, 16},
                                                            {ValueKind::UserModule, 16, 16},
                                                            {ValueKind::UserAddress, 16, 16}}) {
    EXPECT_EQ(result_refusal(kind, least), "") << static_cast<int>(kind);
    EXPECT_EQ(result_refusal(kind, most), "") << static_cast<int>(kind);
    EXPECT_NE(result_refusal(kind, most + 8), "") << static_cast<int>(kind);
    if (least > 0) {
      EXPECT_NE(result_refusal(kind, least == 16 ? 8 : 0), "") << static_cast<int>(kind);
    }
    if (least >= 8) {
      EXPECT_NE(result_refusal(kind, least + 4), "") << "whole words: " << static_cast<int>(kind);
    }
  }
}

/// Why an object is refused that `change` has changed; empty when it is not.
template <class Change>
std::string refusal_of_changed(Change change) {
  Difo object = constant(1);
  change(object);
  const auto done = verify_difo(object);
  return done ? "" : done.error().message;
}

TEST(Verifier, TablesHaveTheirLimits) {
  constexpr std::size_t kMostWords = 65536, kMostEntries = 65536;
  const auto with_words = [](std::size_t words) {
    return refusal_of_changed([words](Difo& object) {
      object.text.insert(object.text.begin(), words - object.text.size(), encode(Opcode::Nop));
    });
  };
  EXPECT_EQ(with_words(kMostWords), "");
  EXPECT_EQ(with_words(kMostWords + 1), "the code is too long");
  const auto with_variables = [](std::size_t count) {
    return refusal_of_changed([count](Difo& object) {
      object.variables.assign(count,
                              {0x500, VariableScope::Global, VariableKind::Scalar, kLong, "x"});
    });
  };
  EXPECT_EQ(with_variables(kMostEntries), "");
  EXPECT_EQ(with_variables(kMostEntries + 1), "there are too many variables");
  const auto with_constants = [](std::size_t integers, std::size_t strings) {
    return refusal_of_changed([=](Difo& object) {
      object.integers.resize(integers);
      object.strings.assign(strings, '\0');
    });
  };
  EXPECT_EQ(with_constants(kMostEntries, kMostEntries), "");
  EXPECT_EQ(with_constants(kMostEntries + 1, 1), "a constant table is too long");
  EXPECT_EQ(with_constants(1, kMostEntries + 1), "a constant table is too long");
}

TEST(Verifier, VariablesMeanTheSameInEveryObject) {
  Difo first = difo({encode_return(0)}), second = first;
  first.variables = {{0x500, VariableScope::Global, VariableKind::Scalar, kLong, "x"}};
  second.variables = {{0x500, VariableScope::Global, VariableKind::Scalar, kString, "x"}};

  const auto done = verify_program(
      program({clause({action(ActionKind::Trace, {first}), action(ActionKind::Trace, {second})})}));

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "DIF of clause 1, action 2: variable 'x' changes its type");
}

TEST(Verifier, RefusesVariablesThatCannotBeStored) {
  Difo object = difo({encode_return(0)});
  object.variables = {{0x4ff, VariableScope::Global, VariableKind::Scalar, kLong, "low"}};
  EXPECT_FALSE(verify_difo(object));
  object.variables = {{0x500, VariableScope::Clause, VariableKind::Associative, kLong, "a"}};
  EXPECT_FALSE(verify_difo(object));
  for (const ValueKind kind : {ValueKind::Bytes, ValueKind::String}) {
    const auto with = [&](std::uint32_t size) {
      object.variables = {
          {0x500, VariableScope::Global, VariableKind::Scalar, {kind, false, size}, "b"}};
      return verify_difo(object).has_value();
    };
    EXPECT_TRUE(with(16 << 10));
    EXPECT_FALSE(with((16 << 10) + 1));
  }
  object.variables = {{0x500, static_cast<VariableScope>(3), VariableKind::Scalar, kLong, "s"}};
  EXPECT_FALSE(verify_difo(object));
  object.variables = {{0x500, VariableScope::Global, static_cast<VariableKind>(2), kLong, "k"}};
  EXPECT_FALSE(verify_difo(object));
}

TEST(Verifier, ActionsHaveTheArgumentsThatTheyNeed) {
  EXPECT_FALSE(verify_program(program({clause({action(ActionKind::Trace, {})})})));
  EXPECT_FALSE(verify_program(program({clause({action(ActionKind::Exit, {})})})));
  EXPECT_FALSE(verify_program(program({clause({aggregate(0, {})})}))) << "no such aggregation";
  const Aggregation sum{"s", AggregateFunction::Sum, {kLong}, 0};
  EXPECT_FALSE(verify_program(program({clause({aggregate(0, {constant(1)})})}, {sum})));
  EXPECT_TRUE(verify_program(program({clause({aggregate(0, {constant(1), constant(2)})})}, {sum})));
  EXPECT_FALSE(
      verify_program(program({clause({aggregate(0, {constant("s"), constant(2)})})}, {sum})))
      << "the key's type is the aggregation's";
}

TEST(Verifier, AggregationParametersMakeBuckets) {
  Aggregation bad{"q", AggregateFunction::Lquantize, {}, 0};
  EXPECT_FALSE(verify_program(program({}, {bad})));
  bad.function = AggregateFunction::Llquantize;
  bad.parameters = LogLinearParameters{10, 0, 60, 10}.pack();
  EXPECT_FALSE(verify_program(program({}, {bad}))) << "10^61 does not fit";
  bad.parameters = LogLinearParameters{10, 0, 6, 20}.pack();
  EXPECT_TRUE(verify_program(program({}, {bad})));
}

}  // namespace
}  // namespace ringside::dif
