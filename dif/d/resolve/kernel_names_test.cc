// The parts of the guest's kernel that a program contains by name (Program::kernel_names): exactly
// those that went into its own clauses and declarations, through libraries, too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "dif/bind/bind.h"
#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

constexpr std::string_view kLibrary =
    "typedef struct info { int number; long where; int moved; } info_t; "
    "translator info_t < struct task_struct *t > "
    "{ number = t->pid; where = (long)&`number; moved = TASK_DEAD; }; "
    "inline int dead = TASK_DEAD; inline long there = (long)&`number;";

std::string one(const dif::KernelName& name) {
  using Kind = dif::KernelName::Kind;
  const std::string_view kinds[] = {"symbol",    "sizeof",     "offsetof",   "bitoffset", "unit",
                                    "bitsabove", "bitsunused", "enumerator", "elements"};
  static_assert(static_cast<int>(Kind::Elements) == 8);
  EXPECT_EQ(name.module, "vmlinux");
  return fmt::format("{}{} {}{}{}", name.fixed ? "fixed " : "",
                     kinds[static_cast<std::size_t>(name.kind)], name.name,
                     name.path.empty() ? "" : "," + name.path,
                     name.type.empty() ? "" : ": " + name.type);
}

/// Each name, sorted, with "; " between; and the arguments.
std::string names(const std::string& source) {
  CompileOptions options;
  options.libraries = {{"lib.d", std::string(kLibrary)}};
  const Outcome out = run(source, options);
  EXPECT_EQ(out.error, "") << source;
  EXPECT_TRUE(out.program.needs.empty()) << source;
  std::vector<std::string> all;
  for (const dif::KernelName& name : out.program.kernel_names) all.push_back(one(name));
  for (const dif::Clause& clause : out.program.clauses) {
    for (const dif::ArgumentType& argument : clause.argument_types) {
      all.push_back(fmt::format("args[{}]: {}", argument.index, argument.type));
    }
  }
  std::ranges::sort(all);
  return fmt::format("{}", fmt::join(all, "; "));
}

std::string clause(const std::string& body) {
  return "fbt::vfs_read:entry { " + body + " }";
}

TEST(KernelNames, NothingOfTheKernelsIsNothing) {
  EXPECT_EQ(names(clause("trace(1);")), "");
  EXPECT_EQ(names(clause("trace(arg0); trace(execname); trace(pid); stack();")), "");
  EXPECT_EQ(names(clause("@[probefunc] = quantize(arg2);")), "");
  EXPECT_EQ(names(clause("this->t = (struct task_struct *)arg1; trace(this->t);")), "")
      << "a pointer has the same size everywhere";
  EXPECT_EQ(names("struct own { int a; struct own *b; }; struct own o; " +
                  clause("o.a = sizeof(struct own); trace(o.b->a);")),
            "");
  EXPECT_EQ(names("enum mine { MINE = 3 }; " + clause("trace(MINE);")), "");
}

TEST(KernelNames, MembersAreNamedByTheirTypeAndWhatTheyAre) {
  EXPECT_EQ(names(clause("trace(((struct task_struct *)arg1)->pid);")),
            "offsetof struct task_struct,pid: int");
  EXPECT_EQ(names(clause("trace(curthread->file->f_pos);")),
            "offsetof struct file,f_pos: long; offsetof struct task_struct,file: struct file *");
  EXPECT_EQ(names(clause("trace(stringof(curthread->comm));")),
            "offsetof struct task_struct,comm: char []");
  EXPECT_EQ(names(clause("trace(curthread->file->low);")),
            "offsetof struct file,low: short; offsetof struct task_struct,file: struct file *")
      << "through an anonymous member";
  EXPECT_EQ(names(clause("trace(curthread->counts[2]);")),
            "elements struct task_struct,counts; offsetof struct task_struct,counts: int []");
  EXPECT_EQ(names(clause("trace(curthread->counts[arg0]);")),
            "offsetof struct task_struct,counts: int []");
  EXPECT_EQ(names(clause("trace(offsetof(struct file, f_pos));")), "offsetof struct file,f_pos");
}

