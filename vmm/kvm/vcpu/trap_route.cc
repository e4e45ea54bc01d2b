#include "vmm/kvm/vcpu/trap_route.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "vmm/kvm/api/kvm_vm.h"
#include "vmm/kvm/host/identity_tables.h"
#include "vmm/kvm/vcpu/vcpu_state.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kTables = 0x1000, kCode = 0x4000, kMemory = 0x8000;
// out 0x80, al; nop; out 0x80, al; int3; hlt
constexpr std::uint8_t kProgram[] = {0xe6, 0x80, 0x90, 0xe6, 0x80, 0xcc, 0xf4};
constexpr std::uint64_t kNop = kCode + 2;
constexpr std::uint32_t kWatch = KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP;
constexpr std::uint32_t kIntercept = KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_SW_BP;
constexpr std::uint64_t kFirstRegister = 0x403;  // DR7: DR0 is an instruction breakpoint

class TrialMemory {
 public:
  TrialMemory()
      : bytes_(mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;
  ~TrialMemory() {
    if (bytes_ != MAP_FAILED) munmap(bytes_, kMemory);
  }
  bool ok() const { return bytes_ != MAP_FAILED; }
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(bytes_), kMemory}; }

 private:
  void* bytes_;
};

/// Identity-mapped tables with one 2 MiB page, and the code.
void fill(std::span<std::byte> memory) {
  write_identity_tables(memory, kTables);
  std::memcpy(&memory[kCode], kProgram, sizeof kProgram);
}

/// Runs to the next exit, signals aside; false when KVM refuses.
bool run_on(KvmVcpu& vcpu) {
  int error;
  do {
    error = vcpu.run();
  } while (error == EINTR || error == EAGAIN);
  return error == 0;
}

TrapBehavior judge(KvmVcpu& vcpu, bool can_block_irqs) {
  TrapBehavior trap_behavior;
  trap_behavior.can_block_irqs = can_block_irqs;
  const kvm_run& state = vcpu.state();
  if (!run_on(vcpu) || state.exit_reason != KVM_EXIT_IO) return trap_behavior;
  trap_behavior.rip_after_out = state.s.regs.regs.rip != kCode;
  if (!vcpu.set_debug({kWatch, {kNop}, kFirstRegister}) || !run_on(vcpu)) return trap_behavior;
  trap_behavior.watches = state.exit_reason == KVM_EXIT_DEBUG;
  if (!vcpu.set_debug({kIntercept, {}, 0})) return trap_behavior;
  if (trap_behavior.watches && !run_on(vcpu)) return trap_behavior;  // to the second out
  if (!run_on(vcpu)) return trap_behavior;
  if (state.exit_reason == KVM_EXIT_DEBUG) trap_behavior.route = TrapRoute::Intercepted;
  if (state.exit_reason == KVM_EXIT_INTERNAL_ERROR &&
      state.internal.suberror == KVM_INTERNAL_ERROR_EMULATION) {
    trap_behavior.route = TrapRoute::Emulated;
  }
  return trap_behavior;  // else: shut down, for want of an IDT
}

}  // namespace

Result<TrapBehavior> try_traps(const KvmSystem& system) {
  TrialMemory memory;
  if (!memory.ok()) return Unexpected<Error>(kvm_error("mapping a page"));
  fill(memory.bytes());
  const KvmVm vm = TRY(KvmVm::create(system, KvmVm::Chips::None));
  TRY(vm.set_memory(0, GuestPhys(0), memory.bytes()));
  KvmVcpu vcpu = TRY(vm.create_vcpu(system, 0));
  const auto cpuid = TRY(system.supported_cpuid());
  TRY(vcpu.set_cpuid(*cpuid));

  BootState boot;
  boot.entry = kCode;
  boot.cr3 = kTables;
  const kvm_sregs reset = TRY(vcpu.sregs());
  TRY(vcpu.set_sregs(start_sregs(reset, boot)));
  TRY(vcpu.set_regs(start_regs(boot)));
  vcpu.share_registers();
  return judge(vcpu, (system.check(KVM_CAP_SET_GUEST_DEBUG2) & KVM_GUESTDBG_BLOCKIRQ) != 0);
}

}  // namespace ringside::vmm::kvm
