#include "dif/verify/stack_use.h"

#include <gtest/gtest.h>

#include "dif/testing/make_dif.h"

namespace ringside::dif {
namespace {

using namespace testing;

TEST(StackUse, ProgramsWithoutStacksNeedNone) {
  EXPECT_FALSE(uses_kernel_stack(count_by_execname()));
  EXPECT_FALSE(uses_kernel_stack(program({clause({})})));
  const ValueType user{ValueKind::UserStack, false, 8};
  EXPECT_FALSE(uses_kernel_stack(program({clause({action(ActionKind::Trace, {difo({}, user)})})})));
}

TEST(StackUse, StacksAreFoundAmongKeysAndValues) {
  const Difo stack = difo({}, ValueType{ValueKind::KernelStack, false, 160});
  EXPECT_TRUE(uses_kernel_stack(program({clause({aggregate(0, {stack})})})));
  EXPECT_TRUE(uses_kernel_stack(
      program({clause({}), clause({action(ActionKind::Printf, {constant(1), stack})})})));
}

TEST(StackUse, AddressesOfProcessesAreFoundAmongKeysAndValues) {
  EXPECT_FALSE(records_user_code(count_by_execname()));
  const Difo kernel = difo({}, ValueType{ValueKind::KernelStack, false, 160});
  EXPECT_FALSE(records_user_code(program({clause({aggregate(0, {kernel})})})));
  const Difo user = difo({}, ValueType{ValueKind::UserStack, false, 160});
  EXPECT_TRUE(records_user_code(program({clause({}), clause({aggregate(0, {user})})})));
  for (const ValueKind kind :
       {ValueKind::UserSymbol, ValueKind::UserModule, ValueKind::UserAddress}) {
    const Difo value = difo({}, ValueType{kind, false, 16});
    EXPECT_TRUE(records_user_code(program({clause({action(ActionKind::Trace, {value})})})));
  }
}

TEST(StackUse, DepthAndCallerAreFoundInPredicatesToo) {
  for (const Builtin which : {Builtin::Stackdepth, Builtin::Caller}) {
    EXPECT_TRUE(
        uses_kernel_stack(program({clause({action(ActionKind::Trace, {builtin(which)})})})));
    Clause guarded = clause({});
    guarded.predicate = builtin(which);
    EXPECT_TRUE(uses_kernel_stack(program({guarded})));
  }
}

/// x ? "a" : "b", as the compiler has it; x is a variable.
Difo choice(std::uint32_t second, Opcode branch = Opcode::Be) {
  return difo({encode_indexed(Opcode::Ldgs, static_cast<unsigned>(Builtin::Pid), 1),
               encode(Opcode::Tst, 1), encode_branch(branch, 5), encode_indexed(Opcode::Sets, 1, 1),
               encode_branch(Opcode::Ba, 6), second, encode_return(1)});
}

TEST(ReturnsConstant, WhereEachWayEndsInOne) {
  EXPECT_TRUE(returns_constant(constant(27)));
  EXPECT_TRUE(returns_constant(constant("a")));
  EXPECT_TRUE(returns_constant(difo({encode_return(0)})));
  for (const Opcode branch : {Opcode::Be, Opcode::Bleu}) {
    EXPECT_TRUE(returns_constant(choice(encode_indexed(Opcode::Sets, 2, 1), branch)));
    EXPECT_FALSE(returns_constant(choice(encode(Opcode::Nop), branch)))
        << "the variable on one way";
  }
  EXPECT_FALSE(returns_constant(builtin(Builtin::Execname)));
}

TEST(ReturnsConstant, ObjectsThatNoVerifierHasSeenLeadNowhere) {
  EXPECT_FALSE(returns_constant(difo({})));
  EXPECT_TRUE(returns_constant(difo({encode_branch(Opcode::Be, 0xff'ffff), encode_return(0)})));
  EXPECT_TRUE(returns_constant(difo({encode(Opcode::Nop)})));
}

TEST(ReturnsConstant, ACopyIsOneWhereItsSourceIs) {
  const std::uint32_t set = encode_indexed(Opcode::Setx, 0, 1);
  const std::uint32_t load = encode_indexed(Opcode::Ldgs, static_cast<unsigned>(Builtin::Pid), 1);
  const std::uint32_t copy = encode(Opcode::Mov, 1, 0, 2), of_zero = encode(Opcode::Mov, 0, 0, 2);
  EXPECT_TRUE(returns_constant(difo({set, copy, encode_return(2)})));
  EXPECT_FALSE(returns_constant(difo({load, copy, encode_return(2)})));
  EXPECT_TRUE(returns_constant(difo({load, of_zero, encode_return(2)})));
  EXPECT_FALSE(returns_constant(difo({set, load, copy, encode_return(2)}))) << "written over";
  EXPECT_FALSE(returns_constant(difo({set, encode(Opcode::Add, 1, 1, 2), encode_return(2)})))
      << "not computed here";
}

}  // namespace
}  // namespace ringside::dif
