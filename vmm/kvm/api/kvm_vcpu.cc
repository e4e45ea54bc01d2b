#include "vmm/kvm/api/kvm_vcpu.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/kvm/api/kvm_system.h"
#include "vmm/kvm/host/kvm_registers.h"

namespace ringside::vmm::kvm {

namespace {

/// struct kvm_msrs with one entry. Not that struct itself, for the reason that CpuidTable has.
struct OneMsr {
  std::uint32_t count = 1, padding = 0;
  kvm_msr_entry entry{};
};
static_assert(sizeof(OneMsr) == 24, "as in C");
constexpr unsigned long kGetMsrs = _IOC(_IOC_READ | _IOC_WRITE, KVMIO, 0x88, 8);
constexpr unsigned long kSetMsrs = _IOC(_IOC_WRITE, KVMIO, 0x89, 8);

}  // namespace

Result<KvmVcpu> KvmVcpu::map(UniqueFd fd, std::size_t run_size, std::uint32_t dirty_ring_size) {
  void* run = mmap(nullptr, run_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (run == MAP_FAILED) return Unexpected<Error>(kvm_error("mapping a vCPU"));
  // SAFETY: KVM keeps a kvm_run at the start of this mapping (api.rst, section 5).
  KvmVcpu vcpu(std::move(fd), static_cast<kvm_run*>(run), run_size, {});
  if (dirty_ring_size == 0) return vcpu;
  void* ring = mmap(nullptr, dirty_ring_size * sizeof(kvm_dirty_gfn), PROT_READ | PROT_WRITE,
                    MAP_SHARED, vcpu.fd_.get(), KVM_DIRTY_LOG_PAGE_OFFSET * arch::kPageSize);
  if (ring == MAP_FAILED) return Unexpected<Error>(kvm_error("mapping a ring of dirty pages"));
  // SAFETY: api.rst, 8.29: the ring is an array of kvm_dirty_gfn of the size we asked for.
  vcpu.ring_ = {static_cast<kvm_dirty_gfn*>(ring), dirty_ring_size};
  return vcpu;
}

KvmVcpu::KvmVcpu(KvmVcpu&& other) noexcept
    : fd_(std::move(other.fd_)),
      run_(std::exchange(other.run_, nullptr)),
      run_size_(other.run_size_),
      ring_(std::exchange(other.ring_, {})) {}

KvmVcpu::~KvmVcpu() {
  if (!ring_.empty()) munmap(ring_.data(), ring_.size_bytes());
  if (run_ != nullptr) munmap(run_, run_size_);
}

int KvmVcpu::run() {
  return ioctl(fd_.get(), KVM_RUN, 0) == 0 ? 0 : errno;
}

std::span<std::byte> KvmVcpu::port_data() {
  const std::uint64_t offset = run_->io.data_offset;
  const std::uint64_t size = std::uint64_t{run_->io.size} * run_->io.count;
  if (offset > run_size_ || size > run_size_ - offset) return {};
  // SAFETY: checked against the mapping; KVM's thread is ours, so nobody writes now.
  return {reinterpret_cast<std::byte*>(run_) + offset, static_cast<std::size_t>(size)};
}

void KvmVcpu::share_registers() {
  run_->kvm_valid_regs = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
}

Result<void> KvmVcpu::set_cpuid(const CpuidTable& table) {
  TRY(kvm_call(fd_.get(), kSetCpuid, "KVM_SET_CPUID2", &table));
  return {};
}

Result<kvm_regs> KvmVcpu::regs() const {
  kvm_regs regs;
  TRY(kvm_call(fd_.get(), KVM_GET_REGS, "KVM_GET_REGS", &regs));
  return regs;
}

Result<void> KvmVcpu::set_regs(const kvm_regs& regs) {
  TRY(kvm_call(fd_.get(), KVM_SET_REGS, "KVM_SET_REGS", &regs));
  return {};
}

Result<kvm_sregs> KvmVcpu::sregs() const {
  kvm_sregs sregs;
  TRY(kvm_call(fd_.get(), KVM_GET_SREGS, "KVM_GET_SREGS", &sregs));
  return sregs;
}

Result<void> KvmVcpu::set_sregs(const kvm_sregs& sregs) {
  TRY(kvm_call(fd_.get(), KVM_SET_SREGS, "KVM_SET_SREGS", &sregs));
  return {};
}

std::optional<std::uint64_t> KvmVcpu::msr(std::uint32_t index) const {
  OneMsr one;
  one.entry.index = index;
  if (ioctl(fd_.get(), kGetMsrs, &one) != 1) return std::nullopt;
  return one.entry.data;
}

bool KvmVcpu::set_msr(std::uint32_t index, std::uint64_t value) {
  OneMsr one;
  one.entry.index = index;
  one.entry.data = value;
  return ioctl(fd_.get(), kSetMsrs, &one) == 1;
}

Result<kvm_vcpu_events> KvmVcpu::events() const {
  kvm_vcpu_events events{};
  TRY(kvm_call(fd_.get(), KVM_GET_VCPU_EVENTS, "KVM_GET_VCPU_EVENTS", &events));
  return events;
}

Result<void> KvmVcpu::set_events(const kvm_vcpu_events& events) {
  TRY(kvm_call(fd_.get(), KVM_SET_VCPU_EVENTS, "KVM_SET_VCPU_EVENTS", &events));
  return {};
}

Result<void> KvmVcpu::set_mp_state(std::uint32_t state) {
  kvm_mp_state mp{};
  mp.mp_state = state;
  TRY(kvm_call(fd_.get(), KVM_SET_MP_STATE, "KVM_SET_MP_STATE", &mp));
  return {};
}

bool KvmVcpu::is_halted() const {
  kvm_mp_state mp{};
  return ioctl(fd_.get(), KVM_GET_MP_STATE, &mp) == 0 && mp.mp_state == KVM_MP_STATE_HALTED;
}

Result<void> KvmVcpu::set_debug(const DebugSetup& setup) {
  kvm_guest_debug debug{};
  debug.control = setup.control;
  std::ranges::copy(setup.addresses, std::begin(debug.arch.debugreg));
  debug.arch.debugreg[7] = setup.dr7;
  TRY(kvm_call(fd_.get(), KVM_SET_GUEST_DEBUG, "KVM_SET_GUEST_DEBUG", &debug));
  return {};
}

Result<void> KvmVcpu::set_guest_dr6(std::uint64_t value) {
  kvm_debugregs registers{};
  TRY(kvm_call(fd_.get(), KVM_GET_DEBUGREGS, "KVM_GET_DEBUGREGS", &registers));
  registers.dr6 = value;
  TRY(kvm_call(fd_.get(), KVM_SET_DEBUGREGS, "KVM_SET_DEBUGREGS", &registers));
  return {};
}

std::optional<std::uint64_t> KvmVcpu::tsc_offset() const {
  std::uint64_t offset = 0;
  kvm_device_attr attribute{};
  attribute.group = KVM_VCPU_TSC_CTRL;
  attribute.attr = KVM_VCPU_TSC_OFFSET;
  attribute.addr = reinterpret_cast<std::uint64_t>(&offset);
  if (ioctl(fd_.get(), KVM_GET_DEVICE_ATTR, &attribute) != 0) return std::nullopt;
  return offset;
}

std::optional<GuestPhys> KvmVcpu::translate(GuestVirt at) const {
  kvm_translation translation{};
  translation.linear_address = at.raw();
  if (ioctl(fd_.get(), KVM_TRANSLATE, &translation) != 0 || translation.valid == 0) {
    return std::nullopt;
  }
  return GuestPhys(translation.physical_address);
}

Result<Registers> KvmVcpu::registers() const {
  const kvm_regs regs = TRY(this->regs());
  const kvm_sregs sregs = TRY(this->sregs());
  return to_registers(regs, sregs, vmm::kvm::kernel_gs_base(*this));
}

bool DirtyRing::harvest(const std::function<void(std::uint32_t slot, std::uint64_t page)>& tell) {
  bool any = false;
  for (std::size_t seen = 0; seen < entries_.size(); ++seen) {
    kvm_dirty_gfn& entry = entries_[next_];
    // SAFETY: KVM writes the entry before its flag, and leaves both alone until we change the flag.
    if (__atomic_load_n(&entry.flags, __ATOMIC_ACQUIRE) != KVM_DIRTY_GFN_F_DIRTY) break;
    tell(entry.slot, entry.offset);
    __atomic_store_n(&entry.flags, std::uint32_t{KVM_DIRTY_GFN_F_RESET}, __ATOMIC_RELEASE);
    next_ = (next_ + 1) % entries_.size();
    any = true;
  }
  return any;
}

}  // namespace ringside::vmm::kvm
