#include "vmm/kvm/kvm_guest.h"

#include <fmt/format.h>

#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/kvm/boot/layout.h"
#include "vmm/kvm/vcpu/vcpu_state.h"

namespace ringside::vmm::kvm {
namespace {

/// Sets the model-specific registers as firmware leaves them. A KVM that lacks one needs none.
void set_start_msrs(KvmVcpu& vcpu) {
  constexpr std::uint32_t kMiscEnable = 0x1a0, kMtrrDefault = 0x2ff;
  constexpr std::uint64_t kFastStrings = 1, kMtrrOnWriteBack = 0xc06;
  vcpu.set_msr(kMiscEnable, kFastStrings);
  vcpu.set_msr(kMtrrDefault, kMtrrOnWriteBack);
}

Result<std::vector<KvmVcpu>> make_vcpus(const KvmSystem& system, const KvmVm& vm, unsigned count) {
  const auto supported = TRY(system.supported_cpuid());
  const bool tsc_deadline = system.check(KVM_CAP_TSC_DEADLINE_TIMER) > 0;
  std::vector<KvmVcpu> vcpus;
  vcpus.reserve(count);
  for (unsigned index = 0; index < count; ++index) {
    KvmVcpu vcpu = TRY(vm.create_vcpu(system, index));
    CpuidTable table = *supported;
    fit_cpuid(table, {index, count, tsc_deadline});
    TRY(vcpu.set_cpuid(table));
    set_start_msrs(vcpu);
    vcpus.push_back(std::move(vcpu));
  }
  return vcpus;
}

/// Last words for an end that a device sees: the state of the vCPU that accessed the device.
std::string scene_here() {
  const Vcpu* const here = Vcpu::current();
  return here != nullptr ? here->scene() : std::string();
}

}  // namespace

Result<std::unique_ptr<KvmGuest>> KvmGuest::create(const KvmSystem& system, unsigned vcpus,
                                                   std::uint64_t memory) {
  prepare_kicks();
  const TrapBehavior trap_behavior = TRY(try_traps(system));
  SharedRam ram = TRY(SharedRam::create(memory));
  KvmVm vm = TRY(KvmVm::create(system, KvmVm::Chips::InKernel));
  TRY(RamSlots(memory).set(vm, ram, false));
  std::vector<KvmVcpu> made = TRY(make_vcpus(system, vm, vcpus));
  UniqueFd end_event = TRY(GuestEnd::make_event());
  return std::unique_ptr<KvmGuest>(new KvmGuest(std::move(vm), std::move(ram), std::move(made),
                                                trap_behavior, std::move(end_event)));
}

KvmGuest::KvmGuest(KvmVm vm, SharedRam ram, std::vector<KvmVcpu> vcpus, TrapBehavior trap_behavior,
                   UniqueFd end_event)
    : ram_(std::move(ram)),
      vm_(std::move(vm)),
      ram_slots_(ram_.size()),
      memory_(ram_.guest_memory(place_ram(ram_.size()))),
      gate_(static_cast<unsigned>(vcpus.size()), [this](unsigned vcpu) { vcpus_[vcpu]->kick(); }),
      guest_end_(
          std::move(end_event), [this] { gate_.stop(); }, scene_here),
      subscription_(static_cast<unsigned>(vcpus.size())),
      breakpoints_(memory_, trap_behavior) {
  const VcpuShared shared{gate_,        ports_,     mmio_, memory_,    subscription_,
                          breakpoints_, guest_end_, vm_,   ram_slots_, trap_behavior};
  for (unsigned index = 0; index < vcpus.size(); ++index) {
    vcpus_.push_back(std::make_unique<Vcpu>(index, std::move(vcpus[index]), shared));
  }
}

KvmGuest::~KvmGuest() {
  stop();
}

Result<void> KvmGuest::start(const BootState& boot) {
  KvmVcpu& first = vcpus_[0]->kvm();
  const kvm_sregs reset = TRY(first.sregs());
  TRY(first.set_sregs(start_sregs(reset, boot)));
  TRY(first.set_regs(start_regs(boot)));
  gate_.pause();
  // KVM made the others "uninitialized": they wait for INIT and SIPI in KVM_RUN.
  for (const auto& vcpu : vcpus_) TRY(vcpu->start());
  return {};
}

void KvmGuest::stop() {
  gate_.stop();
  for (const auto& vcpu : vcpus_) vcpu->join();
}

void KvmGuest::set_line(std::uint32_t gsi, bool level) {
  if (!vm_.set_line(gsi, level)) return;  // a line that does not exist: the board has none
  if (!subscription_.wants(VcpuEvent::Kind::Inject)) return;
  Vcpu* const here = Vcpu::current();
  (here != nullptr ? *here : *vcpus_[0]).note_line(gsi, level);
}

Result<Registers> KvmGuest::registers(unsigned vcpu) const {
  if (vcpu >= vcpus_.size()) {
    return fail(ErrorCode::NotFound, fmt::format("there is no vCPU {}", vcpu));
  }
  return vcpus_[vcpu]->kvm().registers();
}

std::optional<GuestPhys> KvmGuest::locate(GuestVirt at,
                                          const VcpuExits::LoadedAt& loaded_at) const {
  bool one_to_one = false;
  for (const auto& vcpu : vcpus_) {
    auto registers = vcpu->kvm().registers();
    if (!registers) continue;
    if (!arch::pages(*registers)) {
      one_to_one = true;
      continue;
    }
    if (const auto found = vcpu->locate(*registers, at)) return found;
    // With page-table isolation a vCPU in user mode has the kernel's table beside its own.
    const GuestPhys kernels = arch::kernel_half_root(registers->cr3);
    if (kernels == arch::root_of(registers->cr3)) continue;
    registers->cr3 = kernels.raw();
    if (const auto found = vcpu->locate(*registers, at)) return found;
  }
  const auto loaded = loaded_at ? loaded_at(at) : std::nullopt;
  if (loaded || !one_to_one) return loaded;
  return GuestPhys(at.raw());
}

}  // namespace ringside::vmm::kvm
