// In this file, top to bottom: memory of ours, signals, fitting an instruction to them, comparing.
#include "disasm/form_run_for_tests.h"

#include <fmt/format.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "disasm/decoders.h"
#include "disasm/native_run_for_tests.h"
#include "vmm/base/check.h"

namespace ringside::disasm {
namespace {

using RegisterFile = std::array<std::uint64_t, 17>;  // as native_run_in

/// Offsets in the arena, which lies in the low 2 GiB so that addresses fit a displacement. Between
/// the operand and the stack is room for the largest operand: XSAVE's, 11,008 bytes with AMX.
constexpr std::size_t kCode = 0x0800, kTarget = 0x0880, kData = 0x1000, kOperand = 0x1400,
                      kStack = 0x4000, kStackPointer = 0x4800, kEnd = 0x5000, kSlot = 0x6000,
                      kSize = 0x8000;
constexpr std::uint64_t kStatusFlags = 0x8d5, kSaneFlags = 0x202;
constexpr std::uint16_t kX87Control = 0x37f;  // FCW after a reset, the first word of XSAVE's area
constexpr unsigned kRsp = 4;

sigjmp_buf back;
volatile sig_atomic_t signal_number;
RegisterFile at_signal;
std::uint64_t place_of_signal, signal_address;

void on_signal(int number, siginfo_t* info, void* context) {
  constexpr std::array kOrder = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                 REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                 REG_R12, REG_R13, REG_R14, REG_R15, REG_EFL};
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  for (std::size_t n = 0; n < kOrder.size(); ++n) {
    at_signal.at(n) = static_cast<std::uint64_t>(registers[kOrder.at(n)]);
  }
  place_of_signal = static_cast<std::uint64_t>(registers[REG_RIP]);
  // SAFETY: a number for comparison.
  signal_address = reinterpret_cast<std::uint64_t>(info->si_addr);
  signal_number = number;
  siglongjmp(back, 1);
}

/// The area that XSAVE has left, less what depends on when the kernel switched to another task:
/// which features it takes for as after a reset, whose registers it leaves out then. And less where
/// the last instruction of x87 lay.
std::vector<std::byte> vectors_out() {
  constexpr std::size_t kLastX87 = 8, kLastX87End = 24;
  constexpr std::byte kX87{1};
  auto vectors = std::vector(native_run_vectors_out.begin(), native_run_vectors_out.end());
  const bool is_x87_left_out = (vectors[kVectorFeatures] & kX87) == std::byte{0};
  if (is_x87_left_out) std::memcpy(vectors.data(), &kX87Control, sizeof kX87Control);
  const auto clear = [&vectors](std::size_t begin, std::size_t end) {
    std::fill(vectors.begin() + begin, vectors.begin() + end, std::byte{0});
  };
  clear(kLastX87, kLastX87End);
  clear(kVectorFeatures, kVectorFeatures + sizeof(std::uint64_t));
  return vectors;
}

struct Observation {
  RegisterFile registers{};
  std::uint64_t where = 0;  // as native_run_where; 0 after a signal
  int signal = 0;
  std::uint64_t address = 0;  // that it is about
  std::uint64_t place = 0;    // of the instruction that was signalled
  std::vector<std::byte> memory, vectors;
};

/// Its instructions would change what this process needs, or give another result each time.
bool is_left_out(const ZydisDecodedInstruction& in) {
  switch (in.mnemonic) {
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_RDPID:
    case ZYDIS_MNEMONIC_RDPRU:
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_WRFSBASE:
    case ZYDIS_MNEMONIC_WRGSBASE:
    case ZYDIS_MNEMONIC_WRPKRU:
    case ZYDIS_MNEMONIC_LFS:
    case ZYDIS_MNEMONIC_LGS:
    case ZYDIS_MNEMONIC_LSS: return true;
    case ZYDIS_MNEMONIC_MOV: return in.opcode == 0x8e && in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
    case ZYDIS_MNEMONIC_POP: return in.opcode_map == ZYDIS_OPCODE_MAP_0F;
    default: return false;
  }
}

std::size_t number_of(arch::Register which) {
  return static_cast<std::size_t>(std::ranges::find(arch::kByEncoding, which) -
                                  arch::kByEncoding.begin());
}

void put_number(std::span<std::byte> out, std::uint64_t value) {
  std::memcpy(out.data(), &value, out.size());
}

}  // namespace

