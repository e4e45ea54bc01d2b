// Each form is evaluated and run by this processor, with the same registers and memory.
#include "disasm/evaluation.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <random>

#include "disasm/code_for_tests.h"
#include "disasm/native_run_for_tests.h"

extern "C" const std::byte kEvaluationForms[], kEvaluationFormsEnd[];
// rbx leads to memory that may be changed; rcx is a small number.
asm(R"(
  .section .rodata
  .globl kEvaluationForms, kEvaluationFormsEnd
kEvaluationForms:
  .intel_syntax noprefix
  nop; nop dword ptr [rax + rax]; endbr64; xchg ax, ax
  mov rax, rdx; mov eax, edx; mov ax, dx; mov al, dl; mov ah, dl; mov dl, ah; mov r9b, r10b
  mov rax, [rbx]; mov eax, [rbx + 5]; mov ax, [rbx + 7]; mov al, [rbx + rcx * 8 + 3]
  mov [rbx], rax; mov [rbx + 5], eax; mov [rbx + 7], ax; mov [rbx + 6], rdx; mov [rbx], ah
  mov rax, 0x123456789abcdef0; mov rax, -2; mov eax, -2; mov qword ptr [rbx], -5; mov byte ptr [rbx], 7
  movzx eax, dl; movzx eax, ah; movzx eax, word ptr [rbx]; movzx rax, dl
  movsx eax, dl; movsx rax, dx; movsxd rax, edx; movsx rax, byte ptr [rbx]; movsx ax, dl
  lea rax, [rbx + rcx * 4 - 9]; lea eax, [rdx + r8]; lea ax, [rdx + 3]; lea rax, gs:[rbx]
  xchg rax, rdx; xchg eax, r8d; xchg [rbx], rax; xchg ah, al; xchg [rbx + 3], cx
  push rax; push 5; push -5; push qword ptr [rbx]; pop rax; pop qword ptr [rbx + 8]
  and rax, rdx; and eax, 0xff0; and al, dl; and [rbx], rax; and rax, [rbx]; and eax, -16; and ax, 0x8001
  or rax, rdx; or byte ptr [rbx], 0x80; or eax, edx; xor eax, eax; xor rax, rdx; xor dl, [rbx]
  test rax, rax; test al, 3; test eax, 0x80000000; test [rbx], rdx; test dh, dh
  add rax, rdx; add eax, edx; add al, dl; add rax, -1; add eax, 0x7fffffff; add [rbx], ax; add ax, -1
  adc rax, rdx; adc eax, 0; adc al, dl; adc rax, -1; sub rax, rdx; sub eax, 1; sub al, dl; sub [rbx], rdx
  sub ax, -1; sub rax, -1; sbb eax, eax; sbb rax, rdx; sbb al, 1; sbb rax, -1
  cmp rax, rdx; cmp eax, 5; cmp al, dl; cmp dword ptr [rbx], -1; cmp rax, [rbx]; cmp al, -1; cmp rax, rax
  inc rax; inc dword ptr [rbx]; inc al; dec rax; dec word ptr [rbx]; neg rax; neg eax; neg al; not rax; not edx
  lock inc dword ptr [rbx]; lock add qword ptr [rbx], rax; lock dec qword ptr [rbx + 16]
  shl rax, 1; shl eax, 5; shl rax, cl; shl dl, 3; shr rax, 1; shr eax, 31; shr rax, cl; shr ax, cl
  sar rax, 1; sar eax, 7; sar rax, 63; sar dl, 1; rol rax, 1; rol eax, 5; rol ax, cl; ror rax, 1; ror al, 3
  imul rax, rdx; imul eax, edx, 56; imul rax, [rbx], -3; imul ax, dx; imul rcx, rcx
  bt rax, rdx; bt eax, 3; bt rdx, 63; bt [rbx], rcx; bt dword ptr [rbx], 29; bt [rbx + 8], ecx; bt ax, cx
  bswap rax; bswap edx; cdq; cqo; cwde; cdqe
  seta al; setb dl; setne byte ptr [rbx]; setle ah; sets al; setp al; seto al; setg al
  cmova rax, rdx; cmove eax, edx; cmovl rax, [rbx]; cmovns ax, dx; cmovno rax, r9; cmovbe eax, [rbx]
  .att_syntax
kEvaluationFormsEnd:
  .previous
)");

