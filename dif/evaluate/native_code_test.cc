// Compiled code against the interpreter, and the pages that it lies in.
#include "dif/evaluate/native_code.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "dif/evaluate/evaluate.h"
#include "dif/evaluate/native_analysis.h"
#include "dif/evaluate/native_emitter.h"
#include "dif/program/listing.h"
#include "dif/testing/fake_guest.h"
#include "dif/testing/random_dif.h"
#include "dif/testing/state_peer.h"

namespace ringside::dif {
namespace {

using namespace testing;

/// Memory of which each byte is there or not, by chance.
class PatchyMemory final : public GuestReader {
 public:
  PatchyMemory(std::uint64_t first, RandomDif& random) : first_(first) {
    for (Byte& byte : bytes_) byte = {static_cast<std::byte>(random.pick(4) * 60), true};
    for (unsigned holes = random.pick(4); holes > 0; --holes) {
      const unsigned at = random.pick(kBytes), size = 1 + random.pick(100);
      for (unsigned i = at; i < std::min(at + size, kBytes); ++i) bytes_[i].is_there = false;
    }
  }
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    ++reads;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t offset = at.raw() - first_ + i;
      if (offset >= kBytes || !bytes_[offset].is_there) {
        return raise(FaultKind::BadAddress, at.raw() + i);
      }
      out[i] = bytes_[offset].value;
    }
    return {};
  }

  mutable unsigned reads = 0;

 private:
  static constexpr unsigned kBytes = 512;
  struct Byte {
    std::byte value{};
    bool is_there = false;
  };
  const std::uint64_t first_;
  std::array<Byte, kBytes> bytes_;
};

class PatchyGuest final : public FakeGuest {
 public:
  explicit PatchyGuest(RandomDif& random)
      : kernel_(kKernelBytes, random), user_(kUserBytes, random) {
    set(ContextVariable::Tid, random.pick(3));
    set(ContextVariable::Curthread, kKernelBytes + random.pick(512));
    arguments = {kKernelBytes, kUserBytes, 3, random.pick(100), UINT64_MAX};
  }
  const GuestReader& kernel() const override { return kernel_; }
  const GuestReader& user() const override { return user_; }
  unsigned reads() const { return kernel_.reads + user_.reads; }

 private:
  PatchyMemory kernel_, user_;
};

/// One way to evaluate a program's objects.
struct Way {
  Way(const Program& program, const EngineOptions& options)
      : shared(program, options, 1),
        speculations(3),
        evaluator(program, options, shared, speculations, 0) {}

  SharedState shared;
  SpeculationIds speculations;
  Evaluator evaluator;
};

EngineOptions small_options(bool jit) {
  return {.dynamic_size = 4096, .string_size = 64, .scratch_size = 1024, .jit = jit};
}

std::string text_of(const Result<std::uint64_t, Fault>& result) {
  if (result) return fmt::format("value {:#x}", *result);
  const Fault& fault = result.error();
  return fmt::format("fault {} at {} of {:#x}", fault_text(fault.kind), fault.pc, fault.address);
}

/// All of D's memory that a clause leaves behind beside variables.
std::vector<std::byte> scratch_of(Evaluator& evaluator) {
  std::vector<std::byte> bytes(evaluator.memory().scratch_used());
  (void)evaluator.memory().read_state(make_handle(Arena::Scratch, 0), bytes);
  return bytes;
}

/// The first difference that a seed shows; empty if there is none.
class Comparison {
 public:
  static constexpr unsigned kObjects = 64;

  explicit Comparison(RandomDif& random)
      : random_(random),
        program_(make_program(random)),
        guest_a_(random),
        guest_b_(guest_a_),
        interpreted_(program_, small_options(false)),
        compiled_(program_, small_options(true)) {
    StatePeer::share_seed(interpreted_.shared.variables, compiled_.shared.variables);
  }

  std::string run() {
    begin();
    for (const Action& action : program_.clauses[0].actions) {
      const Difo& object = action.arguments[0];
      if (compiled_.shared.code.find(object) == nullptr) return "one is not compiled";
      if (random_.pick(3) != 0) begin();
      // The second time the lines that it loads from are in the cache.
      for (int time = 0; time < 2; ++time) {
        const std::string found = difference(object);
        if (!found.empty()) return found + "\n" + list_difo(object);
      }
    }
    const bool same = StatePeer::same_variables(interpreted_.evaluator.variables(),
                                                compiled_.evaluator.variables());
    return same ? "" : "variables differ";
  }

