// Programs, compiled and fired: they record the values that D says they record.
#include "dif/d/compile.h"

#include <gtest/gtest.h>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

using Values = std::vector<Recorded>;

Values values(std::string_view source, int firings = 1) {
  const Outcome out = run(source, {}, firings);
  EXPECT_EQ(out.error, "") << source;
  EXPECT_TRUE(out.faults.empty()) << source;
  return out.values;
}

Recorded value(const std::string& expression) {
  const Values all = values("fbt::vfs_read:entry { trace(" + expression + "); }");
  return all.size() == 1 ? all[0] : Recorded("nothing recorded");
}

Recorded n(std::int64_t number) {
  return number;
}
Recorded s(std::string text) {
  return text;
}

TEST(Compile, TraceAndExitOfTheFirstExample) {
  const Outcome out = run("BEGIN { trace(1); exit(3); }");

  ASSERT_EQ(out.error, "");
  EXPECT_EQ(out.values, (Values{n(1), n(3)}));
  ASSERT_EQ(out.program.clauses.size(), 1U);
  EXPECT_EQ(out.program.clauses[0].probes[0].name, "BEGIN");
}

TEST(Compile, VariablesKeepTheirValuesInTheirScopes) {
  EXPECT_EQ(values("BEGIN { x = 3; self->y = x + 1; this->z = self->y * 2; trace(x); "
                   "trace(self->y); trace(this->z); }"),
            (Values{n(3), n(4), n(8)}));
  EXPECT_EQ(values("int total; BEGIN { total += 5; trace(total++); trace(--total); }", 2),
            (Values{n(5), n(5), n(10), n(10)}));
}

TEST(Compile, AssociativeArraysAreKeyedByAllTheirKeys) {
  EXPECT_EQ(values("BEGIN { a[1, \"x\"] = 7; a[2, \"x\"] = 8; self->b[execname] = a[1, \"x\"]; "
                   "trace(a[1, \"x\"]); trace(a[2, \"x\"]++); trace(a[2, \"x\"]); "
                   "trace(self->b[\"workload\"]); trace(a[3, \"x\"]); }"),
            (Values{n(7), n(8), n(9), n(7), n(0)}));
}

TEST(Compile, StringsAreComparedAndAssignedByValue) {
  EXPECT_EQ(value("execname == \"workload\""), n(1));
  EXPECT_EQ(value("execname < \"aaa\""), n(0));
  EXPECT_EQ(value("strjoin(execname, \"!\")"), s("workload!"));
  EXPECT_EQ(value("strlen(strjoin(\"ab\", substr(\"cdef\", 1)))"), n(5));
  EXPECT_EQ(value("1 ? \"yes\" : \"no\""), s("yes"));
  EXPECT_EQ(values("BEGIN { s = \"one\"; t = s; s = \"two\"; trace(t); trace(s); }"),
            (Values{s("one"), s("two")}));
}

