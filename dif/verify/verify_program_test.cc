// The verifier's rules for actions, loops and speculations, and for programs as a whole.
#include <gtest/gtest.h>

#include "dif/program/aggregate_function.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"

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
    made.format = "%.*d";
    EXPECT_NE(refusal(made), "") << "and so is the precision";
    made.arguments = {constant(3), constant(2), constant(1)};
    made.format = "%*.*d";
    EXPECT_EQ(refusal(made), "");
    made.format = "";
    EXPECT_EQ(refusal(made), "") << "prints none of them";
  }
}

TEST(ProgramVerifier, AFormatIsOnlySoWideInTotal) {
  constexpr std::size_t kWidest = 65535, kMost = 16 << 20;  // of one conversion, and of all
  const auto with = [](std::size_t width, std::size_t precision) {
    const std::size_t widest = kMost / kWidest;
    Action made = action(ActionKind::Printf, {widest + 1, constant(1)});
    for (std::size_t n = 0; n < widest; ++n) made.format += "%" + std::to_string(kWidest) + "d";
    made.format += "%" + std::to_string(width) + "." + std::to_string(precision) + "d";
    return refusal(made);
  };
  constexpr std::size_t kLeft = kMost % kWidest;
  EXPECT_EQ(with(kLeft - 7, 7), "");
  const std::string why =
      "DIF of clause 1, action 1: a format is wider than 16777216 columns in total";
  EXPECT_EQ(with(kLeft - 6, 7), why);
  EXPECT_EQ(with(7, kLeft - 6), why);
}

TEST(ProgramVerifier, DumpsHaveASize) {
  Action dump = action(ActionKind::TracememDynamic, {constant(0), constant(8)});
  EXPECT_NE(refusal(dump), "");
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{kMostRecordBytes}}) {
    dump.argument = size;
    EXPECT_EQ(refusal(dump), "");
  }
  dump.argument = kMostRecordBytes + 1;
  EXPECT_NE(refusal(dump), "");
  dump.argument = 64;
  dump.arguments.pop_back();
  EXPECT_NE(refusal(dump), "") << "where its size is computed there is another argument";
  dump.kind = ActionKind::Tracemem;
  EXPECT_EQ(refusal(dump), "");
}

TEST(ProgramVerifier, PacketsHaveTwoNumbers) {
  EXPECT_EQ(refusal(action(ActionKind::Pcap, {constant(0), constant(1)})), "");
  EXPECT_NE(refusal(action(ActionKind::Pcap, {constant(0)})), "");
  EXPECT_NE(refusal(action(ActionKind::Pcap, {constant(0), constant("x")})), "");
}

TEST(ProgramVerifier, SetoptHasANameAndPerhapsAValue) {
  const auto with = [](const std::string& name, const std::string& value,
                       std::vector<Difo> computed) {
    Action made = action(ActionKind::Setopt, std::move(computed));
    made.format = name;
    made.text = value;
    return refusal(made);
  };
  const Difo text = constant("x");
  EXPECT_EQ(with("quiet", "", {}), "");
  EXPECT_EQ(with("strsize", "64", {}), "");
  EXPECT_EQ(with("strsize", "", {text}), "");
  EXPECT_EQ(with("", "64", {text}), "");
  EXPECT_EQ(with("", "", {text}), "");
  EXPECT_EQ(with("", "", {text, text}), "");
  const std::string where = "DIF of clause 1, action 1: ";
  EXPECT_EQ(with("", "", {}), where + "setopt() of no option");
  EXPECT_EQ(with("strsize", "64", {text}), where + "setopt() has 1 arguments too many");
  EXPECT_EQ(with("", "64", {text, text, text}), where + "setopt() has 2 arguments too many");
  EXPECT_EQ(with("", "", {text, constant(1)}), where + "setopt() of what is no string");
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
  EXPECT_EQ(with(ActionKind::Printa, {0, 0}), "");
  EXPECT_NE(with(ActionKind::Printa, {2}), "") << "there are but two";
}