TEST(KernelNames, BitFieldsAreNamedByTheirUnit) {
  EXPECT_EQ(names(clause("trace(curthread->balance);")),
            "bitsabove struct task_struct,balance: int; bitsunused struct task_struct,balance: "
            "int; unit struct task_struct,balance: int");
  EXPECT_EQ(names("struct task_struct t; " + clause("t.state = 3;")),
            "fixed bitoffset struct task_struct,state: unsigned int:3; "
            "sizeof struct task_struct; unit struct task_struct,state: unsigned int");
}

TEST(KernelNames, SizesAreNamedWhereCodeHasThem) {
  EXPECT_EQ(names(clause("trace(sizeof(struct file));")), "sizeof struct file");
  EXPECT_EQ(names(clause("trace(sizeof(struct file) * 2 + 1);")), "sizeof struct file");
  EXPECT_EQ(names(clause("trace(sizeof(curthread->comm));")), "sizeof struct task_struct,comm");
  EXPECT_EQ(names(clause("this->t = (struct task_struct *)arg1; trace(this->t + 1);")),
            "sizeof struct task_struct");
  EXPECT_EQ(names(clause("print(*(struct file *)arg1);")), "sizeof struct file");
  EXPECT_EQ(names(clause("print(curthread->comm);")),
            "offsetof struct task_struct,comm: char []; sizeof struct task_struct,comm");
  EXPECT_EQ(names("struct task_struct t; " + clause("t = *(struct task_struct *)arg1;")),
            "sizeof struct task_struct");
}

TEST(KernelNames, WhatDecidesTheCodeIsFixed) {
  EXPECT_EQ(names("int size[sizeof(struct file)]; " + clause("size[0] = 1;")),
            "fixed sizeof struct file");
  EXPECT_EQ(names("struct own { struct list_head l; int a; } *o; " + clause("trace(&o->a);")),
            "fixed sizeof struct list_head");
  EXPECT_EQ(names(clause("tracemem(arg1, sizeof(struct file));")), "fixed sizeof struct file");
  EXPECT_EQ(names(clause("@[*(struct file *)arg1] = count();")), "fixed sizeof struct file");
  EXPECT_EQ(names(clause("trace(TASK_DEAD ? 1 : 2);")), "fixed enumerator TASK_DEAD");
  EXPECT_EQ(names(clause("trace((u32)arg0);")), "fixed sizeof u32: unsigned int");
}

TEST(KernelNames, EnumeratorsSymbolsAndArguments) {
  EXPECT_EQ(names(clause("trace(TASK_DEAD);")), "enumerator TASK_DEAD; sizeof enum task_state");
  EXPECT_EQ(names(clause("trace(curthread->pid & TASK_DEAD);")),
            "enumerator TASK_DEAD; offsetof struct task_struct,pid: int");
  EXPECT_EQ(names(clause("trace(args[0]);")), "args[0]: long");
  EXPECT_EQ(names(clause("trace(args[1]->pid);")),
            "args[1]: struct task_struct *; offsetof struct task_struct,pid: int");
  EXPECT_EQ(names(clause("trace(`number);")), "symbol number: int");
  EXPECT_EQ(names(clause("trace(&`untyped);")), "symbol untyped");
  EXPECT_EQ(names(clause("trace(`init_task.pid);")),
            "offsetof struct task_struct,pid: int; symbol init_task: struct task_struct");
}

TEST(KernelNames, OfLibrariesWhatIsUsed) {
  EXPECT_EQ(names(clause("trace(xlate <info_t *> ((struct task_struct *)arg1)->number);")),
            "offsetof struct task_struct,pid: int");
  EXPECT_EQ(names(clause("trace(xlate <info_t *> ((struct task_struct *)arg1)->where);")),
            "symbol number: int");
  EXPECT_EQ(names(clause("trace(dead);")), "enumerator TASK_DEAD");
  EXPECT_EQ(names(clause("trace(there);")), "symbol number: int");
}

TEST(KernelNames, SayTheLineThatNamesThemFirst) {
  const Outcome out =
      run("BEGIN { trace(1); }\nfbt::vfs_read:entry\n{\n  trace(curthread->pid); }");
  ASSERT_EQ(out.program.kernel_names.size(), 1u);
  EXPECT_EQ(out.program.kernel_names[0].line, 4);
}

}  // namespace
}  // namespace ringside::d