namespace ringside::disasm {
namespace {

constexpr std::size_t kPage = 4096;

/// Memory of this process.
class HostMemory final : public GuestReader {
 public:
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    // SAFETY: the test evaluates only what leads into its own page.
    std::memcpy(out.data(), reinterpret_cast<const void*>(at.raw()), out.size());
    return {};
  }
};

/// A page of code, and one that it works on.
class Native {
 public:
  Native() {
    void* const both = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(both, MAP_FAILED);
    code_ = static_cast<std::byte*>(both);
    // SAFETY: an instruction per feature, so that the processor's own state is left as it was.
    std::memcpy(native_run_vectors_in.data(), "\x7f\x03", 2);
  }
  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;
  ~Native() { munmap(code_, 2 * kPage); }

  std::byte* data() { return code_ + kPage; }
  std::uint64_t data_address() { return reinterpret_cast<std::uint64_t>(data()); }

  void run(std::span<const std::byte> instruction) {
    std::ranges::copy(instruction, code_);
    const auto jump = code({0xff, 0x25, 0, 0, 0, 0});  // jmp [rip]
    std::byte* const behind = code_ + instruction.size();
    std::ranges::copy(jump, behind);
    const auto end = reinterpret_cast<std::uint64_t>(&native_run_next);
    std::memcpy(behind + jump.size(), &end, sizeof end);
    native_run_entry = reinterpret_cast<std::uint64_t>(code_);
    native_run();
  }

 private:
  std::byte* code_;
};

class EvaluationRuns : public testing::Test {
 protected:
  /// Random, with the ends of the ranges among them.
  std::uint64_t any() {
    constexpr std::array<std::uint64_t, 8> kEnds = {
        0, 1, ~0ULL, 1ULL << 63, (1ULL << 63) - 1, 0x80, 0x7fff'ffff, 0x8000'0000};
    const std::uint64_t value = random_();
    return value % 3 == 0 ? kEnds[random_() % kEnds.size()] : value;
  }
  void fill() {
    for (unsigned n = 0; n < 16; ++n) native_run_in[n] = registers_.*arch::kByEncoding[n] = any();
    const auto set = [](unsigned n, std::uint64_t value, std::uint64_t& named) {
      native_run_in[n] = named = value;
    };
    set(1, random_() % 70, registers_.rcx);
    set(3, native_.data_address() + 256, registers_.rbx);
    set(4, native_.data_address() + 2048, registers_.rsp);
    registers_.rflags = 2 | (random_() & kFlags);
    native_run_in[16] = registers_.rflags;
    for (std::size_t at = 0; at < kPage; at += 8) {
      const std::uint64_t value = any();
      std::memcpy(native_.data() + at, &value, sizeof value);
    }
  }
  /// Flags that the form leaves undefined.
  static std::uint64_t undefined(const Operation& in, std::uint64_t count) {
    switch (in.effect) {
      case Effect::BitTest: return kFlags & ~arch::kCarryFlag;
      case Effect::Multiply: return arch::kZeroFlag | arch::kSignFlag | arch::kParityFlag;
      case Effect::ShiftLeft:
      case Effect::ShiftRight:
      case Effect::ShiftArithmetic:
        return arch::kOverflowFlag | (count >= in.to.bytes * 8U ? arch::kCarryFlag : 0);
      case Effect::RotateLeft:
      case Effect::RotateRight: return arch::kOverflowFlag;
      default: return 0;
    }
  }

