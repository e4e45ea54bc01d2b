// The verifier's rules for actions, shapes, loops and speculations.
#include <gtest/gtest.h>

#include "dif/program/aggregate_function.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "dif/verify/verify_shapes.h"

namespace ringside::dif {
namespace {

using namespace testing;

std::string refusal(Program source) {
  const auto done = verify_program(std::move(source));
  return done ? "" : done.error().message;
}
std::string refusal(Action one) {
  return refusal(program({clause({std::move(one)})}));
}

TEST(ProgramVerifier, ActionsHaveTheArgumentsThatTheyTake) {
  const Difo one = constant(1);
  for (const ActionKind kind :
       {ActionKind::Speculate, ActionKind::Commit, ActionKind::Discard, ActionKind::Raise,
        ActionKind::Chill, ActionKind::Trace, ActionKind::Exit, ActionKind::Evaluate}) {
    EXPECT_EQ(refusal(action(kind, {one})), "");
    EXPECT_EQ(refusal(action(kind, {})),
              "DIF of clause 1, action 1: 0 arguments where 1 are needed");
    EXPECT_NE(refusal(action(kind, {one, one})), "");
  }
  for (const ActionKind kind :
       {ActionKind::Stop, ActionKind::Breakpoint, ActionKind::Panic, ActionKind::Ftruncate}) {
    EXPECT_EQ(refusal(action(kind, {})), "");
    EXPECT_NE(refusal(action(kind, {one})), "");
  }
  EXPECT_EQ(refusal(action(static_cast<ActionKind>(99), {})),
            "DIF of clause 1, action 1: there is no action 99");
}

TEST(ProgramVerifier, FormatsTakeTheirArguments) {
  for (const ActionKind kind : {ActionKind::Printf, ActionKind::System, ActionKind::Freopen}) {
    Action made = action(kind, {constant(1)});
    made.format = "%d";
    EXPECT_EQ(refusal(made), "");
    made.format = "%*d";
    EXPECT_NE(refusal(made), "") << "the width is an argument, too";
    made.format = "100%%";
    EXPECT_NE(refusal(made), "");
  }
}

TEST(ProgramVerifier, DumpsHaveASize) {
  Action dump = action(ActionKind::TracememDynamic, {constant(0), constant(8)});
  EXPECT_NE(refusal(dump), "");
  dump.argument = 64;
  EXPECT_EQ(refusal(dump), "");
  dump.argument = kMostRecordBytes + 1;
  EXPECT_NE(refusal(dump), "");
}

TEST(ProgramVerifier, AggregationActionsNameAggregations) {
  const Aggregation plain{"a", AggregateFunction::Count, {}, 0};
  const Aggregation keyed{"b", AggregateFunction::Count, {kLong}, 0};
  const auto with = [&](ActionKind kind, std::vector<std::uint32_t> which) {
    Action made = action(kind, {});
    made.aggregations = std::move(which);
    return refusal(program({clause({made})}, {plain, keyed}));
  };
  EXPECT_EQ(with(ActionKind::Clear, {0}), "");
  EXPECT_NE(with(ActionKind::Clear, {}), "");
  EXPECT_NE(with(ActionKind::Trunc, {0, 1}), "");
  EXPECT_NE(with(ActionKind::Denormalize, {2}), "");
  EXPECT_NE(with(ActionKind::Normalize, {0}), "") << "no factor";
  EXPECT_EQ(with(ActionKind::Printa, {0}), "");
  EXPECT_NE(with(ActionKind::Printa, {}), "");
  EXPECT_NE(with(ActionKind::Printa, {0, 1}), "") << "their keys differ";
}

TEST(ProgramVerifier, AggregationsHaveNoMoreKeysThanTheCompilerGives) {
  const auto with = [](std::size_t keys) {
    const Aggregation wide{"a", AggregateFunction::Count, {keys, kLong}, 0};
    return refusal(program({}, {wide}));
  };
  EXPECT_EQ(with(kMostKeys), "");
  EXPECT_EQ(with(kMostKeys + 1), "aggregation @a: more than 32 keys");
}

TEST(ProgramVerifier, AStackFitsIntoItsKey) {
  const auto with = [](ValueType key, ValueType given) {
    const Aggregation stacks{"a", AggregateFunction::Count, {key}, 0};
    Action counts = action(ActionKind::Aggregate, {difo({encode_return(0)}, given)});
    counts.aggregations = {0};
    return refusal(program({clause({counts})}, {stacks}));
  };
  const ValueType kernel{ValueKind::KernelStack, false, 32}, user{ValueKind::UserStack, false, 40};
  EXPECT_EQ(with(user, user), "");
  EXPECT_EQ(with(user, kernel), "") << "with a word before it";
  EXPECT_EQ(with(user, {ValueKind::UserStack, false, 16}), "");
  EXPECT_NE(with(kernel, {ValueKind::UserStack, false, 16}), "");
  EXPECT_NE(with(user, {ValueKind::KernelStack, false, 40}), "");
  EXPECT_NE(with(kernel, {ValueKind::KernelStack, false, 40}), "");
}

TEST(ProgramVerifier, StacksAndSymbolsHaveTheirSizes) {
  const auto with = [](ValueKind kind, std::uint32_t size) {
    return refusal(action(ActionKind::Trace, {difo({encode_return(0)}, {kind, false, size})}));
  };
  EXPECT_EQ(with(ValueKind::KernelStack, 160), "");
  EXPECT_NE(with(ValueKind::KernelStack, 12), "");
  EXPECT_EQ(with(ValueKind::UserStack, 16), "");
  EXPECT_NE(with(ValueKind::UserStack, 8), "") << "a process id and no frame";
  EXPECT_EQ(with(ValueKind::KernelSymbol, 8), "");
  EXPECT_NE(with(ValueKind::KernelModule, 16), "");
  EXPECT_EQ(with(ValueKind::UserAddress, 16), "");
  EXPECT_NE(with(static_cast<ValueKind>(77), 8), "");
}

TEST(ProgramVerifier, VariablesHoldNoStacks) {
  Difo object = difo({encode_return(0)});
  object.variables = {{0x500,
                       VariableScope::Global,
                       VariableKind::Scalar,
                       {ValueKind::KernelStack, false, 8},
                       "s"}};
  EXPECT_FALSE(verify_difo(object));
}

TEST(ProgramVerifier, ASpeculationIsChosenOnceAndFirst) {
  const Action choose = action(ActionKind::Speculate, {constant(1)});
  const Action record = action(ActionKind::Trace, {constant(1)});
  const Action assign = action(ActionKind::Evaluate, {constant(1)});
  EXPECT_EQ(refusal(program({clause({assign, choose, record})})), "");
  EXPECT_NE(refusal(program({clause({record, choose})})), "");
  EXPECT_NE(refusal(program({clause({choose, choose})})), "");
}

TEST(ProgramVerifier, KnowsWhatIsDestructive) {
  Difo copyout = difo({encode_indexed(Opcode::Call, 13, 1), encode_return(0)});
  const auto verified = verify_program(program({clause({action(ActionKind::Evaluate, {
                                                                                         copyout,
                                                                                     })})}));
  ASSERT_TRUE(verified);
  EXPECT_TRUE(verified->program().clauses[0].actions[0].arguments[0].destructive);
  EXPECT_EQ(first_destructive(verified->program())->name, "copyout");
  EXPECT_EQ(first_destructive(program({clause({action(ActionKind::Panic, {})})}))->name, "panic");
  EXPECT_FALSE(first_destructive(count_by_execname()));

  Difo liar = constant(1);
  liar.destructive = true;
  const auto honest = verify_program(program({clause({action(ActionKind::Trace, {liar})})}));
  EXPECT_FALSE(honest->program().clauses[0].actions[0].arguments[0].destructive);
}

/// A program of `n` clauses of one probe; loops are {last, first, limit}.
struct LoopCase {
  std::size_t last;
  Repeat repeat;
};
std::string loop_refusal(std::size_t n, std::vector<LoopCase> loops) {
  Program source;
  source.clauses.assign(n, clause({action(ActionKind::Evaluate, {constant(1)})}));
  for (const LoopCase& loop : loops) source.clauses[loop.last].repeat = loop.repeat;
  return refusal(std::move(source));
}

TEST(ProgramVerifier, LoopsGoBackNestAndEnd) {
  EXPECT_EQ(loop_refusal(3, {{1, {0, 10}}, {2, {0, 10}}}), "");
  EXPECT_EQ(loop_refusal(3, {{0, {0, 1 << 20}}, {1, {1, 1 << 20}}}), "") << "one after another";
  EXPECT_EQ(loop_refusal(2, {{0, {1, 10}}}), "clause 1 repeats from a later one");
  EXPECT_EQ(loop_refusal(2, {{1, {0, 0}}}), "the loop of clause 2 has no limit");
  EXPECT_EQ(loop_refusal(4, {{2, {0, 2}}, {3, {1, 2}}}),
            "the loop of clause 4 overlaps that of clause 3");
  EXPECT_EQ(loop_refusal(1, {{0, {0, (1 << 20) + 1}}}),
            "the loop of clause 1 may run more than 1048576 times");
  EXPECT_NE(loop_refusal(3, {{0, {0, 1024}}, {1, {1, 2}}, {2, {0, 1025}}}), "")
      << "1024 times 1025 is too much";
  EXPECT_EQ(loop_refusal(3, {{0, {0, 1024}}, {1, {1, 2}}, {2, {0, 1024}}}), "");
}

TEST(ProgramVerifier, ALoopStaysWithinOneProbe) {
  Program source;
  source.clauses.assign(2, clause({action(ActionKind::Evaluate, {constant(1)})}));
  source.clauses[0].probes = {{"dtrace", "", "", "BEGIN"}};
  source.clauses[1].probes = {{"dtrace", "", "", "END"}};
  source.clauses[1].repeat = Repeat{0, 2};
  EXPECT_EQ(refusal(source), "the loop of clause 2 spans clauses of other probes");
}

TypeShape shape(TypeShape::Kind kind, std::uint64_t size) {
  TypeShape made;
  made.kind = kind;
  made.size = size;
  return made;
}

/// Why print() of shape 0 is refused, which has 64 bytes.
std::string shape_refusal(std::vector<TypeShape> shapes) {
  Action print =
      action(ActionKind::Print, {difo({encode_return(0)}, {ValueKind::Bytes, false, 64})});
  print.shapes = {0};
  Program source = program({clause({print})});
  source.shapes = std::move(shapes);
  return refusal(std::move(source));
}

TEST(ProgramVerifier, ShapesReferToShapes) {
  TypeShape pointer = shape(TypeShape::Kind::Pointer, 8);
  EXPECT_EQ(shape_refusal({pointer}), "") << "a pointer may point at its own type";
  pointer.element = 1;
  EXPECT_EQ(shape_refusal({pointer}), "shape 0 points at no shape");
  EXPECT_EQ(shape_refusal({}), "shape 0 does not exist");
  EXPECT_NE(shape_refusal({shape(static_cast<TypeShape::Kind>(50), 8)}), "");
}

TEST(ProgramVerifier, PartsLieInsideAndDoNotContainTheirWhole) {
  const TypeShape word = shape(TypeShape::Kind::Integer, 8);
  TypeShape whole = shape(TypeShape::Kind::Struct, 64);
  whole.members = {{"a", 1, 0, 0}, {"b", 1, 448, 0}, {"c", 1, 511, 1}};
  EXPECT_EQ(shape_refusal({whole, word}), "");
  whole.members = {{"a", 1, 449, 0}};
  EXPECT_EQ(shape_refusal({whole, word}), "shape 0 has a member that lies outside it");
  whole.members = {{"a", 1, 510, 3}};
  EXPECT_NE(shape_refusal({whole, word}), "");
  whole.members = {{"a", 0, 0, 0}};
  EXPECT_EQ(shape_refusal({whole}), "shape 0 contains itself");
  whole.size = 72;
  whole.members = {};
  EXPECT_NE(shape_refusal({whole}), "") << "larger than what is recorded";

  TypeShape array = shape(TypeShape::Kind::Array, 64);
  array.element = 1;
  array.count = 8;
  EXPECT_EQ(shape_refusal({array, word}), "");
  array.count = 9;
  EXPECT_EQ(shape_refusal({array, word}), "shape 0 has elements that lie outside it");
}

TEST(ProgramVerifier, AValueHasBoundedlyManyParts) {
  std::vector<TypeShape> shapes;
  for (std::uint32_t i = 0; i < 40; ++i) {  // each has two of the next, all without size
    TypeShape pair = shape(TypeShape::Kind::Struct, 0);
    pair.members = {{"l", i + 1, 0, 0}, {"r", i + 1, 0, 0}};
    shapes.push_back(pair);
  }
  shapes.push_back(shape(TypeShape::Kind::Struct, 0));
  EXPECT_NE(shape_refusal(shapes).find("has more parts than can be printed"), std::string::npos);

  TypeShape empty_many = shape(TypeShape::Kind::Array, 0);
  empty_many.element = 1;
  empty_many.count = UINT32_MAX;
  EXPECT_NE(shape_refusal({empty_many, shape(TypeShape::Kind::Struct, 0)}), "");
}

TEST(ProgramVerifier, PrintNeedsAType) {
  EXPECT_NE(refusal(action(ActionKind::Print, {constant(1)})), "");
}

}  // namespace
}  // namespace ringside::dif
