// Translators, xlate, and inlines.
#include <gtest/gtest.h>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

const std::string kInfo =
    "struct info { int number; string name; long twice; };\n"
    "translator struct info < struct task_struct *t > {\n"
    "  number = t->pid;\n"
    "  name = stringof(t->comm);\n"
    "  twice = t->pid * 2;\n"
    "};\n";

std::int64_t number(const Outcome& out, std::size_t at = 0) {
  EXPECT_EQ(out.error, "");
  if (at >= out.values.size()) return INT64_MIN;
  const auto* value = std::get_if<std::int64_t>(&out.values[at]);
  return value != nullptr ? *value : INT64_MIN;
}

std::string text(const Outcome& out, std::size_t at = 0) {
  EXPECT_EQ(out.error, "");
  if (at >= out.values.size()) return "(nothing)";
  const auto* value = std::get_if<std::string>(&out.values[at]);
  return value != nullptr ? *value : "(a number)";
}

TEST(Translator, GivesTheMembersOfAPointer) {
  const Outcome out = run(kInfo +
                          "fbt::vfs_read:entry { trace(xlate <struct info *> (args[1])->number);"
                          " trace((xlate <struct info *> (args[1]))->name);"
                          " trace(xlate <struct info *> (curthread)->twice); }");

  EXPECT_EQ(number(out, 0), 4711);
  EXPECT_EQ(text(out, 1), "swapper/0");
  EXPECT_EQ(number(out, 2), 9422);
}

TEST(Translator, GivesAPointerThatIsNullWhereItsInputIs) {
  const Outcome out = run(kInfo +
                          "fbt::vfs_read:entry /xlate <struct info *> (args[1])/ {"
                          " trace(xlate <struct info *> (args[1]) != NULL);"
                          " trace(NULL == xlate <struct info *> ((struct task_struct *)NULL));"
                          " trace(!xlate <struct info *> (args[1]));"
                          " trace(xlate <struct info *> ((struct task_struct *)NULL) ? 5 : 6); }");

  EXPECT_EQ(number(out, 0), 1);
  EXPECT_EQ(number(out, 1), 1);
  EXPECT_EQ(number(out, 2), 0);
  EXPECT_EQ(number(out, 3), 6);
}

TEST(Translator, GivesAWholeStructure) {
  const Outcome out = run(kInfo +
                          "struct info whole;\n"
                          "fbt::vfs_read:entry { whole = xlate <struct info> (args[1]);"
                          " trace(whole.number); trace(whole.name); trace(whole.twice); }");

  EXPECT_EQ(number(out, 0), 4711);
  EXPECT_EQ(text(out, 1), "swapper/0");
  EXPECT_EQ(number(out, 2), 9422);
}

TEST(Translator, OfALibraryTakesTheFirstConversionThatTheKernelHasTypesFor) {
  CompileOptions options;
  options.libraries = {{"info.d",
                        "struct info { int number; string name; int lost; };\n"
                        "translator struct info < struct task_struct *t > {\n"
                        "  number = t->renamed_since; number = t->pid + 1; number = t->pid;\n"
                        "  lost = t->never; lost = t->not_even_then;\n"
                        "  name = stringof(t->comm);\n"
                        "};\n"}};
  const Outcome out =
      run("fbt::vfs_read:entry { trace(xlate <struct info *> (args[1])->number);"
          " trace(xlate <struct info> (args[1]).name); }",
          options);
  EXPECT_EQ(number(out, 0), 4712);
  EXPECT_EQ(text(out, 1), "swapper/0");

  const Outcome lost =
      run("fbt::vfs_read:entry { trace(xlate <struct info *> (args[1])->lost); }", options);
  EXPECT_NE(lost.error.find("lost of struct info cannot be had on Linux 6.1.0-fake: never is not a "
                            "member of struct task_struct; it has pid, state, balance, comm, file, "
                            "counts, total; the translator's other members: "
                            "number, name"),
            std::string::npos)
      << lost.error;
}

TEST(Translator, WithAnotherConversionOfAMemberGivesAWholeStructure) {
  const Outcome out =
      run("struct info { int number; };\n"
          "translator struct info < struct task_struct *t > { number = t->pid; number = 1; };\n"
          "struct info whole;\n"
          "fbt::vfs_read:entry { whole = xlate <struct info> (args[1]); trace(whole.number); }");
  EXPECT_EQ(number(out), 4711);
}

TEST(Translator, GivesTheMemberOfAStructure) {
  const Outcome out =
      run(kInfo + "fbt::vfs_read:entry { trace(xlate <struct info> (args[1]).number); }");

  EXPECT_EQ(number(out), 4711);
}

TEST(Translator, TakesAScalar) {
  const Outcome out =
      run("struct pair { int low; int high; };\n"
          "translator struct pair < unsigned long v > { low = v & 0xffffffff; high = v >> 32; };\n"
          "BEGIN { trace(xlate <struct pair> (0x500000007).high); }");

  EXPECT_EQ(number(out), 5);
}

TEST(Translator, EvaluatesItsInputOnce) {
  const Outcome out =
      run("struct pair { int low; int high; };\n"
          "translator struct pair < int v > { low = v + v; high = 0; };\n"
          "BEGIN { x = 3; trace(xlate <struct pair> (x++).low); trace(x); }");

  EXPECT_EQ(number(out, 0), 6);
  EXPECT_EQ(number(out, 1), 4);
}