TEST(ProgramVerifier, AThreadIsTwoNumbersAndAString) {
  const auto with = [](std::vector<Difo> arguments) {
    return refusal(action(ActionKind::TellThread, std::move(arguments)));
  };
  const std::string where = "DIF of clause 1, action 1: ";

  EXPECT_EQ(with({constant(1), constant(2), constant("dd")}), "");
  EXPECT_EQ(with({constant(1), constant(2), constant(3)}),
            where + "a thread is two numbers and a string");
  EXPECT_EQ(with({constant("dd"), constant(2), constant("dd")}),
            where + "a thread is two numbers and a string");
  EXPECT_EQ(with({constant(1)}), where + "1 arguments where 3 are needed");
}

TEST(ProgramVerifier, PercentilesAreNumbersOfADistribution) {
  const auto with = [](AggregateFunction function, std::string percentiles, std::size_t arguments) {
    Action made = action(ActionKind::Percentile, {arguments, constant(1)});
    made.aggregations = {0};
    made.text = std::move(percentiles);
    return refusal(program({clause({made})}, {{"a", function, {}, 0}}));
  };
  const std::string where = "DIF of clause 1, action 1: ";
  EXPECT_EQ(with(AggregateFunction::Quantize, "50,99.9", 0), "");
  EXPECT_EQ(with(AggregateFunction::Count, "50", 0),
            where + "percentile() of an aggregation without buckets");
  EXPECT_EQ(with(AggregateFunction::Quantize, "", 0),
            where + "percentile() without a list of percentiles");
  EXPECT_NE(with(AggregateFunction::Quantize, "101", 0), "");
  EXPECT_NE(with(AggregateFunction::Quantize, "50", 1), "");
}

TEST(ProgramVerifier, AggregationActionsHaveTheArgumentsThatTheyTake) {
  const auto with = [](ActionKind kind, std::size_t arguments) {
    Action made = action(kind, {arguments, constant(1)});
    made.aggregations = {0};
    return refusal(program({clause({made})}, {{"a", AggregateFunction::Count, {}, 0}}));
  };
  for (const ActionKind kind : {ActionKind::Clear, ActionKind::Denormalize, ActionKind::Printa}) {
    EXPECT_EQ(with(kind, 0), "");
    EXPECT_NE(with(kind, 1), "");
  }
  EXPECT_EQ(with(ActionKind::Trunc, 0), "");
  EXPECT_EQ(with(ActionKind::Trunc, 1), "");
  EXPECT_NE(with(ActionKind::Trunc, 2), "");
  EXPECT_NE(with(ActionKind::Normalize, 0), "");
  EXPECT_EQ(with(ActionKind::Normalize, 1), "");
  EXPECT_NE(with(ActionKind::Normalize, 2), "");
}

