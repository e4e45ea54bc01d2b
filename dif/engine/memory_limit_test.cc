// Limits on the memory that a saved program may ask for: read, verified and fired in little address
// space (ulimit -v), a hostile one ends in an error or in drops and faults, never for want of it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "dif/dof/dof.h"
#include "dif/engine/engine.h"
#include "dif/evaluate/variables.h"
#include "dif/program/aggregate_function.h"
#include "dif/testing/fake_guest.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "vmm/base/sanitized.h"

namespace ringside::dif {
namespace {

using namespace testing;

constexpr std::uint64_t kRoom = 512 << 20;  // above what the test program itself has
constexpr unsigned kEngineVcpus = 4;

void limit_address_space() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + kRoom;
  const rlimit limit{most, most};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) std::abort();
}

/// As `ringside run` does it: "ran", or the error.
std::string outcome(std::span<const std::byte> dof, const EngineOptions& options) {
  auto program = read_dof(dof);
  if (!program) return program.error().message;
  auto verified = verify_program(std::move(*program));
  if (!verified) return verified.error().message;
  const auto fits = check_storage(verified->program(), options.string_size);
  if (!fits) return fits.error().message;
  const std::size_t clauses = verified->program().clauses.size();
  Engine engine(std::move(*verified), options, kEngineVcpus);
  for (std::uint32_t i = 0; i < clauses; ++i) engine.enable(i, ProbeId{1}, {"a", "b", "c", "d"});
  const FakeGuest guest;
  for (std::uint64_t i = 0; i < 3; ++i) engine.fire(ProbeId{1}, {0, i, 0}, guest);
  engine.take_quiescent();
  return "ran";
}

class LittleMemory : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef RINGSIDE_SANITIZED
    GTEST_SKIP() << "AddressSanitizer's shadow needs all the address space";
#endif
  }

  /// In a process of its own, whose address space is limited.
  static void expect(const std::string& wanted, const Program& program,
                     const EngineOptions& options = {}) {
    const auto dof = write_dof(program);
    EXPECT_EXIT(
        {
          limit_address_space();
          const std::string came = outcome(dof, options);
          std::fputs(came.c_str(), stderr);
          ::_exit(came.find('\n') == came.npos ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), wanted);
  }
};

Difo keeping(unsigned variables, const ValueType& type, VariableScope scope) {
  Difo object = difo({encode_return(0)});
  for (unsigned i = 0; i < variables; ++i) {
    const auto id = static_cast<std::uint16_t>(kFirstUserVariable + i);
    object.variables.push_back({id, scope, VariableKind::Scalar, type, "v"});
  }
  return object;
}

Program program_evaluating(Difo object) {
  return program({clause({action(ActionKind::Evaluate, {std::move(object)})})});
}