TEST(Compile, MembersOfGuestStructsAreLoaded) {
  EXPECT_EQ(value("args[1]->pid"), n(4711));
  EXPECT_EQ(value("curthread->pid"), n(4711));
  EXPECT_EQ(value("args[1]->comm"), s("swapper/0"));
  EXPECT_EQ(value("stringof(args[1]->comm)"), s("swapper/0"));
  EXPECT_EQ(value("stringof(args[1]->file->f_name)"), s("hello"));
  EXPECT_EQ(value("args[1]->file->f_flags"), n(0x8000'0001));
  EXPECT_EQ(value("args[1]->file->f_mode"), n(200));
  EXPECT_EQ(value("args[1]->file->f_small"), n(-3));
  EXPECT_EQ(value("args[1]->file->f_pos"), n(-1));
  EXPECT_EQ(value("args[1]->file->low + args[1]->file->high"), n(65533));
  EXPECT_EQ(value("args[1]->counts[1] + args[1]->counts[2]"), n(10));
  EXPECT_EQ(value("((struct task_struct *)arg1)->counts[arg0 - 97]"), n(-40));
  EXPECT_EQ(value("*(&args[1]->counts[0] + 1)"), n(-20));
  EXPECT_EQ(value("&args[1]->counts[3] - &args[1]->counts[1]"), n(2));
}

TEST(Compile, BitFieldsAreExtractedWithTheirSign) {
  EXPECT_EQ(value("args[1]->state"), n(5));
  EXPECT_EQ(value("args[1]->balance"), n(-13));
}

TEST(Compile, NarrowArgumentsIgnoreTheUpperBitsOfTheRegister) {
  EXPECT_EQ(value("args[2]"), n(-5));
  EXPECT_EQ(value("args[2] < 0"), n(1));
  EXPECT_EQ(value("(int)arg2 == -5"), n(1));
}

TEST(Compile, KernelSymbolsAreLoadedByTheirType) {
  EXPECT_EQ(value("`number"), n(-7));
  EXPECT_EQ(value("vmlinux`number * 2"), n(-14));
  EXPECT_EQ(value("`init_task.pid"), n(4711));
  EXPECT_EQ(value("*(int *)&`untyped"), n(-7));
  EXPECT_EQ(value("(int)`untyped"), n(-7));
  EXPECT_EQ(value("(unsigned char)`untyped + 1"), n(250));
  EXPECT_EQ(value("(long)`number"), n(-7));
  EXPECT_EQ(values("extern int untyped; BEGIN { trace(`untyped); }"), (Values{n(-7)}));
}

TEST(Compile, UserMemoryIsCopiedIn) {
  EXPECT_EQ(value("copyinstr(arg3)"), s("from user"));
  EXPECT_EQ(value("copyinstr(arg3, 4)"), s("from"));
  EXPECT_EQ(value("copyinstr(arg3, 100)"), s("from user"));
  EXPECT_EQ(value("copyinstr(arg3, 0)"), s(""));
  EXPECT_EQ(value("stringof(copyin(arg3, 4))"), s("from"));
  EXPECT_EQ(value("*(char *)copyin(arg3 + 1, 1)"), n('r'));
}

TEST(Compile, ScratchMemoryCanBeWritten) {
  EXPECT_EQ(values("BEGIN { p = (int *)alloca(16); p[2] = 9; *p = 3; p[2] += *p; trace(p[2]++); "
                   "trace(p[2]); }"),
            (Values{n(12), n(13)}));
  EXPECT_EQ(values("struct s { int a; unsigned b : 3; int c : 5; short d; };\n"
                   "BEGIN { this->p = (struct s *)alloca(sizeof(struct s)); this->p->b = 13; "
                   "this->p->c = -4; this->p->d = -9; this->p->a = this->p->b; trace(this->p->a); "
                   "trace(this->p->c); trace(this->p->d); }"),
            (Values{n(5), n(-4), n(-9)}));
}

TEST(Compile, TypesOfTheProgramHaveCsLayout) {
  EXPECT_EQ(
      values(
          "typedef struct pair { char a; long b; struct pair *next; char c[3]; } pair_t;\n"
          "union u { int i; pair_t p; }; enum color { RED, GREEN = 5, BLUE };\n"
          "BEGIN { trace(sizeof(pair_t)); trace(offsetof(struct pair, c)); trace(sizeof(union u));"
          " trace(BLUE); trace(sizeof(string)); trace(sizeof(struct task_struct)); }"),
      (Values{n(32), n(24), n(32), n(6), n(256), n(64)}));
}

TEST(Compile, InlinesStandForTheirExpression) {
  EXPECT_EQ(values("inline int base = 40; inline string who = execname; BEGIN { trace(base + 2); "
                   "trace(who); }"),
            (Values{n(42), s("workload")}));
}

TEST(Compile, PredicatesSelectFirings) {
  EXPECT_EQ(
      values("BEGIN /execname == \"workload\" && arg0 / 2 == 50/ { trace(1); self->seen = 0; } "
             "BEGIN /pid != 4711/ { trace(2); } BEGIN /!self->seen/ { trace(3); }"),
      (Values{n(1), n(3)}));
}

TEST(Compile, ConditionsChooseTheirBranch) {
  const std::string program =
      "BEGIN { n++; } BEGIN /n != 9/ { if (n == 1) { trace(\"one\"); } else if (n == 2) { "
      "trace(\"two\"); }"
      " else { trace(\"many\"); if (n > 3) trace(\"very\"); } trace(n); }";
  EXPECT_EQ(values(program, 4),
            (Values{s("one"), n(1), s("two"), n(2), s("many"), n(3), s("many"), s("very"), n(4)}));
}

TEST(Compile, EverythingInOneTuple) {
  EXPECT_EQ(
      value("strlen(strjoin(strjoin(\"a\", strjoin(\"b\", \"c\")), lltostr(strlen(execname))))"),
      n(4));
}

}  // namespace
}  // namespace ringside::d