TEST(ProgramVerifier, AnAggregationTakesItsKeysAValueAndPerhapsAnIncrement) {
  const auto with = [](AggregateFunction function, std::vector<Difo> arguments,
                       bool has_increment = false) {
    Action made = aggregate(0, std::move(arguments));
    made.quantize_increment = has_increment;
    return refusal(program({clause({made})}, {{"a", function, {kLong}, 0}}));
  };
  const Difo key = constant(1), value = constant(2);
  EXPECT_EQ(with(AggregateFunction::Count, {key}), "");
  EXPECT_NE(with(AggregateFunction::Count, {key, value}), "");
  EXPECT_EQ(with(AggregateFunction::Sum, {key, value}), "");
  EXPECT_EQ(with(AggregateFunction::Quantize, {key, value}), "");
  EXPECT_EQ(with(AggregateFunction::Quantize, {key, value, value}, true), "");
  EXPECT_NE(with(AggregateFunction::Quantize, {key, value, value}), "");
  EXPECT_NE(with(AggregateFunction::Quantize, {key, value}, true), "");
  for (std::size_t n = 0; n < 2; ++n) {
    std::vector<Difo> arguments{key, value, value};
    arguments[1 + n] = constant("text");
    EXPECT_EQ(with(AggregateFunction::Quantize, arguments, true),
              "DIF of clause 1, action 1: the value of an aggregation is no number");
  }
  EXPECT_NE(
      with(AggregateFunction::Count, {difo({encode_return(0)}, {ValueKind::Integer, true, 4})}), "")
      << "a key of another size";
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
  EXPECT_NE(with(user, kLong), "") << "a number is no stack";
  EXPECT_NE(with(kLong, {ValueKind::UserStack, false, 16}), "") << "and no stack a number";
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
  const Action commit = action(ActionKind::Commit, {constant(1)});
  EXPECT_NE(refusal(program({clause({commit, choose})})), "");
  const Action discard = action(ActionKind::Discard, {constant(1)});
  EXPECT_EQ(refusal(program({clause({discard, choose})})), "");
  EXPECT_NE(refusal(program({clause({aggregate(0, {}), choose})},
                            {{"a", AggregateFunction::Count, {}, 0}})),
            "");
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
  const Difo strlen = difo({encode_indexed(Opcode::Call, 12, 1), encode_return(0)});
  const Difo unknown = difo({encode_indexed(Opcode::Call, 99, 1), encode_return(0)});
  const Difo write = difo({encode(Opcode::Stga, 0, 1, 2), encode_return(0)});
  EXPECT_EQ(guest_changing_call(strlen), "");
  EXPECT_EQ(guest_changing_call(unknown), "");
  EXPECT_EQ(guest_changing_call(write), "stga");
  EXPECT_FALSE(is_destructive(action(ActionKind::Evaluate, {constant(1), strlen})));
  EXPECT_TRUE(is_destructive(action(ActionKind::Evaluate, {constant(1), copyout})));
  EXPECT_TRUE(is_destructive(action(ActionKind::Panic, {})));

  Difo liar = constant(1);
  liar.destructive = true;
  const auto honest = verify_program(program({clause({action(ActionKind::Trace, {liar})})}));
  EXPECT_FALSE(honest->program().clauses[0].actions[0].arguments[0].destructive);
}

TEST(ProgramVerifier, WhatIsDestructiveHasTheLineOfItsSource) {
  Difo copyout = difo({encode_indexed(Opcode::Call, 13, 1), encode_return(0)});
  Clause calls = clause({action(ActionKind::Evaluate, {copyout})});
  calls.line = 7;
  Clause asks = clause({});
  asks.predicate = copyout;
  asks.line = 8;
  Clause panics = clause({action(ActionKind::Panic, {})});
  panics.line = 9;
  const auto line_of = [](const Clause& one) { return first_destructive(program({one}))->line; };

  EXPECT_EQ(line_of(calls), 7) << "its clause's, where nothing more is known";
  EXPECT_EQ(line_of(asks), 8);
  EXPECT_EQ(line_of(panics), 9);
  calls.actions[0].arguments[0].source.parts = {{0, 17, "", ""}, {1, 18, "", ""}};
  panics.actions[0].source.parts = {{0, 19, "", ""}};
  EXPECT_EQ(line_of(calls), 18);
  EXPECT_EQ(line_of(panics), 19);
  calls.actions[0].arguments[0].source.parts.back().line = 0;
  EXPECT_EQ(line_of(calls), 7);
}

TEST(ProgramVerifier, NothingIsLeftToBind) {
  Program names = program({clause({action(ActionKind::Evaluate, {constant(1)})})});
  names.kernel_names = {{.name = "jiffies"}};
  EXPECT_EQ(refusal(names), "the program is not bound to a kernel");
  Program places = program({clause({action(ActionKind::Evaluate, {constant(1)})})});
  places.clauses[0].actions[0].arguments[0].relocations = {{}};
  EXPECT_EQ(refusal(places), "the program is not bound to a kernel");
}

TEST(ProgramVerifier, NeedsOfTheKernelAreFewAndCanBeShown) {
  const auto with = [](std::vector<KernelNeed> needs) {
    Program source = program({});
    source.needs = std::move(needs);
    return refusal(std::move(source));
  };
  const KernelNeed plain{.module = "vmlinux", .type = "struct {~}"};
  EXPECT_EQ(with({4096, plain}), "");
  EXPECT_EQ(with({4097, plain}), "there are too many needs of the kernel");
  EXPECT_EQ(with({{.build = std::string(256, ' ')}}), "");
  for (const std::string& bad : {std::string(257, 'x'), std::string("\x1f"), std::string("\x7f"),
                                 std::string(1, '\0'), std::string("\xff")}) {
    for (std::string KernelNeed::*const field :
         {&KernelNeed::module, &KernelNeed::type, &KernelNeed::release, &KernelNeed::build}) {
      KernelNeed need = plain;
      need.*field = bad;
      EXPECT_EQ(with({plain, need}), "a need of the kernel has no such name");
    }
  }
}

