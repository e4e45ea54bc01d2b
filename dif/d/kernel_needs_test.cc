// What of the guest's kernel a program contains (Program::needs): exactly what went into its own
// clauses and declarations, through libraries, too.
#include <gtest/gtest.h>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

constexpr std::string_view kLibrary =
    "typedef struct info { int number; long where; int moved; } info_t; "
    "translator info_t < struct task_struct *t > "
    "{ number = t->pid; where = (long)&`number; moved = TASK_DEAD; }; "
    "inline int dead = TASK_DEAD; inline long there = (long)&`number;";

/// "types", "addresses", "types addresses", or "" of vmlinux.
std::string needs(const std::string& source) {
  CompileOptions options;
  options.libraries = {{"lib.d", std::string(kLibrary)}};
  const Outcome out = run(source, options);
  EXPECT_EQ(out.error, "") << source;
  std::string text;
  for (const dif::KernelNeed& need : out.program.needs) {
    EXPECT_EQ(need.module, "vmlinux");
    text += need.types ? "types" : "";
    text += need.types && need.addresses ? " " : "";
    text += need.addresses ? "addresses" : "";
  }
  return text;
}

std::string clause(const std::string& body) {
  return "fbt::vfs_read:entry { " + body + " }";
}

TEST(KernelNeeds, NothingOfTheKernelsIsNothing) {
  EXPECT_EQ(needs(clause("trace(1);")), "");
  EXPECT_EQ(needs(clause("trace(arg0); trace(execname); trace(pid); stack();")), "");
  EXPECT_EQ(needs(clause("@[probefunc] = quantize(arg2);")), "");
  EXPECT_EQ(needs(clause("this->t = (struct task_struct *)arg1; trace(this->t);")), "")
      << "a pointer has the same size everywhere";
  EXPECT_EQ(needs("struct own { int a; struct own *b; }; struct own o; " +
                  clause("o.a = sizeof(struct own); trace(o.b->a);")),
            "");
  EXPECT_EQ(needs("enum mine { MINE = 3 }; " + clause("trace(MINE);")), "");
}

TEST(KernelNeeds, StructuresAreTypes) {
  EXPECT_EQ(needs(clause("trace(((struct task_struct *)arg1)->pid);")), "types");
  EXPECT_EQ(needs(clause("trace(curthread->pid);")), "types");
  EXPECT_EQ(needs(clause("trace(sizeof(struct file));")), "types");
  EXPECT_EQ(needs(clause("trace(offsetof(struct file, f_pos));")), "types");
  EXPECT_EQ(needs(clause("this->t = (struct task_struct *)arg1; trace(this->t + 1);")), "types");
  EXPECT_EQ(needs(clause("print(*(struct file *)arg1);")), "types");
  EXPECT_EQ(needs("struct task_struct t; " + clause("t = *(struct task_struct *)arg1;")), "types");
  EXPECT_EQ(needs("int size[sizeof(struct file)]; " + clause("size[0] = 1;")), "types");
}

TEST(KernelNeeds, EnumeratorsAndPrototypesAreTypes) {
  EXPECT_EQ(needs(clause("trace(TASK_DEAD);")), "types");
  EXPECT_EQ(needs(clause("trace(args[0]);")), "types");
}

TEST(KernelNeeds, SymbolsAreAddresses) {
  EXPECT_EQ(needs(clause("trace(`number);")), "addresses");
  EXPECT_EQ(needs(clause("trace(&`untyped);")), "addresses");
  EXPECT_EQ(needs(clause("trace(`init_task.pid);")), "types addresses");
}

TEST(KernelNeeds, OfLibrariesWhatIsUsed) {
  EXPECT_EQ(needs(clause("trace(xlate <info_t *> ((struct task_struct *)arg1)->number);")),
            "types");
  EXPECT_EQ(needs(clause("trace(xlate <info_t *> ((struct task_struct *)arg1)->where);")),
            "addresses");
  EXPECT_EQ(needs(clause("trace(dead);")), "types");
  EXPECT_EQ(needs(clause("trace(there);")), "addresses");
}

}  // namespace
}  // namespace ringside::d