  static constexpr std::uint64_t kFlags = arch::kCarryFlag | arch::kParityFlag | arch::kZeroFlag |
                                          arch::kSignFlag | arch::kOverflowFlag;
  Native native_;
  HostMemory memory_;
  Registers registers_;
  std::mt19937_64 random_{1};
};

TEST_F(EvaluationRuns, DoesWhatTheProcessorDoes) {
  std::span<const std::byte> forms(kEvaluationForms, kEvaluationFormsEnd);
  unsigned count = 0;
  while (!forms.empty()) {
    const GuestVirt address(0xffff'ffff'8100'0000);
    const auto in = decode_evaluable(forms, address);
    ASSERT_TRUE(in) << in.error().message;
    const auto bytes = forms.first(in->length);
    const std::string text = assembly(bytes, address);
    forms = forms.subspan(in->length);
    ++count;
    for (unsigned round = 0; round < 40; ++round) {
      fill();
      Evaluation evaluation(registers_, memory_);
      const auto next = evaluation.step(*in);
      ASSERT_TRUE(next) << text;
      EXPECT_EQ(*next, address.wrapping_add(in->length)) << text;
      native_.run(bytes);

      for (unsigned n = 0; n < 16; ++n) {
        ASSERT_EQ(evaluation.registers().*arch::kByEncoding[n], native_run_out[n])
            << text << ", register " << n;
      }
      for (std::uint64_t at = 0; at < kPage; at += 8) {
        const GuestVirt place(native_.data_address() + at);
        std::uint64_t now = 0;
        std::memcpy(&now, native_.data() + at, sizeof now);
        ASSERT_EQ(evaluation.load(place, 8), now) << text << ", memory at " << at;
      }
      const std::uint64_t all = kFlags & ~undefined(*in, registers_.rcx & 63);
      ASSERT_EQ(evaluation.registers().rflags & all, native_run_out[16] & all) << text;
    }
  }
  EXPECT_GT(count, 150u);
}

/// Nothing is mapped but 16 bytes.
class Sixteen final : public GuestReader {
 public:
  static constexpr std::uint64_t kAt = 0xffff'8880'0000'1000;
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    if (!at.is_in(GuestVirt(kAt), 16 - out.size() + 1)) {
      return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
    }
    std::ranges::fill(out, std::byte{0x11});
    return {};
  }
};

Operation evaluable(std::initializer_list<int> bytes, std::uint64_t at = 0x1000) {
  const auto in = decode_evaluable(code(bytes), GuestVirt(at));
  EXPECT_TRUE(in);
  return in.value_or(Operation());
}

TEST(Evaluation, SeesItsOwnWritesAndTheGuestsBytesBesideThem) {
  const Sixteen memory;
  Evaluation evaluation({}, memory);

  EXPECT_TRUE(evaluation.store(GuestVirt(Sixteen::kAt + 6), 4, 0xaabbccdd));

  EXPECT_EQ(evaluation.load(GuestVirt(Sixteen::kAt), 8), 0xccdd'1111'1111'1111);
  EXPECT_EQ(evaluation.load(GuestVirt(Sixteen::kAt + 7), 2), 0xbbccu);
  EXPECT_EQ(evaluation.load(GuestVirt(Sixteen::kAt + 8), 8), 0x1111'1111'1111'aabb);
  EXPECT_TRUE(evaluation.has_written(GuestVirt(Sixteen::kAt), 7));
  EXPECT_FALSE(evaluation.has_written(GuestVirt(Sixteen::kAt), 6));
  EXPECT_FALSE(evaluation.has_written(GuestVirt(Sixteen::kAt + 10), 6));
}

TEST(Evaluation, HasNotWrittenWhatTheGuestIsAboutToWriteButOnItsStack) {
  const Sixteen memory;
  Evaluation evaluation({}, memory);
  EXPECT_TRUE(evaluation.store(GuestVirt(Sixteen::kAt), 4, 1));
  EXPECT_TRUE(evaluation.store(GuestVirt(Sixteen::kAt + 8), 4, 2));

  evaluation.settle_outside(GuestVirt(Sixteen::kAt + 8), 8);

  EXPECT_FALSE(evaluation.has_written(GuestVirt(Sixteen::kAt), 8));
  EXPECT_TRUE(evaluation.has_written(GuestVirt(Sixteen::kAt + 8), 8));
  EXPECT_EQ(evaluation.load(GuestVirt(Sixteen::kAt), 4), 1u);
  EXPECT_TRUE(evaluation.store(GuestVirt(Sixteen::kAt + 2), 1, 3));
  EXPECT_TRUE(evaluation.has_written(GuestVirt(Sixteen::kAt), 8));
  EXPECT_FALSE(evaluation.has_written(GuestVirt(Sixteen::kAt), 2));
}

TEST(Evaluation, FaultsAtMemoryThatIsNotMapped) {
  const Sixteen memory;
  Registers registers;
  registers.rax = Sixteen::kAt + 12;
  Evaluation evaluation(registers, memory);

  const auto done = evaluation.step(evaluable({0x48, 0x8b, 0x00}));  // mov rax, [rax]

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, FaultKind::BadAddress);
}

TEST(Evaluation, ReadsPerCpuDataByTheBaseOfGs) {
  const Sixteen memory;
  Registers registers;
  registers.gs_base = Sixteen::kAt - 0x40;
  Evaluation evaluation(registers, memory);

  const auto in = evaluable({0x65, 0x8b, 0x04, 0x25, 0x40, 0, 0, 0});  // mov eax, gs:[0x40]

  EXPECT_TRUE(evaluation.step(in));
  EXPECT_EQ(evaluation.registers().rax, 0x1111'1111u);
}

TEST(Evaluation, KeepsABoundedNumberOfWrites) {
  const Sixteen memory;
  Evaluation evaluation({}, memory);
  unsigned kept = 0;
  while (kept < 1000 && evaluation.store(GuestVirt(std::uint64_t{kept} * 8), 8, 1)) ++kept;

  EXPECT_GE(kept, 32u);
  EXPECT_LT(kept, 1000u);
  EXPECT_TRUE(evaluation.store(GuestVirt(0), 8, 2)) << "a place that it has already";
}

TEST(Evaluation, FollowsJumpsCallsAndReturns) {
  const Sixteen memory;
  Registers registers;
  registers.rsp = 0x8000;
  Evaluation evaluation(registers, memory);

  EXPECT_EQ(evaluation.step(evaluable({0xeb, 0x10})), GuestVirt(0x1012));
  EXPECT_EQ(evaluation.step(evaluable({0x74, 0x10})), GuestVirt(0x1002)) << "je, not taken";
  EXPECT_EQ(evaluation.step(evaluable({0x75, 0x10})), GuestVirt(0x1012));
  EXPECT_EQ(evaluation.step(evaluable({0xe8, 0, 1, 0, 0})), GuestVirt(0x1105));
  EXPECT_EQ(evaluation.step(evaluable({0xc3})), GuestVirt(0x1005));
  EXPECT_EQ(evaluation.registers().rsp, 0x8000u);
}

TEST(Evaluable, RefusesWhatHasOtherEffects) {
  for (const auto& bytes :
       {code({0x0f, 0x31}), code({0xf3, 0x48, 0xab}), code({0xff, 0xe0}), code({0xff, 0x10}),
        code({0x0f, 0x0b}), code({0xfa}), code({0x0f, 0x20, 0xd8}), code({0x66, 0x0f, 0xef, 0xc1}),
        code({0x8e, 0xe8}), code({0xcc}), code({0xc2, 8, 0}), code({0xe3, 0x10}), code({0x06})}) {
    EXPECT_FALSE(decode_evaluable(bytes, GuestVirt(0x1000)));
  }
  const auto refused = decode_evaluable(code({0x0f, 0x31}), GuestVirt(0x1000));
  EXPECT_EQ(refused.error().message, "\"rdtsc\"");
}

}  // namespace
}  // namespace ringside::disasm