TEST(Translator, GivesAProbesArgumentAsItsProviderPromisesIt) {
  const Outcome out =
      run("struct buf { int number; string name; };\n"
          "translator struct buf < struct task_struct *t > {\n"
          "  number = t->pid; name = stringof(t->comm); };\n"
          "io:::start { trace(args[0]->number); trace(args[0]->name); this->one = args[0]->number;"
          " trace(this->one + args[0]->number); trace(arg1); }");

  EXPECT_EQ(number(out, 0), 4711) << "args[0] is made of arg1";
  EXPECT_EQ(text(out, 1), "swapper/0");
  EXPECT_EQ(number(out, 2), 9422);
  EXPECT_EQ(number(out, 3), static_cast<std::int64_t>(kTask));
}

TEST(Translator, IsThatOfEachDescriptionOfAClause) {
  const std::string types =
      "struct buf { int number; };\n"
      "translator struct buf < struct task_struct *t > { number = t->pid; };\n";
  const std::string probes = "fbt::vfs_read:entry,io:::start ";

  const Outcome each = run(types + probes + "/args[0]/ { if (args[0] != 0) { trace(arg0); } }");
  const Outcome all = run(types + probes + "{ trace(arg0); }");

  EXPECT_EQ(number(each, 0), 100);
  EXPECT_EQ(number(each, 1), 100);
  ASSERT_FALSE(each.program.clauses.empty());
  EXPECT_EQ(each.program.clauses.front().probes.size(), 1u);
  EXPECT_EQ(each.program.clauses.back().probes.front().provider, "io");
  EXPECT_EQ(all.program.clauses.size(), 1u) << "nothing in it differs";
}

TEST(Translator, WorksBehindAnInline) {
  const Outcome out = run(kInfo +
                          "inline struct info *me = xlate <struct info *> (curthread);\n"
                          "BEGIN { trace(me->name); trace(me->number + 1); }");

  EXPECT_EQ(text(out, 0), "swapper/0");
  EXPECT_EQ(number(out, 1), 4712);
}

struct Refusal {
  const char* source;
  const char* tag;
};

class TranslatorRefused : public testing::TestWithParam<Refusal> {};

TEST_P(TranslatorRefused, WithItsTag) {
  const std::string message = error_of("struct out { int m; int n; }; struct in { int x; };\n" +
                                       std::string(GetParam().source) + "\nBEGIN { }");

  EXPECT_TRUE(message.starts_with("[" + std::string(GetParam().tag) + "] line "))
      << GetParam().source << "\n"
      << message;
}

INSTANTIATE_TEST_SUITE_P(
    Programs, TranslatorRefused,
    testing::Values(
        Refusal{"translator int < struct in *p > { m = 1; };", "D_XLATE_SOU"},
        Refusal{"translator struct out < struct in *p > { m = p->x; };"
                "translator struct out < struct in *q > { m = q->x; };",
                "D_XLATE_REDECL"},
        Refusal{"translator struct out < struct in *p > { nope = p->x; };", "D_XLATE_MEMB"},
        Refusal{"translator struct out < struct in *p > { m = execname; };", "D_XLATE_INCOMPAT"},
        Refusal{"translator struct out < struct in *p > { m = p->nope; };", "D_TYPE_MEMBER"},
        Refusal{"BEGIN { trace(xlate <struct out *> (curthread)->m); }", "D_XLATE_NONE"},
        Refusal{"BEGIN { trace(xlate <int> (1)); }", "D_XLATE_NONE"},
        Refusal{"translator struct out < struct in *p > { m = p->x; };"
                "BEGIN { trace(xlate <struct out *> ((struct in *)0)->n); }",
                "D_XLATE_NOCONV"},
        Refusal{"translator struct out < struct in *p > { m = p->x; };"
                "BEGIN { trace(xlate <struct out *> ((struct in *)0)->k); }",
                "D_XLATE_NOCONV"},
        Refusal{"translator struct out < struct in *p > { m = p->x; };"
                "BEGIN { x = xlate <struct out *> ((struct in *)0); }",
                "D_OP_DYN"},
        Refusal{"translator struct out < struct in *p > { m = p->x; };"
                "BEGIN { xlate <struct out *> ((struct in *)0)->m = 1; }",
                "D_OP_LVAL"}));

TEST(Inline, TakesParameters) {
  const Outcome out = run(
      "inline int add[int a, int b] = a + b * 10;\n"
      "inline string kind[int n] = n > 5 ? \"big\" : \"small\";\n"
      "BEGIN { x = 3; trace(add[x, 2]); trace(add[x++, add[1, 1]]); trace(x); trace(kind[6]); }");

  EXPECT_EQ(number(out, 0), 23);
  EXPECT_EQ(number(out, 1), 113);
  EXPECT_EQ(number(out, 2), 4);
  EXPECT_EQ(text(out, 3), "big");
}

TEST(Inline, RefersToOthersAndHasItsType) {
  const Outcome out =
      run("inline int base = 300;\n"
          "inline unsigned char low = base + 1;\n"
          "inline string greeting = \"hello\";\n"
          "BEGIN { trace(low); trace(greeting); trace(strlen(greeting)); }");

  EXPECT_EQ(number(out, 0), 45);
  EXPECT_EQ(text(out, 1), "hello");
  EXPECT_EQ(number(out, 2), 5);
}

}  // namespace
}  // namespace ringside::d
