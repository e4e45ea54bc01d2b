#include "dif/verify/record_needs.h"

#include <gtest/gtest.h>

#include "dif/testing/make_dif.h"

namespace ringside::dif {
namespace {

using namespace testing;

RecordNeeds needs_of(const Difo& difo) {
  return record_needs(clause({action(ActionKind::Trace, {difo})}));
}
bool is_deferred(const Difo& difo) {
  return !needs_of(difo).obstacle;
}

TEST(RecordNeeds, TheRecordHasWhoAndWhen) {
  EXPECT_FALSE(record_needs(count_by_execname().clauses[0]).obstacle);
  for (const Builtin which : {Builtin::Pid, Builtin::Tid, Builtin::Curthread, Builtin::Timestamp,
                              Builtin::Walltimestamp, Builtin::Cpu, Builtin::Ipl}) {
    EXPECT_TRUE(is_deferred(builtin(which)));
  }
  for (const Builtin which : {Builtin::Ppid, Builtin::Uid, Builtin::Gid, Builtin::Vtimestamp,
                              Builtin::Caller, Builtin::Stackdepth, Builtin::Ustackdepth}) {
    EXPECT_FALSE(is_deferred(builtin(which)));
  }
}

TEST(RecordNeeds, ArgumentsAreForThePlaceToDecide) {
  EXPECT_EQ(needs_of(builtin(Builtin::Arg0)).arguments, 1u);
  EXPECT_EQ(needs_of(builtin(Builtin::Arg9)).arguments, 1u << 9);
  EXPECT_FALSE(needs_of(builtin(Builtin::Pid)).error_number);
  EXPECT_TRUE(needs_of(builtin(Builtin::Errno)).error_number);
  Difo second = difo({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Ldga, kArgsArray, 1, 2),
                      encode_return(2)});
  second.integers = {1};
  EXPECT_EQ(needs_of(second).arguments, 2u);
  const Difo any = difo({encode_indexed(Opcode::Ldgs, 0x106, 1),
                         encode(Opcode::Ldga, kArgsArray, 1, 2), encode_return(2)});
  EXPECT_EQ(needs_of(any).arguments, (1u << kMaxProbeArguments) - 1);
}

TEST(RecordNeeds, RegistersAreRecordedAndTheProcesssAreNot) {
  EXPECT_TRUE(is_deferred(difo({encode(Opcode::Ldga, kRegsArray, 0, 1), encode_return(1)})));
  EXPECT_FALSE(is_deferred(difo({encode(Opcode::Ldga, kUregsArray, 0, 1), encode_return(1)})));
}

TEST(RecordNeeds, ALoadOfTheGuestsMemoryWaits) {
  EXPECT_FALSE(is_deferred(load_from(0xffff888000000000)));
  const Difo user = difo(
      {encode_indexed(Opcode::Ldgs, 0x106, 1), encode(Opcode::Uldub, 1, 0, 2), encode_return(2)});
  EXPECT_FALSE(is_deferred(user));
  // trace(stringof(arg0)): the engine reads what the object's value points at.
  EXPECT_FALSE(is_deferred(builtin(Builtin::Arg0, kString)));
}

TEST(RecordNeeds, ALoadOfDsOwnMemoryDoesNot) {
  Difo text =
      difo({encode_indexed(Opcode::Sets, 1, 1), encode(Opcode::Ldub, 1, 0, 2), encode_return(2)});
  text.strings += "abc";
  text.strings += '\0';
  EXPECT_TRUE(is_deferred(text));
  const Difo scratch =
      difo({encode_indexed(Opcode::Ldgs, 0x116, 1), encode(Opcode::Allocs, 1, 0, 2),
            encode(Opcode::Add, 2, 1, 3), encode(Opcode::Ldx, 3, 0, 4), encode_return(4)});
  EXPECT_TRUE(is_deferred(scratch));
  const Difo own = difo(
      {encode_indexed(Opcode::Ldgs, 0x106, 1), encode(Opcode::Rldx, 1, 0, 2), encode_return(2)});
  EXPECT_TRUE(is_deferred(own)) << "elsewhere it is a fault";
}

TEST(RecordNeeds, AnAddressThatMayBeTheGuestsOnOneWayWaits) {
  // r2 = arg0; if (pid != 0) r2 = "abc"; *r2
  Difo choice =
      difo({encode_indexed(Opcode::Ldgs, 0x106, 2), encode_indexed(Opcode::Ldgs, 0x116, 1),
            encode(Opcode::Tst, 1), encode_branch(Opcode::Be, 5),
            encode_indexed(Opcode::Sets, 0, 2), encode(Opcode::Ldub, 2, 0, 3), encode_return(3)});
  EXPECT_FALSE(is_deferred(choice));
  choice.text[0] = encode_indexed(Opcode::Sets, 0, 2);
  EXPECT_TRUE(is_deferred(choice));
}

TEST(RecordNeeds, SubroutinesWaitThatLookAtTheGuest) {
  const auto call = [](Subroutine which, std::uint32_t push) {
    return difo({encode_indexed(Opcode::Ldgs, 0x106, 1), push,
                 encode_indexed(Opcode::Call, static_cast<unsigned>(which), 2), encode_return(2)});
  };
  const std::uint32_t value = encode_push(Opcode::Pushtv, TupleType::Value, 0, 1);
  EXPECT_TRUE(is_deferred(call(Subroutine::Getmajor, value)));
  EXPECT_FALSE(is_deferred(call(Subroutine::Copyinstr, value)));
  EXPECT_FALSE(is_deferred(call(Subroutine::Progenyof, value)));
  EXPECT_FALSE(is_deferred(call(Subroutine::InetNtoa, value)));
  EXPECT_FALSE(is_deferred(call(Subroutine::MutexOwned, value)));
  EXPECT_FALSE(
      is_deferred(call(Subroutine::Strlen, encode_push(Opcode::Pushtr, TupleType::String, 0, 1))));
  Difo made = call(Subroutine::Strlen, encode_push(Opcode::Pushtr, TupleType::String, 0, 1));
  made.text[0] = encode_indexed(Opcode::Ldgs, 0x118, 1);  // execname
  EXPECT_TRUE(is_deferred(made));
}

TEST(RecordNeeds, NoStringAtAllIsNoMemory) {
  Difo next = difo({encode_indexed(Opcode::Setx, 0, 1),
                    encode_push(Opcode::Pushtr, TupleType::String, 0, 1),
                    encode_indexed(Opcode::Call, static_cast<unsigned>(Subroutine::Strlen), 2),
                    encode_return(2)});
  next.integers = {0};
  EXPECT_TRUE(is_deferred(next));
  next.integers = {1};
  EXPECT_FALSE(is_deferred(next));
}

TEST(RecordNeeds, StacksAndDestructiveActionsWait) {
  EXPECT_FALSE(is_deferred(difo({}, ValueType{ValueKind::KernelStack, false, 160})));
  EXPECT_FALSE(is_deferred(difo({}, ValueType{ValueKind::UserAddress, false, 16})));
  EXPECT_TRUE(record_needs(clause({action(ActionKind::Stop, {})})).obstacle);
  EXPECT_TRUE(record_needs(clause({action(ActionKind::Chill, {constant(1)})})).obstacle);
  EXPECT_TRUE(record_needs(clause({action(ActionKind::Tracemem, {constant(1)})})).obstacle);
  EXPECT_FALSE(record_needs(clause({action(ActionKind::Exit, {constant(0)})})).obstacle);
}

TEST(RecordNeeds, ThePredicateCounts) {
  Clause guarded = clause({action(ActionKind::Trace, {constant(1)})});
  guarded.predicate = load_from(0xffff888000000000);
  EXPECT_TRUE(record_needs(guarded).obstacle);
}

TEST(RecordNeeds, TheObstacleNamesTheExpression) {
  Difo named = load_from(0xffff888000000000);
  named.source.parts = {{0, 7, "curthread->mm", ""}};
  EXPECT_EQ(needs_of(named).obstacle, "line 7: curthread->mm looks at the guest's memory");
}

}  // namespace
}  // namespace ringside::dif
