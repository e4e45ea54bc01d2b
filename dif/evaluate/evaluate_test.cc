#include "dif/evaluate/evaluate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <tuple>

#include "dif/testing/fake_guest.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"

namespace ringside::dif {
namespace {

using namespace testing;

constexpr std::uint64_t kMin = 0x8000'0000'0000'0000;
constexpr std::uint64_t kAddress = 0xffff'8880'0000'1000;

class EvaluatorTest : public ::testing::Test {
 protected:
  /// Runs `op` on constants in r1 and r2, result in r3.
  Result<std::uint64_t, Fault> binary(Opcode op, std::uint64_t a, std::uint64_t b) {
    Difo object = difo({encode_indexed(Opcode::Setx, 0, 1), encode_indexed(Opcode::Setx, 1, 2),
                        encode(op, 1, 2, 3), encode_return(3)});
    object.integers = {a, b};
    return run(object);
  }
  /// 1 when the branch is taken after `compare` of the constants.
  bool branches(Opcode compare, Opcode branch, std::uint64_t a, std::uint64_t b) {
    const unsigned r2 = compare == Opcode::Tst ? 0 : 2;
    Difo object = difo({encode_indexed(Opcode::Setx, 0, 1), encode_indexed(Opcode::Setx, 1, 2),
                        encode(compare, 1, r2), encode_indexed(Opcode::Setx, 2, 3),
                        encode_branch(branch, 6), encode(Opcode::Mov, 0, 0, 3), encode_return(3)});
    object.integers = {a, b, 1};
    return run(object).value() == 1;
  }
  Result<std::uint64_t, Fault> load(Opcode op, std::uint64_t at) {
    Difo object = difo({encode_indexed(Opcode::Setx, 0, 1), encode(op, 1, 0, 2), encode_return(2)});
    object.integers = {at};
    return run(object);
  }
  /// Compiled and interpreted, which must not differ.
  Result<std::uint64_t, Fault> run(const Difo& object) {
    EXPECT_TRUE(verify_difo(object)) << verify_difo(object).error().message;
    evaluator_.begin_firing(probe_, record_, guest_);
    evaluator_.begin_clause(EcbId{1});
    const auto interpreted = evaluator_.evaluate(object);
    const auto compiled = run_compiled(object);
    EXPECT_EQ(interpreted.value_or(0), compiled.value_or(0));
    const Fault none;
    const Fault& wanted = interpreted ? none : interpreted.error();
    const Fault& got = compiled ? none : compiled.error();
    EXPECT_EQ(std::tie(wanted.kind, wanted.pc, wanted.address),
              std::tie(got.kind, got.pc, got.address));
    return interpreted;
  }
  Result<std::uint64_t, Fault> run_compiled(const Difo& object) {
    const Program whole = program({clause({action(ActionKind::Evaluate, {object})})});
    SharedState shared(whole, {}, 1);
    Evaluator evaluator(whole, {}, shared, speculations_, 0);
    const Difo& compiled = whole.clauses[0].actions[0].arguments[0];
    EXPECT_NE(shared.code.find(compiled), nullptr);
    evaluator.begin_firing(probe_, record_, guest_);
    evaluator.begin_clause(EcbId{1});
    return evaluator.evaluate(compiled);
  }

