#include "vmm/kvm/kvm_guest.h"

#include <fmt/format.h>

#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/kvm/boot/layout.h"
#include "vmm/kvm/vcpu/vcpu_state.h"

namespace ringside::vmm::kvm {
namespace {

/// What firmware leaves in the model-specific registers; a KVM that lacks one has nothing to set.
void set_start_msrs(KvmVcpu& vcpu) {
  constexpr std::uint32_t kMiscEnable = 0x1a0, kMtrrDefault = 0x2ff;
  constexpr std::uint64_t kFastStrings = 1, kMtrrOnWriteBack = 0xc06;
  vcpu.set_msr(kMiscEnable, kFastStrings);
  vcpu.set_msr(kMtrrDefault, kMtrrOnWriteBack);
}

}  // namespace

Result<std::unique_ptr<KvmGuest>> KvmGuest::create(const KvmSystem& system, unsigned vcpus,
                                                   std::uint64_t memory) {
  prepare_kicks();
  const TrapBehavior trap_behavior = TRY(try_traps(system));
  SharedRam ram = TRY(SharedRam::create(memory));
  KvmVm vm = TRY(KvmVm::create(system, KvmVm::Chips::InKernel));
  std::unique_ptr<KvmGuest> guest(
      new KvmGuest(std::move(vm), std::move(ram), vcpus, trap_behavior));
  guest->guest_end_ = TRY(GuestEnd::create([gate = &guest->gate_] { gate->stop(); },
                                           [] {
                                             const Vcpu* const here = Vcpu::current();
                                             return here != nullptr ? here->scene() : std::string();
                                           }));
  TRY(guest->add_memory(false));
  TRY(guest->add_vcpus(system, vcpus));
  return guest;
}

KvmGuest::KvmGuest(KvmVm vm, SharedRam ram, unsigned vcpus, TrapBehavior trap_behavior)
    : ram_(std::move(ram)),
      vm_(std::move(vm)),
      memory_(ram_.guest_memory(place_ram(ram_.size()))),
      gate_(vcpus, [this](unsigned vcpu) { vcpus_[vcpu]->kick(); }),
      tap_(vcpus),
      breakpoints_(memory_, trap_behavior),
      trap_behavior_(trap_behavior) {}

KvmGuest::~KvmGuest() {
  stop();
}

Result<void> KvmGuest::add_memory(bool log_dirty) {
  std::uint32_t slot = 0;
  for (const RamPiece& piece : place_ram(ram_.size())) {
    TRY(vm_.set_memory(slot++, piece.base, ram_.bytes_of(piece), log_dirty));
  }
  return {};
}

Result<void> KvmGuest::log_dirty_pages(bool log) {
  return add_memory(log);
}

std::optional<GuestPhys> KvmGuest::dirty_page(std::uint32_t slot, std::uint64_t page) const {
  const auto pieces = place_ram(ram_.size());
  if (slot >= pieces.size() || page >= pieces[slot].size / arch::kPageSize) return std::nullopt;
  return pieces[slot].base.checked_add(page * arch::kPageSize);
}

Result<void> KvmGuest::add_vcpus(const KvmSystem& system, unsigned count) {
  shared_.reset(new VcpuShared{gate_, ports_, mmio_, memory_, tap_, breakpoints_, *guest_end_});
  shared_->trap_behavior = trap_behavior_;
  shared_->can_block_irqs = (system.check(KVM_CAP_SET_GUEST_DEBUG2) & KVM_GUESTDBG_BLOCKIRQ) != 0;
  shared_->reset_dirty_ring = [this] { vm_.reset_dirty_rings(); };
  shared_->dirty_page = [this](std::uint32_t slot, std::uint64_t page) {
    return dirty_page(slot, page);
  };
  const auto supported = TRY(system.supported_cpuid());
  const bool tsc_deadline = system.check(KVM_CAP_TSC_DEADLINE_TIMER) > 0;
  for (unsigned index = 0; index < count; ++index) {
    KvmVcpu kvm = TRY(vm_.create_vcpu(system, index));
    CpuidTable table = *supported;
    fit_cpuid(table, {index, count, tsc_deadline});
    TRY(kvm.set_cpuid(table));
    set_start_msrs(kvm);
    vcpus_.push_back(std::make_unique<Vcpu>(index, std::move(kvm), *shared_));
  }
  return {};
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
  if (!tap_.wants(VcpuEvent::Kind::Inject)) return;
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
    // Linux with page-table isolation: a vCPU in user mode has the kernel's table beside its own
    // (arch/x86/include/asm/pgtable.h, PTI_PGTABLE_SWITCH_BIT).
    constexpr std::uint64_t kUserHalf = 0x1000;
    if ((registers->cr3 & kUserHalf) == 0) continue;
    registers->cr3 &= ~kUserHalf;
    if (const auto found = vcpu->locate(*registers, at)) return found;
  }
  const auto loaded = loaded_at ? loaded_at(at) : std::nullopt;
  if (loaded || !one_to_one) return loaded;
  return GuestPhys(at.raw());
}

}  // namespace ringside::vmm::kvm