  unsigned finished = 0;

 private:
  static Program make_program(RandomDif& random) {
    std::vector<Action> actions;
    while (actions.size() < kObjects) {
      Difo object = random.object();
      if (verify_difo(object)) actions.push_back(action(ActionKind::Evaluate, {std::move(object)}));
    }
    return program({clause(std::move(actions))});
  }

  void begin() {
    for (Way* const way : {&interpreted_, &compiled_}) {
      const GuestContext& guest = way == &interpreted_ ? guest_a_ : guest_b_;
      way->evaluator.begin_firing({}, record_, guest);
      way->evaluator.begin_clause(EcbId{1});
    }
  }

  std::string difference(const Difo& object) {
    const auto wanted = interpreted_.evaluator.evaluate(object);
    const auto got = compiled_.evaluator.evaluate(object);
    if (wanted) ++finished;
    if (text_of(wanted) != text_of(got)) {
      return fmt::format("{}, but compiled {}", text_of(wanted), text_of(got));
    }
    if (guest_a_.reads() != guest_b_.reads()) return "the guest is read differently";
    if (scratch_of(interpreted_.evaluator) != scratch_of(compiled_.evaluator)) return "scratch";
    const auto a = interpreted_.evaluator.variables().take_dynamic_drops();
    const auto b = compiled_.evaluator.variables().take_dynamic_drops();
    return a.plain == b.plain && a.dirty == b.dirty ? "" : "drops";
  }

  RandomDif& random_;
  const Program program_;
  const PatchyGuest guest_a_, guest_b_;
  const FireRecord record_{3, 1000, 2000};
  Way interpreted_, compiled_;
};

TEST(NativeCode, ComputesAsTheInterpreterDoes) {
  const char* const more = std::getenv("RINGSIDE_SEEDS");
  const std::uint64_t seeds = more != nullptr ? std::strtoull(more, nullptr, 10) : 30;
  std::uint64_t finished = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RandomDif random(seed);
    auto comparison = std::make_unique<Comparison>(random);
    const std::string difference = comparison->run();
    ASSERT_EQ(difference, "") << "seed " << seed;
    finished += comparison->finished;
  }
  EXPECT_GT(finished, seeds * Comparison::kObjects / 2) << "too many end in a fault";
}

/// The permissions of the page that a function lies in, as /proc/self/maps has them.
std::string permissions_at(NativeFunction function) {
  const auto address = reinterpret_cast<std::uintptr_t>(function);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, last = 0;
    char permissions[5] = {};
    if (std::sscanf(line.c_str(), "%zx-%zx %4s", &first, &last, permissions) != 3) continue;
    if (address >= first && address < last) return permissions;
  }
  return "";
}

TEST(NativeCode, LiesInPagesThatNobodyCanWrite) {
  const Program whole = program({clause({action(ActionKind::Trace, {constant(7)})})});
  const ConstantStrings constants(whole);
  NativeCode code;
  code.compile(whole, constants);

  const NativeFunction function = code.find(whole.clauses[0].actions[0].arguments[0]);

  ASSERT_NE(function, nullptr);
  EXPECT_EQ(code.refusal(), "");
  EXPECT_EQ(permissions_at(function), "r-xp");
}

TEST(NativeCode, TakesItsPagesAlong) {
  const Program whole = program({clause({action(ActionKind::Trace, {constant(7)})})});
  const ConstantStrings constants(whole);
  NativeFunction function = nullptr;
  {
    NativeCode code;
    code.compile(whole, constants);
    function = code.find(whole.clauses[0].actions[0].arguments[0]);
    ASSERT_NE(function, nullptr);
  }
  EXPECT_NE(permissions_at(function), "r-xp");
}

