// The trial: a vCPU in 64-bit kernel mode, one page of code, one port write at its end.
// In this file, top to bottom: the guest code, its state, the trial (in the child), the judge.
// KVM API: Linux Documentation/virt/kvm/api.rst.
#include "vmm/kvm/host/kvm_fitness.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kvm.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vmm/base/process.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/host/cpuid.h"
#include "vmm/kvm/host/identity_tables.h"

namespace ringside::vmm {
namespace {

using std::chrono::milliseconds;

/// Five instructions a round: 1.5 million in all. A fit KVM does hundreds of millions a second (an
/// SVM that is itself translated by TCG: 300), an emulating one fewer than two.
constexpr std::uint32_t kRounds = 300'000;
/// Looked at in steps; a host that is busy with other things makes no rounds at all in many of
/// them, so only the steps count in which there are some, but fewer than a thousand a millisecond.
constexpr milliseconds kStep(10), kTimeLimit(5000);
constexpr unsigned kMostSlowSteps = 25;

constexpr std::uint64_t kTables = 0x1000, kCode = 0x4000, kLeft = 0x5000, kMemory = 0x8000;
constexpr std::uint8_t kDonePort = 0x80;

// clang-format off
constexpr std::uint8_t kProgram[] = {
    0xb9, kRounds & 0xff, kRounds >> 8 & 0xff, kRounds >> 16 & 0xff, kRounds >> 24,  // mov ecx
    0x89, 0x0c, 0x25, kLeft & 0xff, kLeft >> 8, 0, 0,  // round: mov [kLeft], ecx
    0xf3, 0x48, 0x0f, 0xb8, 0xd1,  // popcnt rdx, rcx
    0x48, 0x01, 0xd0,              // add rax, rdx
    0xff, 0xc9,                    // dec ecx
    0x75, 0xed,                    // jnz round
    0xe6, kDonePort,               // out port, al
};
// clang-format on
constexpr std::uint8_t kClac[] = {0x0f, 0x01, 0xca};

enum Outcome : int { Fit, NoDevice, NoAccess, NoKvm, NoVcpu, NoInstruction };

bool has_feature(const kvm::CpuidTable& table, std::uint32_t leaf,
                 std::uint32_t kvm_cpuid_entry2::*word, unsigned bit) {
  const kvm_cpuid_entry2* entry = table.find(leaf);
  return entry != nullptr && (entry->*word >> bit & 1) != 0;
}

/// Identity-mapped tables with one 2 MiB page, and the code; clac first where the CPU has it.
void write_guest(std::uint8_t* memory, bool with_clac) {
  kvm::write_identity_tables(std::as_writable_bytes(std::span(memory, kMemory)), kTables);
  std::uint8_t* code = memory + kCode;
  if (with_clac) {
    std::memcpy(code, kClac, sizeof kClac);
    code += sizeof kClac;
  }
  std::memcpy(code, kProgram, sizeof kProgram);
}

bool enter_kernel_mode(int vcpu) {
  kvm_sregs sregs;
  if (ioctl(vcpu, KVM_GET_SREGS, &sregs) != 0) return false;
  kvm_segment flat{};
  flat.limit = 0xffff'ffff;
  flat.selector = 0x10;
  flat.type = 3;
  flat.present = flat.s = flat.g = flat.db = 1;
  sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = flat;
  flat.selector = 0x8;
  flat.type = 11;
  flat.db = 0;
  flat.l = 1;
  sregs.cs = flat;
  sregs.cr0 = 0x8000'0031;  // PG, NE, ET, PE
  sregs.cr3 = kTables;
  sregs.cr4 = 0x20;    // PAE
  sregs.efer = 0x500;  // LME, LMA
  if (ioctl(vcpu, KVM_SET_SREGS, &sregs) != 0) return false;
  kvm_regs regs{};
  regs.rip = kCode;
  regs.rflags = 2;
  return ioctl(vcpu, KVM_SET_REGS, &regs) == 0;
}

Outcome run(int vcpu, const kvm_run& state) {
  int result;
  do {
    result = ioctl(vcpu, KVM_RUN, 0);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  const bool done = result == 0 && state.exit_reason == KVM_EXIT_IO && state.io.port == kDonePort;
  return done ? Fit : NoInstruction;
}

/// The whole trial; nothing is cleaned up, the process ends after it.
Outcome try_kvm(const char* device, std::uint8_t* memory) {
  const int system = open(device, O_RDWR | O_CLOEXEC);
  if (system < 0) return errno == EACCES || errno == EPERM ? NoAccess : NoDevice;
  if (ioctl(system, KVM_GET_API_VERSION, 0) != KVM_API_VERSION) return NoKvm;
  const int vm = ioctl(system, KVM_CREATE_VM, 0);
  if (vm < 0) return NoKvm;
  ioctl(vm, KVM_SET_TSS_ADDR, 0xfffb'd000);  // only some Intel CPUs need it
  static kvm::CpuidTable cpuid;              // too large for a stack frame, and we may not allocate
  if (ioctl(system, kvm::kGetSupportedCpuid, &cpuid) != 0) return NoVcpu;
  if (!has_feature(cpuid, 1, &kvm_cpuid_entry2::ecx, 23)) return NoInstruction;  // popcnt

  write_guest(memory, has_feature(cpuid, 7, &kvm_cpuid_entry2::ebx, 20));
  kvm_userspace_memory_region region{};
  region.memory_size = kMemory;
  region.userspace_addr = reinterpret_cast<std::uint64_t>(memory);
  if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) != 0) return NoVcpu;

  const int vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
  const int run_size = ioctl(system, KVM_GET_VCPU_MMAP_SIZE, 0);
  if (vcpu < 0 || run_size < static_cast<int>(sizeof(kvm_run))) return NoVcpu;
  void* state = mmap(nullptr, static_cast<std::size_t>(run_size), PROT_READ | PROT_WRITE,
                     MAP_SHARED, vcpu, 0);
  if (state == MAP_FAILED || ioctl(vcpu, kvm::kSetCpuid, &cpuid) != 0) return NoVcpu;
  if (!enter_kernel_mode(vcpu)) return NoVcpu;
  // SAFETY: KVM keeps a kvm_run at the start of this mapping (api.rst, section 5).
  return run(vcpu, *static_cast<const kvm_run*>(state));
}

std::string explain(int outcome, const char* device) {
  switch (outcome) {
    case NoDevice: return fmt::format("this host has no {}", device);
    case NoAccess: return fmt::format("{} may not be opened (are you in group kvm?)", device);
    case NoKvm: return fmt::format("{} does not speak the KVM API", device);
    case NoVcpu: return "this host's KVM cannot make a virtual CPU";
    case NoInstruction: return "this host's KVM cannot run ordinary kernel instructions";
    default: return "the trial of this host's KVM crashed";
  }
}

/// Waits for the trial's end; false when it is too slow to be waited for.
bool await_end(int pidfd, std::uint8_t* memory) {
  using std::chrono::steady_clock;
  // SAFETY: an aligned word, which the trial writes; until its first round it is 0.
  const std::atomic_ref<std::uint32_t> rounds_left(
      *reinterpret_cast<std::uint32_t*>(memory + kLeft));
  const auto start = steady_clock::now();
  auto before = start;
  std::uint32_t left_before = kRounds;
  for (unsigned slow_steps = 0; slow_steps < kMostSlowSteps && before - start < kTimeLimit;) {
    pollfd entry{pidfd, POLLIN, 0};
    const int ready = poll(&entry, 1, static_cast<int>(kStep.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    const auto now = steady_clock::now();
    const std::uint32_t left = rounds_left.load();
    if (left != 0 && left < left_before) {
      const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(now - before);
      if (left_before - left < microseconds.count()) ++slow_steps;
      left_before = left;
    }
    before = now;
  }
  return false;
}

KvmFitness judge(const char* device, std::uint8_t* memory) {
  const pid_t trial = fork();
  if (trial == 0) _exit(try_kvm(device, memory));
  if (trial < 0) return {false, fmt::format("KVM was not tried: {}", std::strerror(errno))};
  const UniqueFd pidfd = open_pidfd(trial);
  const bool ended = pidfd && await_end(pidfd.get(), memory);
  if (!ended) ::kill(trial, SIGKILL);
  const int status = await_child(trial).value_or(0);
  if (!ended) {
    return {false, "this host's KVM emulates kernel mode, far too slowly to boot Linux"};
  }
  const int outcome = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (outcome == Fit) return {true, {}};
  return {false, explain(outcome, device)};
}

}  // namespace

KvmFitness check_kvm(const char* device) {
  // Shared with the trial, so that its progress is seen.
  void* shared = mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    return {false, fmt::format("KVM was not tried: {}", std::strerror(errno))};
  }
  KvmFitness verdict = judge(device, static_cast<std::uint8_t*>(shared));
  munmap(shared, kMemory);
  return verdict;
}

}  // namespace ringside::vmm
