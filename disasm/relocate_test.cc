// Relocation, proved by running it: each form is executed in place and through its slot, from the
// same random registers, and everything that it may change is compared. Refusals by table.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>

#include "disasm/code_for_tests.h"
#include "disasm/cross_check.h"
#include "disasm/decoder.h"
#include "disasm/native_run_for_tests.h"

namespace ringside::disasm {
namespace {

constexpr GuestVirt kFrom{0xffffffff81000100};
constexpr GuestVirt kSlot{0xffffffff9f400000};

/// Memory for code. In low memory a return address fits a push as it does in the kernel's top 2
/// GiB, elsewhere it does not. Parts: the instruction in place, the branch target, a word that
/// rip-relative operands name, data that register operands point to, a stack, and the slot.
class Arena {
 public:
  static constexpr std::size_t kSize = 0x8000;
  static constexpr std::size_t kCode = 0x0800, kTarget = 0x0880, kWord = 0x1000, kData = 0x2000,
                               kStack = 0x4000, kStackSize = 0x1000, kSlotAt = 0x6000;

  enum class Where { Low, High };
  explicit Arena(Where where = Where::Low) {
    void* mapped = mmap(nullptr, kSize, PROT_READ | PROT_WRITE | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS | (where == Where::Low ? MAP_32BIT : 0), -1, 0);
    if (mapped != MAP_FAILED) bytes_ = {static_cast<std::byte*>(mapped), kSize};
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  }

  bool usable() const { return !bytes_.empty(); }
  GuestVirt at(std::size_t offset) const {
    // SAFETY: only to name host code as an address for the relocator.
    return GuestVirt(reinterpret_cast<std::uint64_t>(bytes_.data()) + offset);
  }
  void put(std::size_t offset, std::span<const std::byte> what) {
    std::memcpy(bytes_.data() + offset, what.data(), what.size());
  }
  /// jmp *0(%rip) to one of the two landings: changes no register.
  void put_exit(std::size_t offset, void (*landing)()) {
    put(offset, code({0xff, 0x25, 0, 0, 0, 0}));
    std::memcpy(bytes_.data() + offset + 6, &landing, sizeof landing);
  }
  /// Data, word and stack: a known pattern.
  void fill() {
    for (std::size_t i = kWord; i < kSlotAt; ++i) {
      bytes_[i] = static_cast<std::byte>(i * 37 + (i >> 8));
    }
  }
  /// A pointer to the branch target, for indirect branches through memory.
  void put_pointer(std::size_t offset) {
    const std::uint64_t target = at(kTarget).raw();
    std::memcpy(bytes_.data() + offset, &target, sizeof target);
  }
  std::vector<std::byte> memory() const {
    return {bytes_.begin() + kWord, bytes_.begin() + kSlotAt};
  }