/// Its line is in the cache, and the next one is not.
TEST(NativeCode, ALoadThatLeavesItsLineIsWhole) {
  struct Load {
    Opcode op;
    unsigned size;
  };
  constexpr Load kLoads[] = {{Opcode::Ldub, 1},  {Opcode::Lduh, 2},  {Opcode::Lduw, 4},
                             {Opcode::Ldx, 8},   {Opcode::Uldub, 1}, {Opcode::Ulduh, 2},
                             {Opcode::Ulduw, 4}, {Opcode::Uldx, 8}};
  std::vector<Action> actions;
  for (const auto& [op, size] : kLoads) {
    Difo object = difo({encode_indexed(Opcode::Ldgs, static_cast<unsigned>(Builtin::Arg0), 1),
                        encode_indexed(Opcode::Ldgs, static_cast<unsigned>(Builtin::Arg1), 2),
                        encode(size == 1            ? op
                               : op < Opcode::Uldsb ? Opcode::Ldub
                                                    : Opcode::Uldub,
                               1, 0, 3),
                        encode(op, 2, 0, 4), encode_return(4)});
    actions.push_back(action(ActionKind::Evaluate, {std::move(object)}));
  }
  const Program whole = program({clause(std::move(actions))});
  Way way(whole, {});
  FakeGuest guest;
  const FireRecord record;
  std::uint8_t fresh = 0;
  for (const std::uint64_t line : {kKernelBytes, kKernelBytes + 63 * 64}) {  // the cache's last one
    for (std::uint64_t offset = 56; offset < 64; ++offset) {
      for (std::size_t n = 0; n < std::size(kLoads); ++n) {
        std::array<std::byte, 128> bytes;
        for (std::byte& byte : bytes) byte = std::byte{++fresh};
        (n < 4 ? guest.kernel_memory : guest.user_memory).put(line, bytes);
        guest.arguments = {line, line + offset};
        std::uint64_t wanted = 0;
        std::memcpy(&wanted, bytes.data() + offset, kLoads[n].size);
        way.evaluator.begin_firing({}, record, guest);
        const Difo& object = whole.clauses[0].actions[n].arguments[0];
        ASSERT_NE(way.shared.code.find(object), nullptr);
        EXPECT_EQ(way.evaluator.evaluate(object), wanted) << n << " " << offset;
      }
    }
  }
}

/// A processor without BMI2 shifts by cl.
TEST(NativeCode, ShiftsOnOlderProcessorsToo) {
  constexpr std::uint64_t kSigned = 0x8000'0000'0000'00f1;
  struct Shift {
    Opcode op;
    std::uint64_t by_4;
  };
  for (const bool has_bmi2 : {false, true}) {
    if (has_bmi2 && !asmjit::CpuInfo::host().features().x86().hasBMI2()) continue;
    for (const auto& [op, wanted] :
         {Shift{Opcode::Sll, kSigned << 4}, Shift{Opcode::Srl, kSigned >> 4},
          Shift{Opcode::Sra, 0xf800'0000'0000'000f}}) {
      Difo object = difo({encode_indexed(Opcode::Setx, 0, 1), encode_indexed(Opcode::Setx, 1, 2),
                          encode(op, 1, 2, 3), encode_return(3)});
      object.integers = {kSigned, 64 + 4};
      asmjit::JitRuntime runtime;
      asmjit::CodeHolder holder;
      holder.init(runtime.environment());
      asmjit::x86::Assembler code(&holder);
      const asmjit::Label entry = code.newLabel();
      NativeEmitter(code, object, NativeAnalysis(object), 0, has_bmi2).emit(entry);
      NativeFunction function = nullptr;
      ASSERT_EQ(runtime.add(&function, &holder), asmjit::kErrorOk);
      RunState state;
      const NativeAnswer answer = function(state);
      EXPECT_EQ(answer.faulted, 0u);
      EXPECT_EQ(answer.value, wanted) << has_bmi2;
      runtime.release(function);
    }
  }
}

TEST(NativeCode, ObjectsBehindTheLimitAreInterpreted) {
  Difo lengthy = constant(7);
  lengthy.text.insert(lengthy.text.begin(), NativeCode::kMostWords / 4, encode(Opcode::Nop));
  const Program whole =
      program({clause({action(ActionKind::Printf, {lengthy, lengthy, lengthy, lengthy})})});
  const auto& objects = whole.clauses[0].actions[0].arguments;
  Way way(whole, {});

  EXPECT_NE(way.shared.code.find(objects[0]), nullptr);
  EXPECT_EQ(way.shared.code.find(objects[3]), nullptr);
  EXPECT_EQ(way.evaluator.evaluate(objects[0]), 7u);
  EXPECT_EQ(way.evaluator.evaluate(objects[3]), 7u);
}

TEST(NativeCode, ThereIsNoneWithoutJit) {
  const Program whole = program({clause({action(ActionKind::Trace, {constant(7)})})});
  Way way(whole, small_options(false));

  EXPECT_EQ(way.shared.code.find(whole.clauses[0].actions[0].arguments[0]), nullptr);
}

}  // namespace
}  // namespace ringside::dif