  FakeGuest guest_;
  FireRecord record_{3, 1000, 2000};
  ProbeIdentity probe_{ProbeId{42}, {}};
  const Program nothing_ = program({});
  SharedState shared_{nothing_, {}, 1};
  SpeculationIds speculations_;
  Evaluator evaluator_{nothing_, {}, shared_, speculations_, 0};
};

TEST_F(EvaluatorTest, ArithmeticIsSixtyFourBitAndWraps) {
  EXPECT_EQ(binary(Opcode::Add, UINT64_MAX, 2), 1u);
  EXPECT_EQ(binary(Opcode::Sub, 1, 2), UINT64_MAX);
  EXPECT_EQ(binary(Opcode::Mul, kMin, 2), 0u);
  EXPECT_EQ(binary(Opcode::Or, 5, 2), 7u);
  EXPECT_EQ(binary(Opcode::Xor, 5, 1), 4u);
  EXPECT_EQ(binary(Opcode::And, 6, 3), 2u);
}

TEST_F(EvaluatorTest, ShiftsUseTheCountModulo64) {
  EXPECT_EQ(binary(Opcode::Sll, 1, 65), 2u);
  EXPECT_EQ(binary(Opcode::Srl, kMin, 63), 1u);
  EXPECT_EQ(binary(Opcode::Sra, kMin, 63), UINT64_MAX);
  EXPECT_EQ(binary(Opcode::Sra, kMin, 64), kMin);
}

TEST_F(EvaluatorTest, DivisionIsDefinedForEveryInput) {
  EXPECT_EQ(binary(Opcode::Sdiv, kMin, UINT64_MAX), kMin);
  EXPECT_EQ(binary(Opcode::Srem, kMin, UINT64_MAX), 0u);
  EXPECT_EQ(binary(Opcode::Sdiv, static_cast<std::uint64_t>(-7), 2),
            static_cast<std::uint64_t>(-3));
  EXPECT_EQ(binary(Opcode::Srem, static_cast<std::uint64_t>(-7), 2),
            static_cast<std::uint64_t>(-1));
  EXPECT_EQ(binary(Opcode::Udiv, UINT64_MAX, 2), UINT64_MAX / 2);
  EXPECT_EQ(binary(Opcode::Urem, 7, 4), 3u);
}

TEST_F(EvaluatorTest, DivisionByZeroIsAFaultAtItsInstruction) {
  for (const Opcode op : {Opcode::Sdiv, Opcode::Udiv, Opcode::Srem, Opcode::Urem}) {
    const auto done = binary(op, 1, 0);

    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, FaultKind::DivideByZero);
    EXPECT_EQ(done.error().pc, 8u) << "the third instruction";
  }
}

TEST_F(EvaluatorTest, SignedBranchesOrderAcrossOverflow) {
  EXPECT_TRUE(branches(Opcode::Cmp, Opcode::Bl, kMin, 1)) << "MIN - 1 overflows";
  EXPECT_TRUE(branches(Opcode::Cmp, Opcode::Bg, 1, kMin));
  EXPECT_FALSE(branches(Opcode::Cmp, Opcode::Bge, kMin, 1));
  EXPECT_TRUE(branches(Opcode::Cmp, Opcode::Ble, 4, 4));
  EXPECT_TRUE(branches(Opcode::Cmp, Opcode::Bge, 4, 4));
  EXPECT_FALSE(branches(Opcode::Cmp, Opcode::Bg, 4, 4));
}

TEST_F(EvaluatorTest, UnsignedBranchesOrderByMagnitude) {
  EXPECT_TRUE(branches(Opcode::Cmp, Opcode::Bgu, kMin, 1));
  EXPECT_TRUE(branches(Opcode::Cmp, Opcode::Blu, 1, kMin));
  EXPECT_TRUE(branches(Opcode::Cmp, Opcode::Bgeu, 4, 4));
  EXPECT_TRUE(branches(Opcode::Cmp, Opcode::Bleu, 4, 4));
  EXPECT_FALSE(branches(Opcode::Cmp, Opcode::Bleu, 5, 4));
}

TEST_F(EvaluatorTest, TestComparesAgainstZero) {
  EXPECT_TRUE(branches(Opcode::Tst, Opcode::Be, 0, 9));
  EXPECT_TRUE(branches(Opcode::Tst, Opcode::Bne, 9, 9));
  EXPECT_TRUE(branches(Opcode::Tst, Opcode::Bl, kMin, 9));
  EXPECT_TRUE(branches(Opcode::Tst, Opcode::Ba, 9, 9));
}

TEST_F(EvaluatorTest, LoadsExtendByTheirSign) {
  guest_.kernel_memory.put_value(kAddress, std::uint64_t{0xfffe'fdfc'fbfa'f9f8});

  EXPECT_EQ(load(Opcode::Ldub, kAddress), 0xf8u);
  EXPECT_EQ(load(Opcode::Ldsb, kAddress), static_cast<std::uint64_t>(-8));
  EXPECT_EQ(load(Opcode::Lduh, kAddress), 0xf9f8u);
  EXPECT_EQ(load(Opcode::Ldsh, kAddress), static_cast<std::uint64_t>(std::int16_t(0xf9f8)));
  EXPECT_EQ(load(Opcode::Lduw, kAddress), 0xfbfa'f9f8u);
  EXPECT_EQ(load(Opcode::Ldsw, kAddress), 0xffff'ffff'fbfa'f9f8u);
  EXPECT_EQ(load(Opcode::Ldx, kAddress), 0xfffe'fdfc'fbfa'f9f8u);
}

TEST_F(EvaluatorTest, FaultsAtTheFirstUnmappedByte) {
  guest_.kernel_memory.put_value(kAddress, std::uint64_t{1});

  const auto done = load(Opcode::Ldx, kAddress + 4);

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, FaultKind::BadAddress);
  EXPECT_EQ(done.error().address, kAddress + 8);
  EXPECT_EQ(done.error().pc, 4u);
}

TEST_F(EvaluatorTest, UserLoadsSeeUserMemoryOnly) {
  guest_.kernel_memory.put_value(kAddress, std::uint32_t{7});
  guest_.user_memory.put_value(0x1000, std::uint32_t{8});

  EXPECT_EQ(load(Opcode::Ulduw, 0x1000), 8u);
  EXPECT_FALSE(load(Opcode::Ulduw, kAddress));
  EXPECT_FALSE(load(Opcode::Lduw, 0x1000));
}

TEST_F(EvaluatorTest, RestrictedLoadsStayInsideDState) {
  guest_.kernel_memory.put_value(kAddress, std::uint64_t{7});

  const auto done = load(Opcode::Rldx, kAddress);

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, FaultKind::KernelPrivilege);
}

TEST_F(EvaluatorTest, ForgedHandlesReachNoHostMemory) {
  for (const std::uint64_t forged :
       {make_handle(Arena::Scratch, 1 << 30), make_handle(Arena::Constants, 1),
        make_handle(static_cast<Arena>(200), 0), make_handle(static_cast<Arena>(kArenas), 0),
        make_handle(Arena::Globals, 0),
        make_handle(Arena::Scratch, (std::uint64_t{1} << 48) - 1)}) {
    const auto done = load(Opcode::Ldx, forged);
    ASSERT_FALSE(done) << std::hex << forged;
    EXPECT_EQ(done.error().kind, FaultKind::BadAddress);
  }
  EXPECT_FALSE(load(Opcode::Ldx, make_handle(Arena::Scratch, EngineOptions{}.scratch_size - 4)))
      << "half of the load lies past the arena";
}

TEST_F(EvaluatorTest, StoresReachScratchOnlyAndMustBeAligned) {
  const auto store_at = [](unsigned displacement) {
    Difo object = difo({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Allocs, 1, 0, 2),
                        encode_indexed(Opcode::Setx, 1, 3), encode(Opcode::Add, 2, 3, 2),
                        encode_indexed(Opcode::Setx, 2, 4), encode(Opcode::Stw, 4, 0, 2),
                        encode(Opcode::Lduw, 2, 0, 5), encode_return(5)});
    object.integers = {16, displacement, 0x1'2345'6789};
    return object;
  };
  EXPECT_EQ(run(store_at(4)), 0x2345'6789u);
  EXPECT_EQ(run(store_at(2)).error().kind, FaultKind::BadAlignment);

  Difo to_guest =
      difo({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Stx, 0, 0, 1), encode_return(0)});
  to_guest.integers = {kAddress};
  EXPECT_EQ(run(to_guest).error().kind, FaultKind::BadAddress);
}

TEST_F(EvaluatorTest, ScratchThatRunsOutIsAFault) {
  Difo object =
      difo({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Allocs, 1, 0, 2), encode_return(2)});
  object.integers = {EngineOptions{}.scratch_size + 1};
  EXPECT_EQ(run(object).error().kind, FaultKind::NoScratch);
  object.integers = {UINT64_MAX};
  EXPECT_EQ(run(object).error().kind, FaultKind::NoScratch);
}

TEST_F(EvaluatorTest, AllocatedScratchIsZeroAlsoInTheNextClause) {
  Difo object =
      difo({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Allocs, 1, 0, 2),
            encode(Opcode::Ldx, 2, 0, 3), encode(Opcode::Stx, 1, 0, 2), encode_return(3)});
  object.integers = {64};
  EXPECT_EQ(run(object), 0u);
  EXPECT_EQ(run(object), 0u);
}

TEST_F(EvaluatorTest, CopysMovesGuestBytesToScratch) {
  guest_.kernel_memory.put_value(kAddress, std::uint64_t{0x1122'3344'5566'7788});
  Difo object = difo({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Allocs, 1, 0, 2),
                      encode_indexed(Opcode::Setx, 1, 3), encode(Opcode::Copys, 3, 1, 2),
                      encode(Opcode::Ldx, 2, 0, 4), encode_return(4)});
  object.integers = {8, kAddress};
  EXPECT_EQ(run(object), 0x1122'3344'5566'7788u);
}

TEST_F(EvaluatorTest, StringsCompareByTextWhereverTheyLie) {
  guest_.kernel_memory.put_text(kAddress, "workload");
  const auto compare = [&](std::uint64_t left, Opcode branch) {
    Difo object = difo({encode_indexed(Opcode::Setx, 0, 1), encode_indexed(Opcode::Sets, 1, 2),
                        encode(Opcode::Scmp, 1, 2), encode_indexed(Opcode::Setx, 1, 3),
                        encode_branch(branch, 6), encode(Opcode::Mov, 0, 0, 3), encode_return(3)});
    object.integers = {left, 1};
    object.strings += std::string("workload") + '\0';
    const Program whole = program({clause({action(ActionKind::Evaluate, {object})})});
    SharedState shared(whole, {}, 1);
    Evaluator evaluator(whole, {}, shared, speculations_, 0);
    evaluator.begin_firing(probe_, record_, guest_);
    evaluator.begin_clause(EcbId{1});
    return evaluator.evaluate(whole.clauses[0].actions[0].arguments[0]);
  };
  EXPECT_EQ(compare(kAddress, Opcode::Be), 1u);
  EXPECT_EQ(compare(kAddress, Opcode::Bl), 0u) << "equal is not less";
  EXPECT_EQ(compare(kAddress, Opcode::Bg), 0u) << "nor greater";
  EXPECT_EQ(compare(kAddress + 1, Opcode::Bl), 1u) << "orkload sorts first";
  EXPECT_EQ(compare(kAddress + 1, Opcode::Be), 0u);
  EXPECT_EQ(compare(0, Opcode::Bg), 0u);
  EXPECT_EQ(compare(0, Opcode::Bl), 1u) << "null compares as empty";
  EXPECT_EQ(compare(0x1234, Opcode::Be).error().kind, FaultKind::BadAddress);
}

TEST_F(EvaluatorTest, TheNinthTupleValueOverflows) {
  std::vector<std::uint32_t> text(9, encode_push(Opcode::Pushtv, TupleType::Value, 0, 1));
  text.push_back(encode_return(0));

  const auto done = run(difo(text));

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, FaultKind::TupleOverflow);
  EXPECT_EQ(done.error().pc, 32u);
  text.erase(text.begin());
  EXPECT_TRUE(run(difo(text))) << "eight fit";
  text.insert(text.begin(),
              {encode(Opcode::Popts),  // of none
               encode_push(Opcode::Pushtv, TupleType::Value, 0, 1), encode(Opcode::Popts)});
  EXPECT_TRUE(run(difo(text)));
  text.insert(text.begin(),
              {encode_push(Opcode::Pushtv, TupleType::Value, 0, 1),
               encode_push(Opcode::Pushtv, TupleType::Value, 0, 1), encode(Opcode::Flushts)});
  EXPECT_TRUE(run(difo(text)));
}

TEST_F(EvaluatorTest, NothingIsPushedWhoseSizeIsNegative) {
  const auto push = [this](std::uint64_t size, Opcode op) {
    Difo object = difo({encode_indexed(Opcode::Setx, 0, 1), encode_push(op, TupleType::Value, 1, 2),
                        encode_return(0)});
    object.integers = {size};
    return run(object);
  };
  EXPECT_TRUE(push(INT64_MAX, Opcode::Pushtr));
  EXPECT_EQ(push(kMin, Opcode::Pushtr).error().kind, FaultKind::IllegalOperation);
  EXPECT_TRUE(push(kMin, Opcode::Pushtv)) << "a number has none";
}

TEST_F(EvaluatorTest, BuiltInsComeFromTheFiring) {
  guest_.set(ContextVariable::Pid, 0xffff'ffff);  // as an int: -1
  guest_.set(ContextVariable::Curthread, kAddress);
  guest_.arguments[2] = 77;

  EXPECT_EQ(run(builtin(Builtin::Timestamp)), 1000u);
  EXPECT_EQ(run(builtin(Builtin::Walltimestamp)), 2000u);
  EXPECT_EQ(run(builtin(Builtin::Cpu)), 3u);
  EXPECT_EQ(run(builtin(Builtin::Id)), 42u);
  EXPECT_EQ(run(builtin(Builtin::Epid)), 1u);
  EXPECT_EQ(run(builtin(Builtin::Pid)), UINT64_MAX);
  EXPECT_EQ(run(builtin(Builtin::Curthread)), kAddress);
  EXPECT_EQ(run(builtin(Builtin::Arg2)), 77u);
  EXPECT_EQ(run(builtin(Builtin::Vmid)), 0u) << "of one machine";
  EXPECT_EQ(run(builtin(Builtin::Vmpid)), 0u);
}

TEST_F(EvaluatorTest, ABuiltInIsSignedAsDTypesIt) {
  for (unsigned n = 0; n < kContextVariables; ++n) {
    guest_.set(static_cast<ContextVariable>(n), 0x1'8000'0000 + n);
  }
  const auto of = [](ContextVariable which) {
    return 0x8000'0000 + static_cast<std::uint64_t>(which);
  };
  constexpr std::uint64_t kSign = 0xffff'ffff'0000'0000, kAbove = 0x1'0000'0000;
  EXPECT_EQ(run(builtin(Builtin::Tid)), kSign | of(ContextVariable::Tid));
  EXPECT_EQ(run(builtin(Builtin::Ppid)), kSign | of(ContextVariable::Ppid));
  EXPECT_EQ(run(builtin(Builtin::Errno)), kSign | of(ContextVariable::Errno));
  EXPECT_EQ(run(builtin(Builtin::Uid)), of(ContextVariable::Uid));
  EXPECT_EQ(run(builtin(Builtin::Gid)), of(ContextVariable::Gid));
  EXPECT_EQ(run(builtin(Builtin::Ipl)), of(ContextVariable::Ipl));
  EXPECT_EQ(run(builtin(Builtin::Stackdepth)), of(ContextVariable::Stackdepth));
  EXPECT_EQ(run(builtin(Builtin::Ustackdepth)), of(ContextVariable::Ustackdepth));
  EXPECT_EQ(run(builtin(Builtin::Caller)), kAbove | of(ContextVariable::Caller));
  EXPECT_EQ(run(builtin(Builtin::Ucaller)), kAbove | of(ContextVariable::Ucaller));
  EXPECT_EQ(run(builtin(Builtin::Vtimestamp)), kAbove | of(ContextVariable::Vtimestamp));
}

TEST_F(EvaluatorTest, NamesAreThoseOfTheProbeAndItsMachine) {
  probe_ = {ProbeId{42}, {10, 20, 30, 40, 50}, -1, 7};
  std::vector<std::uint64_t> names;
  for (const Builtin which : {Builtin::Probeprov, Builtin::Probemod, Builtin::Probefunc,
                              Builtin::Probename, Builtin::Vmname}) {
    names.push_back(run(builtin(which, kString)).value() - make_handle(Arena::Names, 0));
  }
  EXPECT_EQ(names, (std::vector<std::uint64_t>{10, 20, 30, 40, 50}));
  EXPECT_EQ(run(builtin(Builtin::Vmid)), UINT64_MAX);
  EXPECT_EQ(run(builtin(Builtin::Vmpid)), 7u);
}

TEST_F(EvaluatorTest, AnExecnameIsCutBeforeItsNul) {
  guest_.command = std::string(100, 'n');
  evaluator_.begin_firing(probe_, record_, guest_);
  const auto at = evaluator_.evaluate(builtin(Builtin::Execname, kString));
  EXPECT_EQ(evaluator_.memory().string(*at, 256), std::string(63, 'n'));
}

TEST_F(EvaluatorTest, SelfBelongsToAThreadOrToTheVcpuThatIsIdle) {
  const auto owner = [this](std::uint64_t tid, std::uint64_t born, std::uint32_t vcpu,
                            std::int32_t machine) {
    guest_.set(ContextVariable::Tid, tid);
    guest_.set(ContextVariable::Born, born);
    probe_.machine_number = machine;
    record_.vcpu = vcpu;
    evaluator_.begin_firing(probe_, record_, guest_);
    const Owner found = evaluator_.builtins().owner().value();
    return std::pair(found.thread, found.born);
  };
  EXPECT_EQ(owner(5, 9, 0, 0), owner(5, 9, 1, 0)) << "a thread moves";
  EXPECT_NE(owner(5, 9, 0, 0), owner(6, 9, 0, 0));
  EXPECT_NE(owner(5, 9, 0, 0), owner(5, 10, 0, 0)) << "a later thread of that number";
  EXPECT_NE(owner(5, 9, 0, 0), owner(5, 9, 0, 1)) << "another machine's";
  EXPECT_NE(owner(5, 9, 0, 1), owner(5, 9, 0, 2));
  EXPECT_EQ(owner(0, 1, 2, 0), owner(0, 3, 2, 0));
  EXPECT_NE(owner(0, 0, 2, 0), owner(0, 0, 3, 0)) << "each vCPU has an idle task";
  EXPECT_NE(owner(0, 0, 2, 0), owner(0, 0, 2, 1));
  EXPECT_NE(owner(0, 0, 5, 0), owner(5, 0, 0, 0));
}

TEST_F(EvaluatorTest, ArgsBeyondTheTenthAreIllegal) {
  Difo object =
      difo({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Ldga, 0, 1, 2), encode_return(2)});
  guest_.arguments[9] = 5;
  object.integers = {9};
  EXPECT_EQ(run(object), 5u);
  object.integers = {10};
  EXPECT_EQ(run(object).error().kind, FaultKind::IllegalOperation);
  guest_.arguments = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  evaluator_.begin_firing(probe_, record_, guest_);
  for (unsigned n = 0; n < 20; ++n) {
    EXPECT_EQ(evaluator_.builtins().argument(n % 10), 10u + n % 10) << "each is kept by itself";
  }
}

TEST_F(EvaluatorTest, RegistersAreTheContextsByTheirNumbers) {
  guest_.registers = {{{RegisterSet::AtProbe, 17}, 0x1234}, {{RegisterSet::OfProcess, 27}, 7}};
  const auto load = [&](std::uint8_t array, std::uint64_t number) {
    Difo object = difo(
        {encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Ldga, array, 1, 2), encode_return(2)});
    object.integers = {number};
    return run(object);
  };
  EXPECT_EQ(load(kRegsArray, 17), 0x1234u);
  EXPECT_EQ(load(kUregsArray, 27), 7u);
  EXPECT_EQ(load(kUregsArray, 17).error().kind, FaultKind::IllegalOperation);
  EXPECT_EQ(load(kRegsArray, UINT64_MAX).error().kind, FaultKind::IllegalOperation);
}

TEST_F(EvaluatorTest, AThreadHasItsName) {
  EXPECT_EQ(run(builtin(Builtin::Threadname, kString)).value(),
            run(builtin(Builtin::Execname, kString)).value());
}

TEST_F(EvaluatorTest, AFiringAsksForEachVariableOnce) {
  evaluator_.begin_firing(probe_, record_, guest_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(evaluator_.evaluate(builtin(Builtin::Execname, kString)));
    ASSERT_TRUE(evaluator_.evaluate(builtin(Builtin::Pid)));
  }
  EXPECT_EQ(guest_.execname_reads, 1u);
  EXPECT_EQ(guest_.variable_reads, 1u);
}

TEST(NoGuest, ShowsTheTracerItselfAndFaultsOnReads) {
  const GuestContext& none = no_guest_context();
  std::array<char, 16> name;

  EXPECT_EQ(none.variable(ContextVariable::Pid), static_cast<std::uint64_t>(::getpid()));
  EXPECT_EQ(none.variable(ContextVariable::Tid), static_cast<std::uint64_t>(::getpid()));
  EXPECT_EQ(none.variable(ContextVariable::Ppid), static_cast<std::uint64_t>(::getppid()));
  EXPECT_EQ(none.variable(ContextVariable::Uid), ::getuid());
  EXPECT_EQ(none.variable(ContextVariable::Gid), ::getgid());
  EXPECT_EQ(none.variable(ContextVariable::Curthread), 0u);
  EXPECT_EQ(none.variable(ContextVariable::Born), 0u);
  EXPECT_EQ(none.argument(3), 0u);
  EXPECT_FALSE(none.is_on_vcpu());
  EXPECT_EQ(none.address_space(), 0u);
  EXPECT_EQ(none.kernel_stack({}), 0u);
  EXPECT_EQ(none.user_stack({}), 0u);
  EXPECT_EQ(none.progeny_of(::getpid()), false);
  const auto is_illegal = [](const Fault& fault) {
    return fault.kind == FaultKind::IllegalOperation && fault.pc == 0 && fault.address == 0;
  };
  EXPECT_TRUE(is_illegal(none.machine_register(RegisterSet::OfProcess, 0).error()));
  EXPECT_TRUE(is_illegal(none.path(GuestVirt(1), GuestVirt(2), {}).error()));
  EXPECT_TRUE(is_illegal(none.perform(ActionKind::Stop, 1).error()));
  EXPECT_TRUE(is_illegal(none.keep_still().error()));
  for (const Fault& fault : {none.lock(LockFact::Owner, GuestVirt(16)).error(),
                             none.write_user(GuestVirt(16), {}).error()}) {
    EXPECT_EQ(fault.kind, FaultKind::BadAddress);
    EXPECT_EQ(fault.pc, 0u);
    EXPECT_EQ(fault.address, 16u);
  }
  EXPECT_EQ(none.lock(LockFact::Owner, GuestVirt(16)).error().address, 16u);
  EXPECT_EQ(std::string_view(name.data(), none.execname(name).value()), "ringside");
  EXPECT_EQ(none.execname(std::span(name).first(4)), 4u);
  EXPECT_TRUE(none.kernel().read(GuestVirt(16), {})) << "nothing can be read";
  EXPECT_EQ(load<std::uint64_t>(none.kernel(), GuestVirt(16)).error().address, 16u);
}

}  // namespace
}  // namespace ringside::dif
