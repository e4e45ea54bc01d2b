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
  Action megabyte = action(ActionKind::Tracemem, {constant(0)});
  megabyte.argument = 1 << 20;

  EXPECT_TRUE(verify_program(program({clause(std::vector<Action>(64, megabyte))})));
  EXPECT_FALSE(verify_program(program({clause(std::vector<Action>(4096, megabyte))})));
}

TEST(Verifier, RefusesRegistersThatDoNotExist) {
  EXPECT_EQ(refusal({encode(Opcode::Add, 8, 0, 1)}), "instruction 0: there is no register 8");
  EXPECT_EQ(refusal({encode(Opcode::Add, 0, 9, 1)}), "instruction 0: there is no register 9");
  EXPECT_EQ(refusal({encode(Opcode::Add, 0, 0, 10)}), "instruction 0: there is no register 10");
  EXPECT_NE(refusal({encode_push(Opcode::Pushtv, TupleType::Value, 8, 1)}), "");
  EXPECT_NE(refusal({encode_indexed(Opcode::Stgs, 0x500, 8)}), "");
}

TEST(Verifier, RefusesToWriteRegisterZero) {
  const std::string why = "instruction 0: register 0 cannot be written";
  EXPECT_EQ(refusal({encode(Opcode::Mov, 1, 0, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Ldx, 1, 0, 0)}), why);
  EXPECT_EQ(refusal({encode_indexed(Opcode::Setx, 0, 0)}), why);
  EXPECT_EQ(refusal({encode_indexed(Opcode::Ldgs, 0x100, 0)}), why);
  EXPECT_EQ(refusal({encode_indexed(Opcode::Call, 0, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Stx, 1, 0, 0)}), why);
}

TEST(Verifier, RefusesUnusedBits) {
  const std::string why = "instruction 0: unused bits are set";
  EXPECT_EQ(refusal({encode(Opcode::Cmp, 1, 2, 3)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Tst, 1, 2, 0)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Not, 1, 2, 3)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Nop, 0, 0, 1)}), why);
  EXPECT_EQ(refusal({encode(Opcode::Ldx, 1, 1, 1)}), why);
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
  object.variables = {{0x500,
                       VariableScope::Global,
                       VariableKind::Scalar,
                       {ValueKind::Bytes, false, 1 << 20},
                       "b"}};
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