TEST(ProgramVerifier, ProgramsAndClausesHaveTheirLimits) {
  const Action nothing = action(ActionKind::Evaluate, {difo({encode_return(0)})});
  EXPECT_EQ(refusal(program({kMostClauses, clause({})})), "");
  EXPECT_EQ(refusal(program({kMostClauses + 1, clause({})})), "there are more than 16384 clauses");
  EXPECT_EQ(refusal(program({clause({16384, nothing})})), "");
  EXPECT_EQ(refusal(program({clause({16385, nothing})})), "clause 1 has too many actions");
}

/// With `count` variables of 16 KiB and one of `last` bytes, in an object of this scope.
Program with_storage(std::size_t count, std::uint32_t last, VariableScope scope) {
  Difo object = difo({encode_return(0)});
  std::uint16_t id = kFirstUserVariable;
  for (std::size_t n = 0; n < count; ++n) {
    object.variables.push_back(
        {id++, scope, VariableKind::Scalar, {ValueKind::Bytes, false, 16 << 10}, "b"});
  }
  object.variables.push_back(
      {id++, scope, VariableKind::Scalar, {ValueKind::Bytes, false, last}, "c"});
  // Once more, as another object that uses them has it: they are the same variables.
  return program(
      {clause({action(ActionKind::Evaluate, {object}), action(ActionKind::Evaluate, {object})})});
}

TEST(ProgramVerifier, VariablesByReferenceHaveSoMuchStorage) {
  constexpr std::size_t kFit = kMostStorage / (16 << 10) - 1;
  for (const VariableScope scope : {VariableScope::Global, VariableScope::Clause}) {
    EXPECT_TRUE(check_storage(with_storage(kFit, (16 << 10) - 7, scope), 256));
    EXPECT_TRUE(check_storage(with_storage(kFit, 16 << 10, scope), 256));
    const auto more = check_storage(with_storage(kFit + 1, 1, scope), 256);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code, ErrorCode::Limit);
    EXPECT_EQ(more.error().message,
              "the program's variables take 67108872 bytes where strings have 256; at most "
              "67108864 are possible");
  }
  EXPECT_TRUE(check_storage(with_storage(kFit + 1, 1, VariableScope::Thread), 256))
      << "those are dynamic variables";
  EXPECT_FALSE(verify_program(with_storage(kFit + 1, 1, VariableScope::Global)));
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
  EXPECT_EQ(loop_refusal(3, {{1, {0, 2}}, {2, {1, 2}}}),
            "the loop of clause 3 overlaps that of clause 2")
      << "they have one clause in common";
  EXPECT_EQ(loop_refusal(3, {{0, {0, 1024}}, {1, {0, 32}}, {2, {0, 32}}}), "");
  EXPECT_NE(loop_refusal(3, {{0, {0, 1024}}, {1, {0, 32}}, {2, {0, 33}}}), "")
      << "the product of all three";
  EXPECT_EQ(loop_refusal(3, {{0, {0, 1024}}, {1, {1, 2}}, {2, {0, 1024}}}), "");
}

TEST(ProgramVerifier, ALoopStaysWithinOneProbe) {
  Program source;
  source.clauses.assign(2, clause({action(ActionKind::Evaluate, {constant(1)})}));
  source.clauses[0].probes = {{"dtrace", "", "", "BEGIN"}};
  source.clauses[1].probes = {{"dtrace", "", "", "END"}};
  source.clauses[1].repeat = Repeat{0, 2};
  EXPECT_EQ(refusal(source), "the loop of clause 2 spans clauses of other probes");
  source.clauses[1].repeat = Repeat{1, 2};
  EXPECT_EQ(refusal(source), "");
  source.clauses.push_back(source.clauses[1]);
  source.clauses[1].repeat.reset();
  EXPECT_EQ(refusal(source), "") << "from the first clause of its probe on";
}

}  // namespace
}  // namespace ringside::dif