std::string form_of(std::span<const std::byte> instruction) {
  std::vector<std::byte> bytes(instruction.begin(), instruction.end());
  const auto in = decode_raw(instruction);
  if (!in) return {};
  bytes.resize(in->length);
  const auto blank = [&](std::size_t at, unsigned bits) {
    for (std::size_t n = 0; n < bits / 8; ++n) bytes.at(at + n) = std::byte{0};
  };
  if (in->raw.disp.size != 0) blank(in->raw.disp.offset, in->raw.disp.size);
  for (const auto& imm : in->raw.imm) {
    if (imm.size != 0) blank(imm.offset, imm.size);
  }
  // SAFETY: char may alias any bytes.
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct FormRunner::State {
  State() {
    void* const mapped = mmap(nullptr, kSize, PROT_READ | PROT_WRITE | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    CHECK(mapped != MAP_FAILED);
    arena = {static_cast<std::byte*>(mapped), kSize};
    stack_t apart{};
    apart.ss_sp = alternate.data();
    apart.ss_size = alternate.size();
    CHECK(sigaltstack(&apart, &former_stack) == 0);
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (std::size_t n = 0; n < kSignals.size(); ++n) {
      CHECK(sigaction(kSignals.at(n), &action, &former.at(n)) == 0);
    }
    put_exit(kTarget, native_run_taken);
    fill_vectors();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    for (std::size_t n = 0; n < kSignals.size(); ++n) {
      sigaction(kSignals.at(n), &former.at(n), nullptr);
    }
    sigaltstack(&former_stack, nullptr);
    munmap(arena.data(), arena.size());
  }

  std::uint64_t at(std::size_t offset) const {
    // SAFETY: names code and data of ours as numbers.
    return reinterpret_cast<std::uint64_t>(arena.data()) + offset;
  }
  /// jmp *0(%rip): changes no register.
  void put_exit(std::size_t offset, void (*landing)()) {
    const std::array<unsigned char, 6> jump = {0xff, 0x25, 0, 0, 0, 0};
    std::memcpy(arena.data() + offset, jump.data(), jump.size());
    std::memcpy(arena.data() + offset + jump.size(), &landing, sizeof landing);
  }
  /// x87 and SSE as after a reset, but with numbers in the registers of SSE.
  static void fill_vectors() {
    constexpr std::size_t kXmm = 160, kXmmEnd = 416;
    native_run_vectors_in.fill(std::byte{0});
    std::memcpy(native_run_vectors_in.data(), &kX87Control, sizeof kX87Control);
    for (std::size_t n = kXmm; n < kXmmEnd; ++n) {
      native_run_vectors_in.at(n) = static_cast<std::byte>(n * 7 + 3);
    }
    const std::uint64_t features = 3;
    std::memcpy(native_run_vectors_in.data() + kVectorFeatures, &features, sizeof features);
  }
  /// Data and stack: a known pattern, with the branch target where it is looked for.
  void fill(const Operation& of, bool pops_flags, std::uint64_t flags) {
    for (std::size_t n = kData; n < kEnd; ++n) {
      arena[n] = static_cast<std::byte>(n * 37 + (n >> 8));
    }
    const bool returns = of.flow == Flow::Return;
    if (returns) put_number(arena.subspan(kStackPointer, 8), at(kTarget));
    if (pops_flags) put_number(arena.subspan(kStackPointer, 8), flags);
    const bool branches = of.kind == InstructionClass::Call || of.kind == InstructionClass::Jmp;
    if (!branches || !of.memory) return;
    for (std::size_t n = kOperand - 0x40; n < kOperand + 0x40; n += 8) {
      put_number(arena.subspan(n, 8), at(kTarget));
    }
    for (std::size_t n = kStackPointer; n < kStackPointer + 0x100; n += 8) {
      put_number(arena.subspan(n, 8), at(kTarget));
    }
  }

  std::vector<std::byte> fit(std::span<const std::byte> instruction) const;
  RegisterFile registers_for(const Operation& of, unsigned round);
  Observation run_at(std::size_t offset, const RegisterFile& in, const Operation& of,
                     bool pops_flags, std::uint64_t way_back = 0);
  void forget_below_stack(Observation& of) const;
  std::string difference(const Observation& there, const Observation& here,
                         std::size_t slot_bytes) const;

  static constexpr std::array kSignals = {SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGTRAP};
  std::span<std::byte> arena;
  std::array<struct sigaction, kSignals.size()> former{};
  stack_t former_stack{};
  std::vector<std::byte> alternate = std::vector<std::byte>(1 << 16);
  std::mt19937_64 random{7};
};

/// The instruction with displacements that lead into the arena.
std::vector<std::byte> FormRunner::State::fit(std::span<const std::byte> instruction) const {
  std::vector<std::byte> bytes(instruction.begin(), instruction.end());
  const auto in = *decode_raw(instruction);
  const Instruction facts = summarize(in, GuestVirt(at(kCode)));
  const std::uint64_t next = at(kCode) + in.length;
  if (facts.target.raw() != 0 && facts.flow != Flow::TableJump) {
    const auto& imm = in.raw.imm[0];
    put_number(std::span(bytes).subspan(imm.offset, imm.size / 8), at(kTarget) - next);
    return bytes;
  }
  const auto& disp = in.raw.disp;
  if (disp.size == 0) return bytes;
  const auto field = std::span(bytes).subspan(disp.offset, disp.size / 8);
  const bool has_base = in.raw.modrm.mod == 1 || in.raw.modrm.mod == 2;
  if (facts.rip_relative) {
    put_number(field, at(kOperand) - next);
  } else if (has_base) {
    put_number(field, 0x10);
  } else {
    put_number(field, at(kOperand));
  }
  return bytes;
}

/// Registers that lead the operand to memory of ours; the others are any, or small numbers.
RegisterFile FormRunner::State::registers_for(const Operation& of, unsigned round) {
  RegisterFile in;
  const bool small = round % 2 == 1;
  for (auto& value : in) value = small ? random() % 64 : random();
  in[16] = (random() & kStatusFlags) | kSaneFlags;
  in[kRsp] = at(kStackPointer);
  if (of.kind == InstructionClass::String) {
    in[1] = random() % 4;
    in[6] = at(kOperand) + 0x200;
    in[7] = at(kOperand);
    return in;
  }
  if (of.kind == InstructionClass::Jcc) in[1] = random() % 3;
  if (of.target_register != nullptr && of.target_register != arch::kStackPointer) {
    in.at(number_of(of.target_register)) = at(kTarget);
  }
  if (!of.memory) return in;
  const MemoryOperand& operand = *of.memory;
  const bool one_register = operand.base == operand.index;
  std::uint64_t rest = at(kOperand) - static_cast<std::uint64_t>(operand.displacement);
  if (operand.index != nullptr && !one_register) {
    const bool is_table = operand.base == nullptr;
    const std::uint64_t index = is_table ? 0 : random() % 8;
    in.at(number_of(operand.index)) = index;
    rest -= index * operand.scale;
  }
  if (operand.base == nullptr || operand.base == arch::kStackPointer) return in;
  in.at(number_of(operand.base)) = one_register ? rest / (1U + operand.scale) : rest;
  return in;
}

/// `way_back`: is put on the stack; 0: nothing is.
Observation FormRunner::State::run_at(std::size_t offset, const RegisterFile& in,
                                      const Operation& of, bool pops_flags,
                                      std::uint64_t way_back) {
  fill(of, pops_flags, in[16]);
  std::ranges::copy(in, native_run_in);
  if (way_back != 0) {
    put_number(arena.subspan(kStackPointer - sizeof way_back, sizeof way_back), way_back);
    native_run_in[kRsp] -= sizeof way_back;
  }
  native_run_entry = at(offset);
  native_run_where = 0;
  signal_number = 0;
  native_run_vectors_out.fill(std::byte{0});
  if (sigsetjmp(back, 1) == 0) native_run();
  Observation out;
  out.signal = signal_number;
  if (out.signal != 0) {
    out.registers = at_signal;
    if (way_back != 0) out.registers.at(kRsp) += sizeof way_back;
    out.address = signal_address;
    out.place = place_of_signal;
  } else {
    std::ranges::copy(native_run_out, out.registers.begin());
    out.where = native_run_where;
    out.vectors = vectors_out();
  }
  const auto memory = arena.subspan(kData, kEnd - kData);
  out.memory = {memory.begin(), memory.end()};
  return out;
}

/// There code may leave anything.
void FormRunner::State::forget_below_stack(Observation& of) const {
  constexpr std::size_t kMost = 16;
  const std::uint64_t end = of.registers.at(kRsp) - at(kData);
  if (end < kMost || end > of.memory.size()) return;
  std::fill_n(of.memory.begin() + static_cast<std::ptrdiff_t>(end - kMost), kMost, std::byte{0});
}

/// Empty where both did the same.
std::string FormRunner::State::difference(const Observation& there, const Observation& here,
                                          std::size_t slot_bytes) const {
  if (there.signal != here.signal) {
    return fmt::format("signal {} in the slot, {} in place", there.signal, here.signal);
  }
  if (there.where != here.where) return "it goes on elsewhere";
  for (std::size_t n = 0; n < there.registers.size(); ++n) {
    if (there.registers.at(n) == here.registers.at(n)) continue;
    return fmt::format("register {} is {:#x}, not {:#x}", n, there.registers.at(n),
                       here.registers.at(n));
  }
  if (there.memory != here.memory) return "memory differs";
  if (there.vectors != here.vectors) return "vectors differ";
  if (there.signal == 0) return {};
  if (here.place != at(kCode)) return {};  // the branch went there, and failed there
  if (there.place - at(kSlot) >= slot_bytes) return "the signal is at another place";
  const bool about_itself = here.address == here.place || here.address == 0;
  if (!about_itself && there.address != here.address) return "the signal is about another address";
  return {};
}

FormRunner::FormRunner() : state_(std::make_unique<State>()) {}
FormRunner::~FormRunner() = default;

FormVerdict FormRunner::run_beside(std::span<const std::byte> instruction,
                                   std::span<const std::byte> displaced, unsigned rounds) {
  State& s = *state_;
  using Kind = FormVerdict::Kind;
  const auto raw = decode_raw(instruction);
  if (!raw) return {Kind::Refused, "not an instruction"};
  if (is_left_out(*raw)) return {Kind::LeftOut, {}};
  const auto bytes = s.fit(instruction);
  const GuestVirt here(s.at(kCode));
  const auto slot = relocate(s.fit(displaced), here, GuestVirt(s.at(kSlot)));
  if (!slot) return {Kind::Refused, slot.error().message};
  const Operation operation = *decode_operation(bytes, here);
  std::ranges::copy(bytes, s.arena.begin() + kCode);
  s.put_exit(kCode + bytes.size(), native_run_next);
  std::ranges::copy(*slot, s.arena.begin() + kSlot);
  const bool pops_flags =
      raw->mnemonic == ZYDIS_MNEMONIC_POPF || raw->mnemonic == ZYDIS_MNEMONIC_POPFQ;

  FormVerdict verdict;
  bool ran = false;
  for (unsigned round = 0; round < rounds; ++round) {
    const RegisterFile in = s.registers_for(operation, round);
    const Observation in_place = s.run_at(kCode, in, operation, pops_flags);
    const Observation in_slot = s.run_at(kSlot, in, operation, pops_flags);
    ran |= in_place.signal == 0;
    verdict.what = s.difference(in_slot, in_place, slot->size());
    if (!verdict.what.empty()) return {Kind::Different, verdict.what};
  }
  const auto returning = relocate_with_return(s.fit(displaced), here, GuestVirt(s.at(kSlot)));
  if (returning) std::ranges::copy(returning->bytes, s.arena.begin() + kSlot);
  for (unsigned round = 0; returning && round < rounds; ++round) {
    const RegisterFile in = s.registers_for(operation, round);
    Observation in_place = s.run_at(kCode, in, operation, pops_flags);
    Observation in_slot = s.run_at(kSlot, in, operation, pops_flags, s.at(kCode) + bytes.size());
    s.forget_below_stack(in_place);
    s.forget_below_stack(in_slot);
    verdict.what = s.difference(in_slot, in_place, returning->bytes.size());
    if (!verdict.what.empty()) return {Kind::Different, verdict.what + ", with a return"};
  }
  verdict.kind = ran ? Kind::Same : Kind::Signal;
  return verdict;
}

}  // namespace ringside::disasm