 private:
  std::span<std::byte> bytes_;
};

struct Outcome {
  std::array<std::uint64_t, 17> registers;
  std::uint64_t where;
  std::vector<std::byte> memory;
};

enum class Operands { Plain, PointerInRax, PointerInData, PointerInWord };

void prepare(Arena& arena, Operands operands) {
  arena.fill();
  if (operands == Operands::PointerInData) arena.put_pointer(Arena::kData + 0x40);
  if (operands == Operands::PointerInWord) arena.put_pointer(Arena::kWord);
}

/// `way_back`: is put on the stack.
Outcome run(Arena& arena, GuestVirt entry, const std::array<std::uint64_t, 17>& in,
            Operands operands, std::optional<GuestVirt> way_back = std::nullopt) {
  prepare(arena, operands);
  std::copy(in.begin(), in.end(), native_run_in);
  if (way_back) {
    constexpr std::size_t kWordBelow = Arena::kStack + Arena::kStackSize / 2 - 8;
    const std::uint64_t word = way_back->raw();
    arena.put(kWordBelow, std::as_bytes(std::span(&word, 1)));
    native_run_in[4] -= sizeof word;
  }
  native_run_entry = entry.raw();
  native_run();
  Outcome out;
  std::copy(std::begin(native_run_out), std::end(native_run_out), out.registers.begin());
  out.where = native_run_where;
  out.memory = arena.memory();
  // Below the stack pointer lies what the harness itself left there.
  const std::size_t red = Arena::kStack - Arena::kWord;
  std::fill(out.memory.begin() + red, out.memory.begin() + red + Arena::kStackSize / 2 - 0x20,
            std::byte{0});
  return out;
}

std::array<std::uint64_t, 17> random_registers(Arena& arena, std::mt19937_64& random,
                                               Operands operands) {
  std::array<std::uint64_t, 17> in;
  for (auto& value : in) value = random();
  constexpr std::uint64_t kStatusFlags = 0x8d5;
  in[16] = (random() & kStatusFlags) | 0x202;
  in[1] = random() % 3;                         // rcx: jrcxz, loop, rep
  in[3] = arena.at(Arena::kData + 0x40).raw();  // rbx, rsi, rdi: memory operands
  in[6] = arena.at(Arena::kData + 0x200).raw();
  in[7] = arena.at(Arena::kData + 0x400).raw();
  in[4] = arena.at(Arena::kStack + Arena::kStackSize / 2).raw();
  if (operands == Operands::PointerInRax) in[0] = arena.at(Arena::kTarget).raw();
  return in;
}

/// Below where the stack pointer stands in the end, code may leave anything.
void forget_below_stack(Arena& arena, Outcome& outcome) {
  const std::uint64_t end = outcome.registers[4] - arena.at(Arena::kWord).raw();
  ASSERT_LE(end, outcome.memory.size());
  std::fill_n(outcome.memory.begin(), end, std::byte{0});
}

struct RelocatedForm {
  const char* name;
  std::vector<std::byte> bytes;
  Operands operands = Operands::Plain;
  bool to_word = false;  // the four bytes at `displacement` become a rip-relative distance
  std::size_t displacement = 0;
  bool to_target = false;  // ... to the branch target instead
};

// clang-format off
std::vector<RelocatedForm> forms() {
  return {
      {"push rbp", code({0x55})},
      {"push imm32", code({0x68, 0xef, 0xbe, 0xad, 0xde})},
      {"pop rbp", code({0x5d})},
      {"push rsp", code({0x54})},
      {"mov rbp, rsp", code({0x48, 0x89, 0xe5})},
      {"sub rsp, 0x28", code({0x48, 0x83, 0xec, 0x28})},
      {"and rsp, -16", code({0x48, 0x83, 0xe4, 0xf0})},
      {"lea r10, [rsp + 8]", code({0x4c, 0x8d, 0x54, 0x24, 0x08})},
      {"mov [rbx + 8], rax", code({0x48, 0x89, 0x43, 0x08})},
      {"add dword [rsi], 5", code({0x83, 0x06, 0x05})},
      {"lock xadd [rbx], rax", code({0xf0, 0x48, 0x0f, 0xc1, 0x03})},
      {"imul eax, ecx, 1000", code({0x69, 0xc1, 0xe8, 0x03, 0, 0})},
      {"xor r8d, r8d", code({0x45, 0x31, 0xc0})},
      {"rep movsb", code({0xf3, 0xa4})},
      {"setg al", code({0x0f, 0x9f, 0xc0})},
      {"cmovl rax, r9", code({0x49, 0x0f, 0x4c, 0xc1})},
      {"pushfq", code({0x9c})},
      {"movabs rax, imm64", code({0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8})},
      {"nopw", code({0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0})},
      {"mov rax, [rip + word]", code({0x48, 0x8b, 0x05, 0, 0, 0, 0}), Operands::Plain, true, 3},
      {"lea rdi, [rip + word]", code({0x48, 0x8d, 0x3d, 0, 0, 0, 0}), Operands::Plain, true, 3},
      {"cmp dword [rip + word], imm32", code({0x81, 0x3d, 0, 0, 0, 0, 1, 2, 3, 4}), Operands::Plain, true, 2},
      {"cmp byte [rip + word], imm8", code({0x80, 0x3d, 0, 0, 0, 0, 7}), Operands::Plain, true, 2},
      {"mov word [rip + word], imm16", code({0x66, 0xc7, 0x05, 0, 0, 0, 0, 1, 2}), Operands::Plain, true, 3},
      {"test byte [rip + word], imm8", code({0xf6, 0x05, 0, 0, 0, 0, 7}), Operands::Plain, true, 2},
      {"jmp rel8", code({0xeb, 0x7e})},
      {"jmp rel32", code({0xe9, 0, 0, 0, 0}), Operands::Plain, true, 1, true},
      {"jrcxz", code({0xe3, 0x7e})},
      {"jecxz", code({0x67, 0xe3, 0x7d})},
      {"loop", code({0xe2, 0x7e})},
      {"loope", code({0xe1, 0x7e})},
      {"loopne", code({0xe0, 0x7e})},
      {"call rel32", code({0xe8, 0, 0, 0, 0}), Operands::Plain, true, 1, true},
      {"cs call rel32", code({0x2e, 0x2e, 0xe8, 0, 0, 0, 0}), Operands::Plain, true, 3, true},
      {"call rax", code({0xff, 0xd0}), Operands::PointerInRax},
      {"call [rbx]", code({0xff, 0x13}), Operands::PointerInData},
      {"notrack call rax", code({0x3e, 0xff, 0xd0}), Operands::PointerInRax},
      {"call [rip + word]", code({0xff, 0x15, 0, 0, 0, 0}), Operands::PointerInWord, true, 2},
      {"jmp rax", code({0xff, 0xe0}), Operands::PointerInRax},
      {"jmp [rbx]", code({0xff, 0x23}), Operands::PointerInData},
      {"jmp [rip + word]", code({0xff, 0x25, 0, 0, 0, 0}), Operands::PointerInWord, true, 2},
  };
}
// clang-format on

/// Lays the form out in the arena, in place and relocated.
void place(Arena& arena, RelocatedForm& form) {
  if (form.to_word) {
    const std::size_t goal = form.to_target ? Arena::kTarget : Arena::kWord;
    const auto distance = static_cast<std::int32_t>(goal - (Arena::kCode + form.bytes.size()));
    std::memcpy(form.bytes.data() + form.displacement, &distance, 4);
  }
  arena.put(Arena::kCode, form.bytes);
  arena.put_exit(Arena::kCode + form.bytes.size(), native_run_next);
  arena.put_exit(Arena::kTarget, native_run_taken);
  const auto slot = relocate(form.bytes, arena.at(Arena::kCode), arena.at(Arena::kSlotAt));
  ASSERT_TRUE(slot) << form.name << ": " << slot.error().message;
  ASSERT_LE(slot->size(), kMaxSlotBytes);
  arena.put(Arena::kSlotAt, *slot);
}

/// `way_back`: the slot returns there, and the stack below where it ends is not compared.
void compare_runs(Arena& arena, const RelocatedForm& form, std::mt19937_64& random,
                  std::optional<GuestVirt> way_back = std::nullopt) {
  for (int round = 0; round < 50; ++round) {
    const auto in = random_registers(arena, random, form.operands);
    Outcome in_place = run(arena, arena.at(Arena::kCode), in, form.operands);
    Outcome displaced = run(arena, arena.at(Arena::kSlotAt), in, form.operands, way_back);
    for (Outcome* const outcome : {&in_place, &displaced}) {
      if (!way_back) continue;
      ASSERT_NO_FATAL_FAILURE(forget_below_stack(arena, *outcome));
    }

    ASSERT_EQ(displaced.where, in_place.where) << form.name;
    ASSERT_EQ(displaced.registers, in_place.registers) << form.name;
    ASSERT_TRUE(displaced.memory == in_place.memory) << form.name << ": memory differs";
  }
}

TEST(Relocate, EveryFormDoesTheSameInItsSlot) {
  Arena arena;
  ASSERT_TRUE(arena.usable());
  std::mt19937_64 random(1);

  for (RelocatedForm& form : [] {
         static auto all = forms();
         return std::span(all);
       }()) {
    ASSERT_NO_FATAL_FAILURE(place(arena, form));
    ASSERT_NO_FATAL_FAILURE(compare_runs(arena, form, random));
  }
}

TEST(Relocate, EveryFormDoesTheSameWhereAddressesDoNotFitAPush) {
  Arena arena(Arena::Where::High);
  ASSERT_TRUE(arena.usable());
  ASSERT_GT(arena.at(0).raw(), UINT32_MAX);
  std::mt19937_64 random(3);

  auto all = forms();
  for (RelocatedForm& form : all) {
    ASSERT_NO_FATAL_FAILURE(place(arena, form));
    ASSERT_NO_FATAL_FAILURE(compare_runs(arena, form, random));
  }
}

void compare_with_return(Arena& arena, const RelocatedForm& form, std::mt19937_64& random) {
  const GuestVirt here = arena.at(Arena::kCode), slot = arena.at(Arena::kSlotAt);
  const auto code = relocate_with_return(form.bytes, here, slot);
  if (!code) return;
  ASSERT_LE(code->bytes.size(), kMaxSlotBytes);
  ASSERT_EQ(code->parts[0].size + std::size_t{code->parts[1].size}, code->bytes.size());
  arena.put(Arena::kSlotAt, code->bytes);
  compare_runs(arena, form, random, here.wrapping_add(form.bytes.size()));
}

TEST(RelocateWithReturn, EveryFormThatHasOneDoesTheSame) {
  Arena arena;
  ASSERT_TRUE(arena.usable());
  std::mt19937_64 random(5);
  auto all = forms();
  for (int which = 0; which < 16; ++which) {
    all.push_back({"push", which < 8 ? code({0x50 + which}) : code({0x41, 0x50 + which - 8})});
  }
  for (RelocatedForm& form : all) {
    ASSERT_NO_FATAL_FAILURE(place(arena, form));
    ASSERT_NO_FATAL_FAILURE(compare_with_return(arena, form, random));
  }
}

TEST(RelocateWithReturn, IsForWhatFallsThroughAndLeavesTheStackAlone) {
  const auto has_one = [](std::vector<std::byte> bytes) {
    return relocate_with_return(bytes, kFrom, kSlot).has_value();
  };
  EXPECT_TRUE(has_one(code({0x55}))) << "push rbp";
  EXPECT_TRUE(has_one(code({0x41, 0x57}))) << "push r15";
  EXPECT_TRUE(has_one(code({0x48, 0x89, 0xf8}))) << "mov rax, rdi";
  EXPECT_TRUE(has_one(code({0x80, 0x3d, 0, 0, 0, 0, 7}))) << "cmp byte [rip], 7";
  EXPECT_TRUE(has_one(code({0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}))) << "mov rax, gs:0";
  const std::initializer_list<int> others[] = {
      {0x54},                          // push rsp
      {0x66, 0x50},                    // push ax
      {0x68, 1, 0, 0, 0},              // push imm32
      {0xff, 0x33},                    // push [rbx]
      {0x5d},                          // pop rbp
      {0x9c},                          // pushfq
      {0x9d},                          // popfq
      {0xc9},                          // leave
      {0xc8, 8, 0, 0},                 // enter
      {0x48, 0x89, 0xe5},              // mov rbp, rsp
      {0x48, 0x83, 0xec, 0x28},        // sub rsp
      {0x4c, 0x8d, 0x54, 0x24, 0x08},  // lea r10, [rsp + 8]
      {0x89, 0x44, 0x24, 0x10},        // mov [rsp + 16], eax
      {0xfb},                          // sti
      {0xc3},                          // ret
      {0xeb, 2},                       // jmp
      {0x74, 2},                       // je
      {0xe8, 0, 0, 0, 0},              // call
      {0xff, 0xd0},                    // call rax
      {0xf4},                          // hlt
      {0x0f, 0x0b},                    // ud2
      {0x8e, 0xd0},                    // mov ss, eax
      {0x67, 0x8b, 0x05, 0, 0, 0, 0},  // eip-relative
      {0x06},                          // no instruction
  };
  for (const auto& bytes : others) {
    EXPECT_FALSE(has_one(code(bytes))) << bytes.begin()[0];
  }
}

TEST(RelocateWithReturn, SaysWhereTheStackIsInEachPart) {
  const auto push = relocate_with_return(code({0x41, 0x54}), kFrom, kSlot);
  ASSERT_TRUE(push);
  EXPECT_EQ(push->bytes,
            code({0xff, 0x34, 0x24, 0x4c, 0x89, 0x64, 0x24, 0x08, 0xc3}));  // mov r12 below
  EXPECT_EQ(push->parts[0].size, 3u);
  EXPECT_EQ(push->parts[0].words, 1u);
  EXPECT_EQ(push->parts[0].back, 2u);
  EXPECT_EQ(push->parts[1].words, 2u);
  EXPECT_EQ(push->parts[1].back, 2u);

  const auto move = relocate_with_return(code({0x48, 0x89, 0xf8}), kFrom, kSlot);
  ASSERT_TRUE(move);
  EXPECT_EQ(move->bytes, code({0x48, 0x89, 0xf8, 0xc3}));
  EXPECT_EQ(move->parts[0].size, 3u);
  EXPECT_EQ(move->parts[0].back, 3u) << "it has not run";
  EXPECT_EQ(move->parts[1].words, 1u);
  EXPECT_EQ(move->parts[1].back, 0u) << "it has run";
}

TEST(Relocate, EveryConditionGoesTheSameWayInItsSlot) {
  Arena arena;
  ASSERT_TRUE(arena.usable());
  std::mt19937_64 random(2);

  for (int condition = 0; condition < 16; ++condition) {
    RelocatedForm short_form{"jcc rel8", code({0x70 | condition, 0x7e})};
    ASSERT_NO_FATAL_FAILURE(place(arena, short_form));
    ASSERT_NO_FATAL_FAILURE(compare_runs(arena, short_form, random));

    RelocatedForm long_form{
        "jcc rel32", code({0x0f, 0x80 | condition, 0, 0, 0, 0}), Operands::Plain, true, 2, true};
    ASSERT_NO_FATAL_FAILURE(place(arena, long_form));
    ASSERT_NO_FATAL_FAILURE(compare_runs(arena, long_form, random));
  }
}

TEST(Relocate, ReturnsEndTheSlot) {
  const auto near = relocate(code({0xc3}), kFrom, kSlot);
  const auto popping = relocate(code({0xc2, 8, 0}), kFrom, kSlot);

  ASSERT_TRUE(near && popping);
  EXPECT_EQ(*near, code({0xc3}));
  EXPECT_EQ(*popping, code({0xc2, 8, 0}));
}

TEST(Relocate, SizeDoesNotDependOnTheSlot) {
  for (const RelocatedForm& form : forms()) {
    const auto here = relocate(form.bytes, kFrom, kSlot);
    const auto there = relocate(form.bytes, kFrom, GuestVirt(kFrom.raw() + 0x123));
    ASSERT_TRUE(here && there) << form.name;
    EXPECT_EQ(here->size(), there->size()) << form.name;
  }
}

TEST(Relocate, KernelCallPushesTheOriginalReturnAddress) {
  const auto slot = relocate(code({0xe8, 0x10, 0, 0, 0}), kFrom, kSlot);

  ASSERT_TRUE(slot);
  EXPECT_EQ(to_text(*slot, kSlot), "push -0x7efffefb") << "0xffffffff81000105";
  const auto jump = decode(std::span(*slot).subspan(5), GuestVirt(kSlot.raw() + 5));
  ASSERT_TRUE(jump);
  EXPECT_EQ(jump->flow, Flow::Jump);
  EXPECT_EQ(jump->target.raw(), kFrom.raw() + 0x15);
}

TEST(Relocate, ACallOfAProcessPushesTheOriginalReturnAddressByItsDistance) {
  constexpr GuestVirt from{0x5555'5555'0100}, slot{0x5555'5555'0200};

  const auto direct = relocate(code({0xe8, 0x10, 0, 0, 0}), from, slot);
  const auto indirect = relocate(code({0xff, 0xd0}), from, slot);

  ASSERT_TRUE(direct && indirect);
  // push rax; lea rax, [rip - 0x103]; xchg [rsp], rax; jmp: from 0x211 to 0x115.
  EXPECT_EQ(*direct, code({0x50, 0x48, 0x8d, 0x05, 0xfd, 0xfe, 0xff, 0xff, 0x48, 0x87, 0x04, 0x24,
                           0xe9, 0x04, 0xff, 0xff, 0xff}));
  // The same from 0x208 to 0x102, and jmp rax.
  EXPECT_EQ(*indirect, code({0x50, 0x48, 0x8d, 0x05, 0xfa, 0xfe, 0xff, 0xff, 0x48, 0x87, 0x04, 0x24,
                             0xff, 0xe0}));
}

TEST(Relocate, RefusesWithAReason) {
  const struct {
    std::vector<std::byte> bytes;
    const char* reason;
  } rows[] = {
      {code({0xcc}), "breakpoint"},
      {code({0x0f, 0x0b}), "invalid opcode"},
      {code({0x0f, 0xb9, 0xcc}), "invalid opcode"},
      {code({0xf3, 0x0f, 0x1e, 0xfa}), "land on it"},
      {code({0x8e, 0xd0}), "mov to ss"},
      {code({0xf4}), "wake-up"},
      {code({0x0f, 0x01, 0xc9}), "wake-up"},
      {code({0x0f, 0x01, 0xf8}), "per-cpu base"},
      {code({0x0f, 0x01, 0xc1}), "hypervisor"},
      {code({0x48, 0xcf}), "mode"},
      {code({0x0f, 0x05}), "mode"},
      {code({0x48, 0x0f, 0x07}), "mode"},
      {code({0xcd, 0x80}), "mode"},
      {code({0xcb}), "mode"},
      {code({0xc7, 0xf8, 0, 0, 0, 0}), "mode"},
      {code({0xff, 0x54, 0x24, 0x08}), "stack pointer"},  // call [rsp + 8]
      {code({0xff, 0xd4}), "stack pointer"},              // call rsp
      {code({0x67, 0x8b, 0x05, 0, 0, 0, 0}), "eip-relative"},
      {code({0x66, 0xff, 0xd0}), "operand-size"},
      {code({0x06}), "decoder"},
      {code({0x48, 0x8b}), "decoder"},
  };
  for (const auto& row : rows) {
    const auto slot = relocate(row.bytes, kFrom, kSlot);
    ASSERT_FALSE(slot) << row.reason;
    EXPECT_EQ(slot.error().code, ErrorCode::Unsupported);
    EXPECT_NE(slot.error().message.find(row.reason), std::string::npos) << slot.error().message;
  }
}

TEST(Relocate, RefusesWhatASlotTooFarAwayCannotReach) {
  const GuestVirt far(0x1000000000);

  EXPECT_FALSE(relocate(code({0x55}), kFrom, far));
  EXPECT_FALSE(relocate(code({0x48, 0x8b, 0x05, 0, 0, 0, 0}), kFrom, far));
  EXPECT_FALSE(relocate(code({0xff, 0xd0}), GuestVirt(0x7f00'0000'0000), kSlot))
      << "the return address is told by its distance";
}

TEST(RelocateRun, KeepsEachInstructionAndJumpsBackOnce) {
  // push rbp; lea rax, [rip + 0x10]; mov ebx, eax
  const auto run = code({0x55, 0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0x89, 0xc3});

  const auto slot = relocate_run(run, kFrom, kSlot);

  ASSERT_TRUE(slot) << slot.error().message;
  ASSERT_EQ(slot->size(), run.size() + 5);
  const auto lea = decode(std::span(*slot).subspan(1), kSlot.wrapping_add(1));
  EXPECT_EQ((*slot)[0], std::byte{0x55});
  EXPECT_EQ(lea->length, 7);
  std::int32_t distance = 0;
  std::memcpy(&distance, slot->data() + 4, sizeof distance);
  EXPECT_EQ(kSlot.wrapping_add(8 + static_cast<std::uint64_t>(std::int64_t{distance})),
            kFrom.wrapping_add(8 + 0x10));
  const auto back = decode(std::span(*slot).subspan(run.size()), kSlot.wrapping_add(run.size()));
  EXPECT_EQ(back->flow, Flow::Jump);
  EXPECT_EQ(back->target, kFrom.wrapping_add(run.size()));
}

TEST(RelocateRun, MayEndWithABranchAndHasNoneBefore) {
  const auto last = relocate_run(code({0x31, 0xc0, 0xe9, 0, 1, 0, 0}), kFrom, kSlot);  // xor; jmp
  ASSERT_TRUE(last);
  ASSERT_EQ(last->size(), 7u);
  EXPECT_EQ(decode(std::span(*last).subspan(2), kSlot.wrapping_add(2))->target,
            kFrom.wrapping_add(7 + 0x100));
  EXPECT_FALSE(relocate_run(code({0x74, 0, 0x31, 0xc0, 0x90}), kFrom, kSlot)) << "je; xor; nop";
  EXPECT_FALSE(relocate_run(code({0xfb, 0x31, 0xc0, 0x31, 0xc9}), kFrom, kSlot)) << "sti; xor";
  EXPECT_FALSE(relocate_run(code({0x31, 0xc0, 0x0f, 0x0b, 0x90}), kFrom, kSlot)) << "xor; ud2";
  EXPECT_FALSE(relocate_run(code({0x31, 0xc0, 0x48, 0x8d}), kFrom, kSlot)) << "half of one";
}

}  // namespace
}  // namespace ringside::disasm
