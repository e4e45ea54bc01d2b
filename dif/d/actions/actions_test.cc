// Actions, aggregations, options and macros: the dif::Program that comes out.
#include "dif/d/actions/actions.h"

#include <gtest/gtest.h>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

dif::Program program(std::string_view source, const CompileOptions& options = {}) {
  Outcome out = run(source, options);
  EXPECT_EQ(out.error, "") << source;
  return std::move(out.program);
}

TEST(Aggregations, HaveNameKeysFunctionAndParameters) {
  const dif::Program made = program(
      "fbt:::entry { @ = count(); @reads[execname, pid] = sum(arg0); @l = lquantize(arg0, 0, 100, "
      "10);"
      " @q[args[1]->comm] = quantize(timestamp, 2); @reads[\"x\", 3] = sum(1);"
      " @ll = llquantize(1, 10, 0, 6, 20); }");

  ASSERT_EQ(made.aggregations.size(), 5U);
  EXPECT_EQ(made.aggregations[0].name, "");
  EXPECT_EQ(made.aggregations[1].keys,
            (std::vector<dif::ValueType>{{dif::ValueKind::String, false, 0},
                                         {dif::ValueKind::Integer, true, 4}}));
  EXPECT_EQ(made.aggregations[2].parameters, std::uint64_t{10} << 48 | std::uint64_t{10} << 32);
  EXPECT_EQ(made.aggregations[3].keys[0].kind, dif::ValueKind::String)
      << "char[] is a string as a key";
  EXPECT_TRUE(made.clauses[0].actions[3].quantize_increment);
  EXPECT_EQ(made.clauses[0].actions[4].aggregations[0], 1U);
  EXPECT_EQ(made.aggregations[4].parameters,
            std::uint64_t{10} << 48 | std::uint64_t{6} << 16 | std::uint64_t{20});
}

TEST(Aggregations, CountWhatFires) {
  const Outcome typed = run("fbt:::entry { @[execname] = sum(args[2]); }", {}, 3);
  ASSERT_EQ(typed.aggregates.size(), 1U);
  EXPECT_EQ(typed.aggregates[0].words[0], -15);
}

TEST(Actions, CarryTheirConstants) {
  const dif::Program made = program(
      "BEGIN { @a[pid] = count(); trunc(@a, 3 + 4); trunc(@a); normalize(@a, 1000); "
      "denormalize(@a); "
      "clear(@a); printa(\"%d %@d\\n\", @a); printa(@a); setopt(\"quiet\"); tracemem(&`number, 2 * "
      "2);"
      " printf(\"%*d|%s|%x\\n\", 5, pid, execname, arg0); }");

  const auto& actions = made.clauses[0].actions;
  EXPECT_EQ(actions[1].argument, 7U);
  EXPECT_FALSE(actions[2].has_argument);
  EXPECT_EQ(actions[6].format, "%d %@d\n");
  EXPECT_EQ(actions[8].format, "quiet");
  EXPECT_EQ(actions[9].argument, 4U);
  EXPECT_EQ(actions[10].arguments.size(), 4U);
}

TEST(Actions, SetoptComputesWhatIsNoConstant) {
  const dif::Program made = program(
      "BEGIN { setopt(\"quiet\", lltostr(1)); setopt(strjoin(\"a\", \"b\"), \"x\"); "
      "setopt(execname, execname); }");

  const auto& actions = made.clauses[0].actions;
  EXPECT_EQ(actions[0].format, "quiet");
  EXPECT_EQ(actions[0].arguments.size(), 1U);
  EXPECT_EQ(actions[1].format, "");
  EXPECT_EQ(actions[1].text, "x");
  EXPECT_EQ(actions[1].arguments.size(), 1U);
  EXPECT_EQ(actions[2].arguments.size(), 2U);
}

TEST(Programs, WithoutABodyUseTheDefaultAction) {
  EXPECT_TRUE(program("BEGIN").clauses[0].actions.empty());
  EXPECT_TRUE(program("fbt:::entry /arg0 == 1/").clauses[0].predicate.has_value());
  EXPECT_EQ(program("BEGIN, END { trace(1); }").clauses[0].probes.size(), 2U);
}

TEST(Programs, AlignBareDescriptionsAsTheOptionSays) {
  CompileOptions options;
  options.specifier = CompileOptions::Specifier::Function;
  EXPECT_EQ(program("vmlinux:vfs_read", options).clauses[0].probes[0],
            (dif::ProbeDescription{"", "vmlinux", "vfs_read", ""}));
  options.specifier = CompileOptions::Specifier::Provider;
  EXPECT_EQ(program("fbt", options).clauses[0].probes[0],
            (dif::ProbeDescription{"fbt", "", "", ""}));
  EXPECT_EQ(program("fbt::vfs_*:entry").clauses[0].probes[0],
            (dif::ProbeDescription{"fbt", "", "vfs_*", "entry"}));
}

TEST(Programs, SetOptionsAndReadMacros) {
  CompileOptions options;
  options.macro_arguments = {"script.d", "7", "vfs_read", "some text"};
  options.macros = {{"target", 42}};
  const Outcome out =
      run("#!/usr/sbin/dtrace -s\n#pragma D option quiet\n#pragma D option bufsize=4m\n"
          "fbt::$2:entry /$target == 42/ { trace($1 + 1); trace($$3); trace($$2); }",
          options);

  ASSERT_EQ(out.error, "");
  EXPECT_EQ(out.program.options,
            (std::map<std::string, std::string>{{"quiet", ""}, {"bufsize", "4m"}}));
  EXPECT_EQ(out.values, (std::vector<Recorded>{std::int64_t{8}, "some text", "vfs_read"}));
  options.macro_arguments.push_back("unused");
  EXPECT_NE(run("BEGIN { trace($1); trace($$2); trace($$3); }", options).error, "");
  options.default_arguments = true;
  EXPECT_EQ(run("BEGIN { trace($9); trace($$9); }", options).values,
            (std::vector<Recorded>{std::int64_t{0}, ""}));
}

TEST(Programs, MayUseNamesOfGuestTypesForVariables) {
  EXPECT_EQ(
      run("BEGIN { trace((u32)-1); } hits x; BEGIN { x = 3; trace(sizeof(hits) + x); }").values,
      (std::vector<Recorded>{std::int64_t{UINT32_MAX}, std::int64_t{7}}));
}

TEST(Programs, FaultsLeaveTheOtherClausesAlone) {
  const Outcome out = run("BEGIN { trace(*(int *)8); } BEGIN { trace(2); }");

  ASSERT_EQ(out.error, "");
  EXPECT_EQ(out.values, (std::vector<Recorded>{std::int64_t{2}}));
  ASSERT_EQ(out.faults.size(), 1U);
  EXPECT_EQ(out.faults[0].fault.address, 8U);
}

}  // namespace
}  // namespace ringside::d
