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

}  // namespace
}  // namespace ringside::dif