TEST_F(LittleMemory, KeysOfFourGibibytes) {
  for (const ValueKind kind : {ValueKind::Integer, ValueKind::Bytes, ValueKind::String,
                               ValueKind::KernelStack, ValueKind::UserSymbol}) {
    Program asking = program_evaluating(constant(1));
    asking.aggregations = {{"a", AggregateFunction::Count, {{kind, false, 0xffff'fff8}}}};
    expect(kind == ValueKind::Bytes ? "a key is longer" : "a key of @a cannot have 4294967288",
           asking);
  }
}

TEST_F(LittleMemory, AsManyVariablesAsThereAreIds) {
  constexpr unsigned kIds = 0x10000 - kFirstUserVariable;
  for (const VariableScope scope : {VariableScope::Global, VariableScope::Clause}) {
    const ValueType large{ValueKind::Bytes, false, 16 << 10};
    expect("variables take 1[0-9]* bytes", program_evaluating(keeping(kIds, large, scope)));
    const Program strings = program_evaluating(keeping(kIds, kString, scope));
    expect("ran", strings);
    expect("variables take 4[0-9]* bytes where strings have 65536", strings,
           {.string_size = 64 << 10});
  }
  expect("ran", program_evaluating(keeping(kIds, kString, VariableScope::Thread)),
         {.string_size = 64 << 10});
}

TEST_F(LittleMemory, OptionsOfATebibyte) {
  constexpr std::size_t kHuge = std::size_t{1} << 40;
  const Program tracing = program({clause({action(ActionKind::Trace, {constant(1)})})});
  expect("ran", tracing,
         {.buffer_size = kHuge,
          .aggregation_size = kHuge,
          .dynamic_size = kHuge,
          .string_size = 64 << 10,
          .scratch_size = 64 << 20,
          .speculation_size = kHuge,
          .speculations = 1 << 20});
}

TEST_F(LittleMemory, RecordsOfGibibytes) {
  Difo large = constant(1);
  large.result = {ValueKind::Bytes, false, 1 << 20};
  const auto recording = [&](std::size_t values) {
    return program({clause({action(ActionKind::Trace, {large}),
                            action(ActionKind::Printf, std::vector<Difo>(values, large))})});
  };
  expect("records more than fits", recording(4000));
  expect("ran", recording(1000), {.buffer_size = std::size_t{1} << 40});
}

TEST_F(LittleMemory, FormatsThatAreWide) {
  Program printing = program({clause({action(ActionKind::Printf, {})})});
  Action& print = printing.clauses[0].actions[0];
  for (int i = 0; i < 1000; ++i) {
    print.format += "%65535d";
    print.arguments.push_back(constant(1));
  }
  expect("wider than", printing);
}

TEST_F(LittleMemory, MoreClausesThanAnybodyWrites) {
  Program many;
  many.clauses.resize(kMostClauses + 1);
  expect("more than 16384 clauses", many);
}

TEST_F(LittleMemory, ScratchWithoutEnd) {
  for (const Subroutine which : {Subroutine::Alloca, Subroutine::Copyin}) {
    Difo asking =
        difo({encode_indexed(Opcode::Setx, 0, 1), encode(Opcode::Pushtv, 0, 0, 1),
              encode(Opcode::Pushtv, 0, 0, 1),
              encode_indexed(Opcode::Call, static_cast<unsigned>(which), 1), encode_return(1)});
    asking.integers = {std::uint64_t{1} << 62};
    expect("ran", program_evaluating(asking));
  }
}

/// Numbers all over a program with something of everything become large ones.
TEST_F(LittleMemory, NumbersThatWereMadeLarge) {
  Program base = program({clause({action(ActionKind::Trace, {constant("text")}),
                                  action(ActionKind::Tracemem, {constant(1)}),
                                  aggregate(0, {constant(1), constant("key"), constant(7)})}),
                          clause({action(ActionKind::Printf, {constant(3)})})});
  base.clauses[0].actions[1].argument = 64;
  base.clauses[1].actions[0].format = "%10d\n";
  base.clauses[0].actions[2].arguments[1].result = kString;
  base.aggregations = {{"a", AggregateFunction::Lquantize, {kLong, kString}}};
  base.aggregations[0].parameters = LinearParameters{0, 1, 100}.pack();
  base.clauses.push_back(
      clause({action(ActionKind::Evaluate, {keeping(3, kString, VariableScope::Global)})}));
  const auto dof = write_dof(base);
  ASSERT_EQ(outcome(dof, {}), "ran");

  EXPECT_EXIT(
      {
        limit_address_space();
        std::mt19937 random(8);
        unsigned ran = 0;
        for (int round = 0; round < 20'000; ++round) {
          auto changed = dof;
          for (unsigned i = 0; i <= random() % 3; ++i) {
            const std::size_t at = 64 + random() % (changed.size() - 72);
            const std::uint64_t large = UINT64_MAX >> (random() % 64);
            std::memcpy(changed.data() + at, &large, 1 + random() % 8);
          }
          ran += outcome(changed, {.string_size = 64 << 10}) == "ran" ? 1 : 0;
        }
        ::_exit(ran > 100 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ringside::dif
