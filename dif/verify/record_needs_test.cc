#include "dif/verify/record_needs.h"

#include <gtest/gtest.h>

#include "dif/testing/make_dif.h"

namespace ringside::dif {
namespace {

using namespace testing;

using Base = RecordAddress::Base;

constexpr std::uint32_t kStringSize = 100;

RecordNeeds needs_of(const Clause& clause) {
  return record_needs(clause, kStringSize);
}
RecordNeeds needs_of(const Difo& difo) {
  return needs_of(clause({action(ActionKind::Trace, {difo})}));
}
RecordLoad kernel_load(Base base, std::uint16_t number, std::int64_t offset, std::uint32_t bytes) {
  return {{base, number, offset}, bytes, false};
}
RecordLoad user_load(std::uint16_t argument, std::uint32_t bytes) {
  return {{Base::Argument, argument, 0}, bytes, true};
}
constexpr std::uint32_t load_builtin(Builtin which, unsigned to) {
  return encode_indexed(Opcode::Ldgs, static_cast<unsigned>(which), to);
}
constexpr std::uint32_t call(Subroutine which, unsigned to) {
  return encode_indexed(Opcode::Call, static_cast<unsigned>(which), to);
}
constexpr std::uint32_t push_value(unsigned from) {
  return encode_push(Opcode::Pushtv, TupleType::Value, 0, from);
}
constexpr std::uint32_t push_string(unsigned from) {
  return encode_push(Opcode::Pushtr, TupleType::String, 0, from);
}
bool is_deferred(const Difo& difo) {
  return !needs_of(difo).obstacle;
}

TEST(RecordNeeds, TheRecordHasWhoAndWhen) {
  EXPECT_FALSE(needs_of(count_by_execname().clauses[0]).obstacle);
  for (const Builtin which : {Builtin::Pid, Builtin::Tid, Builtin::Curthread, Builtin::Timestamp,
                              Builtin::Walltimestamp, Builtin::Cpu, Builtin::Ipl}) {
    EXPECT_TRUE(is_deferred(builtin(which)));
  }
  for (const Builtin which : {Builtin::Ustackdepth, Builtin::Ucaller}) {
    EXPECT_FALSE(is_deferred(builtin(which)));
  }
  for (const Builtin which : {Builtin::Vtimestamp, Builtin::Ppid, Builtin::Uid, Builtin::Gid,
                              Builtin::Caller, Builtin::Stackdepth}) {
    EXPECT_TRUE(is_deferred(builtin(which)));
    EXPECT_EQ(needs_of(builtin(which)).variables, std::vector{which});
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

TEST(RecordNeeds, OnlyWhatLooksAtRegistersOrIdsNeedsThem) {
  const RecordNeeds name = needs_of(count_by_execname().clauses[0]);
  EXPECT_FALSE(name.registers || name.ids);
  for (const Builtin which : {Builtin::Curthread, Builtin::Timestamp, Builtin::Walltimestamp,
                              Builtin::Cpu, Builtin::Probefunc, Builtin::Uid}) {
    EXPECT_FALSE(needs_of(builtin(which)).registers || needs_of(builtin(which)).ids);
  }
  for (const Builtin which : {Builtin::Pid, Builtin::Tid}) {
    EXPECT_TRUE(needs_of(builtin(which)).ids);
    EXPECT_FALSE(needs_of(builtin(which)).registers);
  }
  for (const Builtin which : {Builtin::Caller, Builtin::Stackdepth}) {
    EXPECT_TRUE(needs_of(builtin(which)).registers);
  }
  EXPECT_TRUE(needs_of(difo({encode(Opcode::Ldga, kRegsArray, 0, 1), encode_return(1)})).registers);
  for (const Opcode op : {Opcode::Ldts, Opcode::Ldtaa, Opcode::Stts, Opcode::Sttaa}) {
    EXPECT_TRUE(needs_of(difo({encode_indexed(op, kFirstUserVariable, 1), encode_return(1)})).ids);
  }
  RecordNeeds both = name;
  both |= needs_of(builtin(Builtin::Pid));
  both |= needs_of(builtin(Builtin::Caller));
  EXPECT_TRUE(both.ids && both.registers);
}

TEST(RecordNeeds, AChainOfPointersIsAListOfLoads) {
  // ((int *)((long *)args[1] + 2)[-1])[8]
  Difo chain =
      difo({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Ldga, kArgsArray, 1, 2),
            encode_indexed(Opcode::Setx, 1, 3), encode(Opcode::Add, 2, 3, 2),
            encode_indexed(Opcode::Setx, 2, 3), encode(Opcode::Sub, 2, 3, 2),
            encode(Opcode::Ldx, 2, 0, 2), encode_indexed(Opcode::Setx, 3, 3),
            encode_indexed(Opcode::Setx, 4, 4), encode(Opcode::Mul, 3, 4, 3),
            encode(Opcode::Add, 3, 2, 2), encode(Opcode::Lduw, 2, 0, 2), encode_return(2)});
  chain.integers = {1, 16, 8, 8, 4};
  const RecordNeeds needs = needs_of(chain);

  EXPECT_FALSE(needs.obstacle);
  EXPECT_EQ(needs.arguments, 2u);
  EXPECT_EQ(needs.loads,
            (std::vector{kernel_load(Base::Argument, 1, 8, 8), kernel_load(Base::Load, 0, 32, 4)}));
}

TEST(RecordNeeds, TheTaskAndVariablesOfTheKernelHaveKnownAddresses) {
  const Difo state =
      difo({load_builtin(Builtin::Curthread, 1), encode(Opcode::Lduw, 1, 0, 2), encode_return(2)});
  EXPECT_EQ(needs_of(state).loads, std::vector{kernel_load(Base::Task, 0, 0, 4)});
  const auto jiffies = needs_of(load_from(0xffffffff82001000)).loads;
  EXPECT_EQ(jiffies, std::vector{kernel_load(Base::Constant, 0, -0x7dfff000, 8)});
  EXPECT_FALSE(is_deferred(load_from(0xffff888000000000))) << "no distance of 32 bits";
}

TEST(RecordNeeds, ALoadOfTheProcesssIsToldFromOneOfTheKernels) {
  const Difo user =
      difo({load_builtin(Builtin::Arg0, 1), encode(Opcode::Uldub, 1, 0, 2), encode_return(2)});
  EXPECT_EQ(needs_of(user).loads, std::vector{user_load(0, 1)});
}

TEST(RecordNeeds, AnAddressThatNoRecordTellsWaits) {
  const auto at_r1 = [](std::uint32_t load) {
    return difo({load, encode(Opcode::Ldx, 1, 0, 2), encode_return(2)});
  };
  EXPECT_TRUE(is_deferred(at_r1(load_builtin(Builtin::Arg0, 1))));
  EXPECT_FALSE(is_deferred(at_r1(load_builtin(Builtin::Pid, 1))));
  EXPECT_FALSE(is_deferred(at_r1(encode(Opcode::Ldga, kRegsArray, 0, 1))));
  EXPECT_FALSE(is_deferred(at_r1(encode_indexed(Opcode::Ldgs, kFirstUserVariable, 1))));
  // A word of 4 bytes is no address, nor is a sum of two addresses.
  EXPECT_FALSE(is_deferred(difo({load_builtin(Builtin::Curthread, 1), encode(Opcode::Lduw, 1, 0, 1),
                                 encode(Opcode::Ldx, 1, 0, 2), encode_return(2)})));
  EXPECT_FALSE(is_deferred(
      difo({load_builtin(Builtin::Curthread, 1), load_builtin(Builtin::Arg0, 2),
            encode(Opcode::Add, 1, 2, 1), encode(Opcode::Ldx, 1, 0, 2), encode_return(2)})));
}

TEST(RecordNeeds, ASmallNumberMayBeAddedToAnAddress) {
  // arg0[<r2>], of bytes; r4 is 7.
  const auto loads_at = [](std::vector<std::uint32_t> number) {
    std::vector<std::uint32_t> text{load_builtin(Builtin::Arg0, 1),
                                    encode_indexed(Opcode::Setx, 0, 4)};
    text.insert(text.end(), number.begin(), number.end());
    text.insert(text.end(),
                {encode(Opcode::Add, 1, 2, 3), encode(Opcode::Ldub, 3, 0, 3), encode_return(3)});
    Difo made = difo(std::move(text));
    made.integers = {7, 56};
    const RecordNeeds needs = needs_of(made);
    return needs.obstacle ? std::vector<RecordLoad>() : needs.loads;
  };
  const auto up_to = [](std::uint32_t most) {
    return std::vector{kernel_load(Base::Argument, 0, 0, most + 1)};
  };
  const auto arg1 = load_builtin(Builtin::Arg1, 2), by = encode_indexed(Opcode::Setx, 1, 5);
  EXPECT_EQ(loads_at({arg1, encode(Opcode::And, 2, 4, 2)}), up_to(7));
  EXPECT_EQ(loads_at({arg1, encode(Opcode::And, 4, 2, 2), encode(Opcode::Mul, 2, 4, 2)}),
            up_to(49));
  EXPECT_EQ(loads_at({arg1, encode(Opcode::And, 4, 2, 2), encode(Opcode::Add, 2, 4, 2)}),
            up_to(14));
  EXPECT_EQ(loads_at({arg1, encode(Opcode::And, 4, 2, 2), encode(Opcode::Sll, 2, 4, 2)}),
            up_to(7 << 7));
  EXPECT_EQ(loads_at({arg1, by, encode(Opcode::Srl, 2, 5, 2)}), up_to(255));
  EXPECT_EQ(loads_at({arg1, by, encode(Opcode::And, 4, 2, 2), encode(Opcode::Sll, 2, 5, 2),
                      encode(Opcode::Sra, 2, 5, 2)}),
            up_to(7));
  Difo below = difo({arg1, encode_indexed(Opcode::Setx, 0, 4), encode(Opcode::And, 2, 4, 2),
                     encode_indexed(Opcode::Setx, 1, 4), encode(Opcode::Add, 2, 4, 2),
                     load_builtin(Builtin::Arg0, 1), encode(Opcode::Add, 1, 2, 3),
                     encode(Opcode::Ldub, 3, 0, 3), encode_return(3)});
  below.integers = {7, UINT64_MAX - 5};
  EXPECT_FALSE(is_deferred(below)) << "7 - 6, or 0 - 6";
  below.text[4] = encode(Opcode::Add, 4, 2, 2);
  EXPECT_FALSE(is_deferred(below));
  EXPECT_TRUE(loads_at({arg1}).empty());
  EXPECT_TRUE(loads_at({arg1, by, encode(Opcode::Sra, 2, 5, 2)}).empty()) << "may be below 0";
  EXPECT_TRUE(loads_at({arg1, encode(Opcode::Mul, 2, 4, 2)}).empty());
  EXPECT_TRUE(loads_at({arg1, encode(Opcode::And, 4, 2, 2), encode(Opcode::Sub, 2, 4, 2)}).empty());
}

TEST(RecordNeeds, ANumberOfAnySizeMayBeAddedThatALoadTells) {
  // arg0->pointer + arg0->number, and what lies 12 bytes behind it; r4 is 12.
  const auto made = [](std::uint32_t number, std::vector<std::uint32_t> then) {
    std::vector<std::uint32_t> text{load_builtin(Builtin::Arg0, 1), encode(Opcode::Ldx, 1, 0, 2),
                                    encode_indexed(Opcode::Setx, 0, 4),
                                    encode(Opcode::Add, 1, 4, 1), number};
    text.insert(text.end(), then.begin(), then.end());
    text.push_back(encode_return(3));
    Difo difo = testing::difo(std::move(text));
    difo.integers = {12};
    return difo;
  };
  const std::uint32_t at_sum = encode(Opcode::Add, 2, 3, 3), ahead = encode(Opcode::Add, 3, 4, 3),
                      byte = encode(Opcode::Ldub, 3, 0, 3);
  const RecordNeeds needs = needs_of(made(encode(Opcode::Lduh, 1, 0, 3), {at_sum, ahead, byte}));
  EXPECT_FALSE(needs.obstacle);
  EXPECT_EQ(needs.loads, (std::vector<RecordLoad>{
                             kernel_load(Base::Argument, 0, 0, 8),
                             kernel_load(Base::Argument, 0, 12, 2),
                             {{Base::Load, 0, 12, 0, RecordAddress::Index{1, 2}}, 1, false}}));
  EXPECT_TRUE(is_deferred(made(encode(Opcode::Lduw, 1, 0, 3), {at_sum, byte})));
  for (const Opcode other : {Opcode::Ldsh, Opcode::Ldsw, Opcode::Ldx}) {
    EXPECT_FALSE(is_deferred(made(encode(other, 1, 0, 3), {at_sum, byte})));
  }
  EXPECT_FALSE(is_deferred(
      made(encode(Opcode::Lduh, 1, 0, 3), {at_sum, encode(Opcode::Add, 3, 2, 3), byte})));
  RecordNeeds both;
  both.add(kernel_load(Base::Task, 0, 8, 8));
  both |= needs;
  EXPECT_EQ(both.loads[3].at.number, 1);
  EXPECT_EQ(both.loads[3].at.index, (RecordAddress::Index{2, 2}));
  // Narrowed: (uint16_t)arg0->number.
  Difo narrow = made(encode(Opcode::Lduw, 1, 0, 3),
                     {encode_indexed(Opcode::Setx, 1, 5), encode(Opcode::Sll, 3, 5, 3),
                      encode(Opcode::Srl, 3, 5, 3), at_sum, byte});
  narrow.integers = {12, 48};
  EXPECT_EQ(needs_of(narrow).loads.back().at.index, (RecordAddress::Index{1, 2}));
  // A product is no second half of a narrowing.
  Difo product = made(encode(Opcode::Lduw, 1, 0, 3),
                      {encode_indexed(Opcode::Setx, 1, 5), encode(Opcode::Sll, 3, 5, 3),
                       encode(Opcode::Mul, 3, 5, 3), at_sum, byte});
  product.integers = {12, 48};
  EXPECT_FALSE(is_deferred(product));
}

TEST(RecordNeeds, NoPointerIsKnownThatLiesAtAnUnknownPlace) {
  // ((long **)arg0)[byte][0]
  Difo made = difo({load_builtin(Builtin::Arg0, 1), load_builtin(Builtin::Curthread, 2),
                    encode(Opcode::Ldub, 2, 0, 2), encode(Opcode::Add, 1, 2, 1),
                    encode(Opcode::Ldx, 1, 0, 1), encode_return(1)});
  EXPECT_EQ(needs_of(made).loads, (std::vector{kernel_load(Base::Task, 0, 0, 1),
                                               kernel_load(Base::Argument, 0, 0, 255 + 8)}));
  made.text.insert(made.text.end() - 1, encode(Opcode::Ldx, 1, 0, 1));
  EXPECT_FALSE(is_deferred(made));
}

TEST(RecordNeeds, ALengthIsNoLargerThanAString) {
  // copyinstr(arg1 + strlen(execname) + 1)
  Difo made = difo({load_builtin(Builtin::Execname, 1), push_string(1), call(Subroutine::Strlen, 2),
                    load_builtin(Builtin::Arg1, 1), encode(Opcode::Add, 1, 2, 1),
                    encode_indexed(Opcode::Setx, 0, 2), encode(Opcode::Add, 1, 2, 1), push_value(1),
                    call(Subroutine::Copyinstr, 2), encode_return(2)},
                   ValueType{ValueKind::String, false, 0});
  made.integers = {1};
  const RecordLoad expected{{Base::Argument, 1, 1}, 2 * kStringSize, true};
  EXPECT_EQ(needs_of(made).loads, std::vector{expected});
}

TEST(RecordNeeds, AClausesOwnVariableKeepsAnAddressFromOneObjectToTheNext) {
  const unsigned id = kFirstUserVariable + 1;
  Difo store =
      difo({load_builtin(Builtin::Arg1, 1), encode_indexed(Opcode::Stls, id, 1), encode_return(0)},
           ValueType{ValueKind::Void, false, 0});
  Difo use =
      difo({encode_indexed(Opcode::Ldls, id, 1), encode(Opcode::Ldx, 1, 0, 2), encode_return(2)});
  store.variables = use.variables = {
      {static_cast<std::uint16_t>(id), VariableScope::Clause, VariableKind::Scalar, kLong, "p"}};
  const auto needs_of_both = [&] {
    return needs_of(clause({action(ActionKind::Trace, {store}), action(ActionKind::Trace, {use})}));
  };

  EXPECT_FALSE(needs_of_both().obstacle);
  EXPECT_EQ(needs_of_both().loads, std::vector{kernel_load(Base::Argument, 1, 0, 8)});
  EXPECT_FALSE(is_deferred(use)) << "another clause may have stored it";
  store.text[0] = load_builtin(Builtin::Pid, 1);
  EXPECT_TRUE(needs_of_both().obstacle);
  // if (pid == 0) this->p = arg0;
  store.text = {load_builtin(Builtin::Arg1, 1),      encode_indexed(Opcode::Stls, id, 1),
                load_builtin(Builtin::Pid, 2),       encode(Opcode::Tst, 2),
                encode_branch(Opcode::Bne, 7),       load_builtin(Builtin::Arg0, 1),
                encode_indexed(Opcode::Stls, id, 1), encode_return(0)};
  EXPECT_EQ(needs_of_both().loads, (std::vector{kernel_load(Base::Argument, 1, 0, 8),
                                                kernel_load(Base::Argument, 0, 0, 8)}));
}

TEST(RecordNeeds, AThreadsVariableKeepsAnAddressUpToTheClausesEnd) {
  const unsigned id = kFirstUserVariable + 1;
  const auto needs_with = [&](Opcode set, Opcode get, Opcode load) {
    Difo difo =
        testing::difo({load_builtin(Builtin::Arg1, 1), encode_indexed(set, id, 1),
                       encode_indexed(get, id, 2), encode(load, 2, 0, 2), encode_return(2)});
    difo.variables = {
        {static_cast<std::uint16_t>(id), VariableScope::Thread, VariableKind::Scalar, kLong, "p"}};
    return needs_of(difo);
  };
  const RecordNeeds needs = needs_with(Opcode::Stts, Opcode::Ldts, Opcode::Ldx);
  EXPECT_FALSE(needs.obstacle);
  EXPECT_EQ(needs.loads, std::vector{kernel_load(Base::Argument, 1, 0, 8)});
  // Where the variable has no room, it is 0, which may be an address of the process's.
  EXPECT_EQ(needs_with(Opcode::Stts, Opcode::Ldts, Opcode::Uldx).loads,
            (std::vector<RecordLoad>{user_load(1, 8), {{}, 8, true}}));
  EXPECT_TRUE(needs_with(Opcode::Stts, Opcode::Ldtaa, Opcode::Ldx).obstacle) << "another element";
  EXPECT_TRUE(needs_with(Opcode::Sttaa, Opcode::Ldts, Opcode::Ldx).obstacle);
  EXPECT_TRUE(needs_with(Opcode::Stgs, Opcode::Ldgs, Opcode::Ldx).obstacle) << "of all threads";
}

TEST(RecordNeeds, AVariableThatKeepsAnArgumentIsAnAddress) {
  const std::uint16_t id = kFirstUserVariable + 1;
  const std::uint32_t load = encode_indexed(Opcode::Ldts, id, 1);
  const RecordLoad kept{{Base::Kept, 2, 0}, 8, true}, null{{}, 8, true};
  const auto needs_with = [&](std::vector<std::uint32_t> text, const KeptArguments& arguments) {
    Difo made = difo(std::move(text));
    made.variables = {{id, VariableScope::Thread, VariableKind::Scalar, kLong, "p"}};
    Clause clause = testing::clause({action(ActionKind::Trace, {made})});
    clause.predicate = made;
    return record_needs(clause, kStringSize, arguments);
  };
  const std::vector<std::uint32_t> plain = {load, encode(Opcode::Uldx, 1, 0, 2), encode_return(2)};
  const RecordNeeds needs = needs_with(plain, {{id, 2}});
  EXPECT_FALSE(needs.obstacle);
  EXPECT_EQ(needs.loads, (std::vector{kept, null}));
  EXPECT_TRUE(needs.keeps_past_success);
  EXPECT_TRUE(needs_with(plain, {}).obstacle);
  EXPECT_TRUE(needs_with(plain, {{id + 1, 2}}).obstacle);

  // errno <relation> 0 ? *self->p : 0
  const auto if_errno = [&](std::uint32_t compare, Opcode branch) {
    return needs_with({load, load_builtin(Builtin::Errno, 2), compare, encode_branch(branch, 5),
                       encode(Opcode::Uldx, 1, 0, 2), encode_return(2)},
                      {{id, 2}});
  };
  for (const std::uint32_t compare :
       {encode(Opcode::Tst, 2), encode(Opcode::Cmp, 2, 0), encode(Opcode::Cmp, 0, 2)}) {
    EXPECT_EQ(if_errno(compare, Opcode::Be).loads, (std::vector{kept, null}));
    EXPECT_FALSE(if_errno(compare, Opcode::Be).keeps_past_success);
    EXPECT_TRUE(if_errno(compare, Opcode::Bne).keeps_past_success);
    EXPECT_TRUE(if_errno(compare, Opcode::Bl).keeps_past_success);
  }
  EXPECT_TRUE(if_errno(encode(Opcode::Tst, 1), Opcode::Be).keeps_past_success);
  EXPECT_TRUE(if_errno(encode(Opcode::Cmp, 2, 1), Opcode::Be).keeps_past_success);
  RecordNeeds both;
  both |= needs;
  EXPECT_TRUE(both.keeps_past_success);
}

TEST(RecordNeeds, OneOfSeveralAddressesIsCopiedAtEach) {
  // r2 = arg0; if (pid != 0) r2 = <instruction>; *(int *)(*(long *)r2 + 4)
  const auto needs_with = [](std::uint32_t instruction) {
    Difo made =
        difo({load_builtin(Builtin::Arg0, 2), load_builtin(Builtin::Pid, 1), encode(Opcode::Tst, 1),
              encode_branch(Opcode::Be, 5), instruction, encode(Opcode::Ldx, 2, 0, 3),
              encode_indexed(Opcode::Setx, 0, 4), encode(Opcode::Add, 3, 4, 3),
              encode(Opcode::Lduw, 3, 0, 3), encode_return(3)});
    made.integers = {4};
    return needs_of(made);
  };
  EXPECT_EQ(needs_with(load_builtin(Builtin::Arg1, 2)).loads,
            (std::vector{kernel_load(Base::Argument, 0, 0, 8), kernel_load(Base::Argument, 1, 0, 8),
                         kernel_load(Base::Load, 0, 4, 4), kernel_load(Base::Load, 1, 4, 4)}));
  // NULL is a fault, on the spot as well as later.
  const std::vector one = {kernel_load(Base::Argument, 0, 0, 8), kernel_load(Base::Load, 0, 4, 4)};
  EXPECT_EQ(needs_with(encode(Opcode::Mov, 0, 0, 2)).loads, one);
  EXPECT_EQ(needs_with(encode_indexed(Opcode::Setx, 0, 2)).loads, one);
  EXPECT_TRUE(needs_with(load_builtin(Builtin::Pid, 2)).obstacle);
}

TEST(RecordNeeds, OfFewAddressesOneMayBeChosen) {
  // r2 = arg0; if (pid != 0) r2 = arg0 + 8; and so on; *r2
  const auto is_deferred_with = [](unsigned choices) {
    std::vector<std::uint32_t> text{load_builtin(Builtin::Pid, 1), load_builtin(Builtin::Arg0, 2)};
    for (unsigned n = 1; n < choices; ++n) {
      const auto at = static_cast<unsigned>(text.size());
      text.insert(text.end(),
                  {encode(Opcode::Tst, 1), encode_branch(Opcode::Be, at + 5),
                   load_builtin(Builtin::Arg0, 2), encode_indexed(Opcode::Setx, n - 1, 3),
                   encode(Opcode::Add, 2, 3, 2)});
    }
    text.insert(text.end(), {encode(Opcode::Ldx, 2, 0, 2), encode_return(2)});
    Difo made = difo(std::move(text));
    for (unsigned n = 1; n < choices; ++n) made.integers.push_back(8 * n);
    return is_deferred(made);
  };
  EXPECT_TRUE(is_deferred_with(8));
  EXPECT_FALSE(is_deferred_with(9));
}

TEST(RecordNeeds, StringsAreReadUpToTheirLongest) {
  Difo name = difo({load_builtin(Builtin::Arg0, 1), encode_return(1)},
                   ValueType{ValueKind::String, false, 0});
  EXPECT_EQ(needs_of(name).loads, std::vector{kernel_load(Base::Argument, 0, 0, kStringSize)});
  name.result = {ValueKind::Bytes, false, 16};
  EXPECT_EQ(needs_of(name).loads, std::vector{kernel_load(Base::Argument, 0, 0, 16)});
  const Difo length = difo({load_builtin(Builtin::Arg0, 1), push_string(1),
                            call(Subroutine::Strlen, 2), encode_return(2)});
  EXPECT_EQ(needs_of(length).loads, std::vector{kernel_load(Base::Argument, 0, 0, kStringSize)});
  const Difo compared = difo({load_builtin(Builtin::Arg0, 1), load_builtin(Builtin::Execname, 2),
                              encode(Opcode::Scmp, 2, 1), encode_return(0)});
  EXPECT_EQ(needs_of(compared).loads, std::vector{kernel_load(Base::Argument, 0, 0, kStringSize)});
}

TEST(RecordNeeds, MemoryOfTheProcessIsCopiedInWhereItsSizeIsKnown) {
  Difo bytes = difo({load_builtin(Builtin::Arg1, 1), push_value(1),
                     encode_indexed(Opcode::Setx, 0, 1), push_value(1), call(Subroutine::Copyin, 2),
                     encode(Opcode::Ldub, 2, 0, 2), encode_return(2)});
  bytes.integers = {24};
  EXPECT_EQ(needs_of(bytes).loads, std::vector{user_load(1, 24)});
  bytes.text[2] = load_builtin(Builtin::Arg2, 1);
  EXPECT_FALSE(is_deferred(bytes)) << "as many bytes as the process says";
  Difo text = difo({load_builtin(Builtin::Arg1, 1), push_value(1), call(Subroutine::Copyinstr, 2),
                    encode_return(2)},
                   ValueType{ValueKind::String, false, 0});
  EXPECT_EQ(needs_of(text).loads, std::vector{user_load(1, kStringSize)});
  text.text.insert(text.text.begin() + 2, {encode_indexed(Opcode::Setx, 0, 1), push_value(1)});
  text.integers = {10};
  EXPECT_EQ(needs_of(text).loads, std::vector{user_load(1, 10)});
  text.integers = {1000};
  EXPECT_EQ(needs_of(text).loads, std::vector{user_load(1, kStringSize)});
}

TEST(RecordNeeds, OfSeveralClausesHaveEachLoadOnce) {
  const auto needs_with = [](std::vector<RecordLoad> loads) {
    RecordNeeds needs;
    needs.loads = std::move(loads);
    return needs;
  };
  const RecordLoad task = kernel_load(Base::Task, 0, 8, 8);
  const RecordLoad first = kernel_load(Base::Argument, 0, 8, 8);
  RecordNeeds needs = needs_with({task});
  needs |=
      needs_with({first, task, kernel_load(Base::Load, 0, 1, 1), kernel_load(Base::Load, 1, 1, 1)});

  EXPECT_EQ(needs.loads, (std::vector{task, first, kernel_load(Base::Load, 1, 1, 1),
                                      kernel_load(Base::Load, 0, 1, 1)}));
}

TEST(RecordNeeds, AStringThatASubroutineMakesIsNoMemoryOfTheGuests) {
  Difo made = difo({load_builtin(Builtin::Execname, 1), push_string(1), push_string(1),
                    call(Subroutine::Strjoin, 2), encode(Opcode::Ldub, 2, 0, 2), encode_return(2)});
  EXPECT_TRUE(is_deferred(made));
  EXPECT_TRUE(needs_of(made).loads.empty());
  made.text[3] = call(Subroutine::Strlen, 2);
  EXPECT_FALSE(is_deferred(made)) << "a number is no address";
}

TEST(RecordNeeds, AResultOfAnyOperationIsAnotherValue) {
  const auto address_after = [](std::uint32_t instruction) {
    return is_deferred(difo({load_builtin(Builtin::Arg0, 1), load_builtin(Builtin::Pid, 2),
                             instruction, encode(Opcode::Ldx, 1, 0, 1), encode_return(1)}));
  };
  EXPECT_TRUE(address_after(encode(Opcode::Nop, 0, 0, 0)));
  for (const Opcode op : {Opcode::Or, Opcode::Xor, Opcode::Udiv, Opcode::Urem, Opcode::Sdiv}) {
    EXPECT_FALSE(address_after(encode(op, 1, 2, 1)));
  }
  EXPECT_FALSE(address_after(encode(Opcode::Not, 1, 0, 1)));
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

TEST(RecordNeeds, AnAddressMayBeTheGuestsOnOneWayAndDsOwnOnTheOther) {
  // r2 = arg0; if (pid != 0) r2 = "abc"; *r2
  Difo choice =
      difo({encode_indexed(Opcode::Ldgs, 0x106, 2), encode_indexed(Opcode::Ldgs, 0x116, 1),
            encode(Opcode::Tst, 1), encode_branch(Opcode::Be, 5),
            encode_indexed(Opcode::Sets, 0, 2), encode(Opcode::Ldub, 2, 0, 3), encode_return(3)});
  EXPECT_EQ(needs_of(choice).loads, std::vector{kernel_load(Base::Argument, 0, 0, 1)});
  EXPECT_TRUE(is_deferred(choice));
  choice.text[4] = load_builtin(Builtin::Arg1, 2);
  EXPECT_EQ(needs_of(choice).loads, (std::vector{kernel_load(Base::Argument, 0, 0, 1),
                                                 kernel_load(Base::Argument, 1, 0, 1)}));
  choice.text[4] = load_builtin(Builtin::Pid, 2);
  EXPECT_FALSE(is_deferred(choice));
  choice.text[4] = choice.text[0] = encode_indexed(Opcode::Sets, 0, 2);
  EXPECT_TRUE(is_deferred(choice));
  EXPECT_TRUE(needs_of(choice).loads.empty());
}

TEST(RecordNeeds, APointerThatMayBeReadFromEitherMemoryLeadsNowhere) {
  // r2 = arg0; if (pid != 0) r2 = "abc"; **(long **)r2
  Difo choice =
      difo({load_builtin(Builtin::Arg0, 2), load_builtin(Builtin::Pid, 1), encode(Opcode::Tst, 1),
            encode_branch(Opcode::Be, 5), encode_indexed(Opcode::Sets, 0, 2),
            encode(Opcode::Ldx, 2, 0, 3), encode_return(3)});
  EXPECT_TRUE(is_deferred(choice));
  choice.text.insert(choice.text.end() - 1, encode(Opcode::Ldx, 3, 0, 3));
  EXPECT_FALSE(is_deferred(choice));
}

TEST(RecordNeeds, SubroutinesWaitThatFindTheirMemoryThemselves) {
  const auto call_with = [](Subroutine which, std::uint32_t push) {
    return difo({load_builtin(Builtin::Pid, 1), push, call(which, 2), encode_return(2)});
  };
  EXPECT_TRUE(is_deferred(call_with(Subroutine::Getmajor, push_value(1))));
  EXPECT_FALSE(is_deferred(call_with(Subroutine::Copyinstr, push_value(1))));
  EXPECT_FALSE(is_deferred(call_with(Subroutine::Progenyof, push_value(1))));
  EXPECT_FALSE(is_deferred(call_with(Subroutine::InetNtoa, push_value(1))));
  EXPECT_FALSE(is_deferred(call_with(Subroutine::MutexOwned, push_value(1))));
  EXPECT_FALSE(is_deferred(call_with(Subroutine::Strlen, push_string(1))));
  Difo made = call_with(Subroutine::Strlen, push_string(1));
  made.text[0] = load_builtin(Builtin::Execname, 1);
  EXPECT_TRUE(is_deferred(made));
}

TEST(RecordNeeds, AddressesOfNetworksAndBytesOfAKnownNumberAreRead) {
  const auto loads_of = [](Subroutine which, std::vector<std::uint32_t> pushes) {
    std::vector<std::uint32_t> text{load_builtin(Builtin::Arg0, 1), load_builtin(Builtin::Pid, 2),
                                    encode_indexed(Opcode::Setx, 0, 3),
                                    encode_indexed(Opcode::Sets, 0, 4)};
    text.insert(text.end(), pushes.begin(), pushes.end());
    text.insert(text.end(), {call(which, 5), encode_return(0)});
    Difo made = difo(std::move(text));
    made.integers = {24};
    const RecordNeeds needs = needs_of(made);
    return needs.obstacle ? std::vector<RecordLoad>() : needs.loads;
  };
  const auto behind_arg0 = [](std::uint32_t bytes) {
    return std::vector{kernel_load(Base::Argument, 0, 0, bytes)};
  };
  EXPECT_EQ(loads_of(Subroutine::InetNtoa, {push_value(1)}), behind_arg0(4));
  EXPECT_EQ(loads_of(Subroutine::InetNtoa6, {push_value(1)}), behind_arg0(16));
  EXPECT_EQ(loads_of(Subroutine::InetNtop, {push_value(2), push_value(1)}), behind_arg0(16));
  EXPECT_EQ(loads_of(Subroutine::LinkNtop, {push_value(2), push_value(1)}), behind_arg0(20));
  EXPECT_EQ(loads_of(Subroutine::Bcopy, {push_value(1), push_value(4), push_value(3)}),
            behind_arg0(24));
  EXPECT_EQ(loads_of(Subroutine::Memstr, {push_value(1), push_value(2), push_value(3)}),
            behind_arg0(24));
  EXPECT_TRUE(loads_of(Subroutine::Bcopy, {push_value(1), push_value(4), push_value(2)}).empty());
}

TEST(RecordNeeds, APathIsOfADirectoryEntryAndAMount) {
  const auto needs_with = [](std::vector<std::uint32_t> pushes) {
    std::vector<std::uint32_t> text{load_builtin(Builtin::Arg0, 1), load_builtin(Builtin::Arg1, 2),
                                    load_builtin(Builtin::Execname, 3),
                                    load_builtin(Builtin::Timestamp, 4)};
    text.insert(text.end(), pushes.begin(), pushes.end());
    text.insert(text.end(), {call(Subroutine::DPath, 5), encode_return(5)});
    Difo made = difo(std::move(text));
    made.result = {.kind = ValueKind::String};
    return needs_of(made);
  };
  const RecordNeeds two = needs_with({push_value(1), push_value(2)});
  EXPECT_FALSE(two.obstacle);
  const RecordAddress dentry{Base::Argument, 0, 0}, mount{Base::Argument, 1, 0};
  EXPECT_EQ(two.paths, (std::vector<RecordPath>{{dentry, mount}}));
  EXPECT_TRUE(two.follows_arguments());
  EXPECT_TRUE(two.loads.empty());

  RecordNeeds one = needs_with({push_value(1)});
  EXPECT_FALSE(one.obstacle);
  EXPECT_EQ(one.loads, (std::vector{kernel_load(Base::Argument, 0, 0, 8),
                                    kernel_load(Base::Argument, 0, 8, 8)}));
  EXPECT_EQ(one.paths, (std::vector<RecordPath>{{{Base::Load, 1, 0}, {Base::Load, 0, 0}}}));

  EXPECT_TRUE(needs_with({push_value(3), push_value(2)}).obstacle) << "D's own memory";
  EXPECT_TRUE(needs_with({push_value(1), push_value(4)}).obstacle) << "a number";
  EXPECT_TRUE(needs_with({push_value(4)}).obstacle);
  EXPECT_FALSE(two.paths == one.paths);

  // Together with other looks their loads have other numbers.
  RecordNeeds all = needs_of(
      difo({load_builtin(Builtin::Arg5, 1), encode(Opcode::Ldx, 1, 0, 1), encode_return(1)}));
  all.add_looks(one);
  all.add_looks(two);
  all.add_looks(one);
  EXPECT_EQ(all.loads.size(), 3u);
  EXPECT_EQ(all.paths,
            (std::vector<RecordPath>{{{Base::Load, 2, 0}, {Base::Load, 1, 0}}, {dentry, mount}}));
}

TEST(RecordNeeds, AsManyNumbersAreSummedAsALoadSaysUpToABound) {
  // __sum32(arg0, 16, <r4>)
  const auto needs_with = [](std::vector<std::uint32_t> count, std::uint64_t stride = 16) {
    std::vector<std::uint32_t> text{load_builtin(Builtin::Arg0, 1),
                                    encode_indexed(Opcode::Setx, 0, 3)};
    text.insert(text.end(), count.begin(), count.end());
    text.insert(text.end(), {push_value(1), push_value(3), push_value(4),
                             call(Subroutine::Sum32, 5), encode_return(5)});
    Difo made = difo(std::move(text));
    made.integers = {stride, 3, 65};
    return needs_of(made);
  };
  const auto vectors = [](std::uint32_t count) {
    return kernel_load(Base::Argument, 0, 0, 16 * (count - 1) + 4);
  };
  const RecordNeeds constant = needs_with({encode_indexed(Opcode::Setx, 1, 4)});
  EXPECT_EQ(constant.loads, std::vector{vectors(3)});
  EXPECT_TRUE(constant.bounds.empty());

  const RecordNeeds loaded =
      needs_with({load_builtin(Builtin::Curthread, 2), encode(Opcode::Lduh, 2, 0, 4)});
  EXPECT_EQ(loaded.loads, (std::vector{kernel_load(Base::Task, 0, 0, 2), vectors(64)}));
  EXPECT_EQ(
      loaded.bounds,
      (std::vector<RecordCheck>{
          {{RecordValue::Source::Load, 0, 2}, RecordCheck::Relation::LessUnsigned, false, 65}}));
  RecordNeeds both;
  both.add(kernel_load(Base::Task, 0, 8, 8));
  both |= loaded;
  ASSERT_EQ(both.bounds.size(), 1u);
  EXPECT_EQ(both.bounds[0].value.number, 1);

  EXPECT_TRUE(needs_with({encode_indexed(Opcode::Setx, 2, 4)}).obstacle) << "more than a bound";
  EXPECT_TRUE(needs_with({load_builtin(Builtin::Arg1, 4)}).obstacle);
  EXPECT_TRUE(needs_with({encode_indexed(Opcode::Setx, 1, 4)}, 64).obstacle) << "too far apart";
}

TEST(RecordNeeds, NoStringAtAllIsNoMemory) {
  Difo next = difo({encode_indexed(Opcode::Setx, 0, 1),
                    encode_push(Opcode::Pushtr, TupleType::String, 0, 1),
                    encode_indexed(Opcode::Call, static_cast<unsigned>(Subroutine::Strlen), 2),
                    encode_return(2)});
  next.integers = {0};
  EXPECT_TRUE(is_deferred(next));
  next.integers = {1};
  EXPECT_EQ(needs_of(next).loads.size(), 1u) << "it will be a fault";
}

TEST(RecordNeeds, TheKernelsStackIsRecorded) {
  const RecordNeeds needs = needs_of(difo({}, ValueType{ValueKind::KernelStack, false, 160}));
  EXPECT_TRUE(needs.stack);
  EXPECT_FALSE(needs.obstacle);
  RecordNeeds both;
  EXPECT_FALSE(both.stack);
  both |= needs;
  EXPECT_TRUE(both.stack);
}

TEST(RecordNeeds, TheProcesssStacksAndDestructiveActionsWait) {
  EXPECT_FALSE(is_deferred(difo({}, ValueType{ValueKind::UserAddress, false, 16})));
  EXPECT_TRUE(needs_of(clause({action(ActionKind::Stop, {})})).obstacle);
  EXPECT_TRUE(needs_of(clause({action(ActionKind::Chill, {constant(1)})})).obstacle);
  EXPECT_TRUE(needs_of(clause({action(ActionKind::Tracemem, {constant(1)})})).obstacle);
  EXPECT_TRUE(needs_of(clause({action(ActionKind::Pcap, {constant(1), constant(1)})})).obstacle);
  EXPECT_FALSE(needs_of(clause({action(ActionKind::Exit, {constant(0)})})).obstacle);
}

TEST(RecordNeeds, ThePredicateCounts) {
  Clause guarded = clause({action(ActionKind::Trace, {constant(1)})});
  guarded.predicate = load_from(0xffff888000000000);
  EXPECT_TRUE(needs_of(guarded).obstacle);
}

/// if (r1 <branch> constant) true; r1 is what `load` leaves there.
Difo comparing(std::vector<std::uint32_t> load, Opcode unless, std::uint64_t with) {
  std::vector<std::uint32_t> text = std::move(load);
  const auto first = static_cast<unsigned>(text.size());
  text.insert(text.end(), {encode_indexed(Opcode::Setx, 0, 2), encode(Opcode::Cmp, 1, 2),
                           encode_branch(unless, first + 5), encode_indexed(Opcode::Setx, 1, 3),
                           encode_branch(Opcode::Ba, first + 6), encode(Opcode::Mov, 0, 0, 3),
                           encode_return(3)});
  Difo made = difo(std::move(text));
  made.integers = {with, 1, 32};
  return made;
}
RecordNeeds needs_of_predicate(const Difo& predicate) {
  Clause guarded = clause({action(ActionKind::Trace, {constant(1)})});
  guarded.predicate = predicate;
  return needs_of(guarded);
}
constexpr RecordValue kPid{RecordValue::Source::Pid, 0, 4, true};

TEST(RecordNeeds, TheTaskIsCheckedBeforeAnythingIsLookedAt) {
  const RecordNeeds needs =
      needs_of_predicate(comparing({load_builtin(Builtin::Pid, 1)}, Opcode::Bne, 42));
  EXPECT_EQ(needs.checks,
            std::vector{(RecordCheck{kPid, RecordCheck::Relation::Equal, false, 42})});
  EXPECT_TRUE(needs.later_checks.empty());
}

TEST(RecordNeeds, AnArgumentIsCheckedLater) {
  const RecordNeeds needs =
      needs_of_predicate(comparing({load_builtin(Builtin::Arg1, 1)}, Opcode::Ble, 4096));
  EXPECT_TRUE(needs.checks.empty());
  EXPECT_EQ(needs.later_checks,
            std::vector{(RecordCheck{
                {RecordValue::Source::Argument, 1}, RecordCheck::Relation::Less, true, 4097})});
  EXPECT_EQ(needs.predicate_arguments, 2u);
}

TEST(RecordNeeds, WhatTheTaskPointsAtIsCheckedLater) {
  const RecordNeeds needs = needs_of_predicate(comparing(
      {load_builtin(Builtin::Curthread, 1), encode(Opcode::Ldsh, 1, 0, 1)}, Opcode::Be, 3));
  EXPECT_TRUE(needs.checks.empty());
  EXPECT_EQ(needs.later_checks,
            std::vector{(RecordCheck{
                {RecordValue::Source::Load, 0, 2, true}, RecordCheck::Relation::Equal, true, 3})});
  EXPECT_EQ(needs.predicate_loads, 1u);
}

TEST(RecordNeeds, ANumberMayBeMaskedAndNarrowed) {
  const auto value_of = [](std::vector<std::uint32_t> load) {
    const auto checks = needs_of_predicate(comparing(std::move(load), Opcode::Be, 3)).later_checks;
    return checks.empty() ? RecordValue() : checks[0].value;
  };
  const auto arg0 = load_builtin(Builtin::Arg0, 1);
  const auto mask = encode_indexed(Opcode::Setx, 1, 4), by = encode_indexed(Opcode::Setx, 2, 4);
  const auto left = encode(Opcode::Sll, 1, 4, 1);
  RecordValue expected{RecordValue::Source::Argument, 0, 8, false, 1};
  EXPECT_EQ(value_of({arg0, mask, encode(Opcode::And, 1, 4, 1)}), expected);
  EXPECT_EQ(value_of({arg0, mask, encode(Opcode::And, 4, 1, 1)}), expected);
  expected = {RecordValue::Source::Argument, 0, 4, true};
  EXPECT_EQ(value_of({arg0, by, left, encode(Opcode::Sra, 1, 4, 1)}), expected);
  expected.is_signed = false;
  EXPECT_EQ(value_of({arg0, by, left, encode(Opcode::Srl, 1, 4, 1)}), expected);
  EXPECT_EQ(value_of({arg0, by, left}), RecordValue()) << "half of it is no number of the record";
  EXPECT_EQ(value_of({arg0, by, encode(Opcode::Srl, 1, 4, 1)}), RecordValue());
  EXPECT_EQ(value_of({arg0, by, encode(Opcode::Add, 1, 4, 1)}), RecordValue());
}

TEST(RecordNeeds, APredicateThatMayFaultIsNotJudgedByWhatComesAfterIt) {
  Difo predicate = comparing({load_builtin(Builtin::Arg0, 1), push_value(1),
                              call(Subroutine::Copyinstr, 5), load_builtin(Builtin::Pid, 1)},
                             Opcode::Bne, 42);
  EXPECT_TRUE(needs_of_predicate(predicate).checks.empty());
  EXPECT_TRUE(needs_of_predicate(predicate).later_checks.empty());
  predicate =
      comparing({load_builtin(Builtin::Errno, 5), load_builtin(Builtin::Pid, 1)}, Opcode::Bne, 42);
  EXPECT_TRUE(needs_of_predicate(predicate).later_checks.empty());
}

TEST(RecordNeeds, AnAddressThatOneWayAloneKnowsIsNotChecked) {
  // r2 is 7, whatever r5 may be: arg0[r2] == 42
  Difo predicate = comparing(
      {load_builtin(Builtin::Arg0, 1), encode_indexed(Opcode::Setx, 1, 5), encode(Opcode::Tst, 5),
       encode_branch(Opcode::Bne, 6), encode_indexed(Opcode::Setx, 3, 2),
       encode_branch(Opcode::Ba, 7), encode_indexed(Opcode::Setx, 4, 2),
       encode(Opcode::Add, 1, 2, 1), encode(Opcode::Ldub, 1, 0, 1)},
      Opcode::Bne, 42);
  predicate.integers.insert(predicate.integers.end(), {3, 7});
  const RecordNeeds needs = needs_of_predicate(predicate);
  EXPECT_EQ(needs.loads, std::vector{kernel_load(Base::Argument, 0, 0, 8)});
  EXPECT_TRUE(needs.later_checks.empty());
}

TEST(RecordNeeds, ANameIsCheckedIfStringsAreLongEnough) {
  Difo predicate = difo({load_builtin(Builtin::Execname, 1), encode_indexed(Opcode::Sets, 1, 2),
                         encode(Opcode::Scmp, 1, 2), encode_branch(Opcode::Bne, 6),
                         encode_indexed(Opcode::Setx, 0, 3), encode_return(3), encode_return(0)});
  predicate.integers = {1};
  predicate.strings += "cat";
  predicate.strings += '\0';
  Clause guarded = clause({action(ActionKind::Trace, {constant(1)})});
  guarded.predicate = predicate;
  ASSERT_EQ(record_needs(guarded, 16).checks.size(), 1u);
  EXPECT_EQ(record_needs(guarded, 16).checks[0].value.source, RecordValue::Source::Name);
  EXPECT_TRUE(record_needs(guarded, 15).checks.empty());
}

TEST(RecordNeeds, AValueIsItsOwnCheck) {
  const RecordNeeds needs =
      needs_of_predicate(difo({load_builtin(Builtin::Tid, 1), encode_return(1)}));
  EXPECT_EQ(needs.checks,
            std::vector{(RecordCheck{
                {RecordValue::Source::Tid, 0, 4, true}, RecordCheck::Relation::Equal, true, 0})});
}

TEST(RecordNeeds, AVariableOfDsOwnTellsTheGuestNothing) {
  const unsigned id = kFirstUserVariable + 1;
  // if (v == 0) return 0; return pid == 42
  Difo predicate = comparing({encode_indexed(Opcode::Ldgs, id, 1), encode(Opcode::Tst, 1),
                              encode_branch(Opcode::Be, 8), load_builtin(Builtin::Pid, 1)},
                             Opcode::Bne, 42);
  predicate.text[2] = encode_branch(Opcode::Be, 9);
  predicate.variables = {
      {static_cast<std::uint16_t>(id), VariableScope::Global, VariableKind::Scalar, kLong, "v"}};
  EXPECT_EQ(needs_of_predicate(predicate).checks,
            std::vector{(RecordCheck{kPid, RecordCheck::Relation::Equal, false, 42})});
}

TEST(RecordNeeds, OfTwoClausesOnlyCommonChecksRemain) {
  const auto pid = [](std::uint64_t with) {
    return needs_of_predicate(comparing({load_builtin(Builtin::Pid, 1)}, Opcode::Bne, with));
  };
  const auto arg = [](Builtin which) {
    return needs_of_predicate(comparing({load_builtin(which, 1)}, Opcode::Bne, 1));
  };
  RecordNeeds needs = pid(42);
  needs |= pid(42);
  EXPECT_EQ(needs.checks.size(), 1u);
  needs |= pid(43);
  EXPECT_TRUE(needs.checks.empty());
  needs = pid(42);
  needs |= needs_of(builtin(Builtin::Pid));
  EXPECT_TRUE(needs.checks.empty()) << "a clause without a predicate";
  needs = arg(Builtin::Arg0);
  needs |= arg(Builtin::Arg0);
  EXPECT_EQ(needs.later_checks.size(), 1u);
  needs |= arg(Builtin::Arg1);
  EXPECT_TRUE(needs.later_checks.empty());
}

TEST(RecordNeeds, ALaterCheckNeedsTheSameLooksOfBothClauses) {
  const auto with_loads = [](std::vector<RecordLoad> loads, std::size_t of_predicate) {
    RecordNeeds needs;
    needs.loads = std::move(loads);
    needs.predicate_loads = of_predicate;
    needs.later_checks = {{{RecordValue::Source::Argument, 0}}};
    return needs;
  };
  const RecordLoad a = kernel_load(Base::Task, 0, 8, 8), b = kernel_load(Base::Task, 0, 16, 8);
  RecordNeeds needs = with_loads({a, b}, 1);
  needs |= with_loads({a}, 1);
  EXPECT_EQ(needs.later_checks.size(), 1u);
  needs |= with_loads({b}, 1);
  EXPECT_TRUE(needs.later_checks.empty());
  needs = with_loads({a}, 1);
  needs |= with_loads({a}, 0);
  EXPECT_TRUE(needs.later_checks.empty());
}

TEST(RecordNeeds, TheObstacleNamesTheExpression) {
  Difo named = load_from(0xffff888000000000);
  named.source.parts = {{0, 7, "curthread->mm", ""}};
  EXPECT_EQ(needs_of(named).obstacle, "line 7: curthread->mm looks at the guest's memory");
  named.source.parts = {{0, 7, "curthread->mm", "", 12}};
  EXPECT_EQ(needs_of(named).obstacle,
            "line 7, column 12: curthread->mm looks at the guest's memory");
  // The first instruction is the library's, and belongs to what comes next.
  named.source.parts = {{0, 0, "", ""}, {2, 8, "curthread->mm == 5", "", 3}, {4, 9, "pid", ""}};
  EXPECT_EQ(needs_of(named).obstacle,
            "line 8, column 3: curthread->mm == 5 looks at the guest's memory");
  named.source.parts = {{0, 5, "execname", ""}, {1, 0, "", ""}};
  EXPECT_EQ(needs_of(named).obstacle, "line 5: execname looks at the guest's memory");
  named.source.parts = {{0, 0, "the library's", ""}};
  EXPECT_EQ(needs_of(named).obstacle, "an expression looks at the guest's memory");
}

}  // namespace
}  // namespace ringside::dif
