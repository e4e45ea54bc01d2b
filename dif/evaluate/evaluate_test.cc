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
        make_handle(static_cast<Arena>(200), 0), make_handle(Arena::Globals, 0),
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
}

TEST_F(EvaluatorTest, ArgsBeyondTheTenthAreIllegal) {
  Difo object =
      difo({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Ldga, 0, 1, 2), encode_return(2)});
  guest_.arguments[9] = 5;
  object.integers = {9};
  EXPECT_EQ(run(object), 5u);
  object.integers = {10};
  EXPECT_EQ(run(object).error().kind, FaultKind::IllegalOperation);
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
  EXPECT_EQ(none.variable(ContextVariable::Curthread), 0u);
  EXPECT_FALSE(none.is_on_vcpu());
  EXPECT_FALSE(none.machine_register(RegisterSet::OfProcess, 0));
  EXPECT_EQ(none.lock(LockFact::Owner, GuestVirt(16)).error().address, 16u);
  EXPECT_EQ(std::string_view(name.data(), none.execname(name).value()), "ringside");
  EXPECT_EQ(load<std::uint64_t>(none.kernel(), GuestVirt(16)).error().address, 16u);
}

}  // namespace
}  // namespace ringside::dif
