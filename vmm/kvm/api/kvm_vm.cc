#include "vmm/kvm/api/kvm_vm.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "vmm/arch/arch.h"
#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {

namespace {

constexpr std::uint32_t kDirtyRing = 4096;  // entries of 16 bytes: 64 KiB a vCPU

/// Before the first vCPU. Without a ring only the event Dirty is missing.
std::uint32_t enable_dirty_ring(const KvmSystem& system, int vm) {
  constexpr std::uint32_t kBytes = kDirtyRing * sizeof(kvm_dirty_gfn);
  // The one with explicit ordering first: it is what KVM calls the ring since Linux 6.1.
  for (const int capability : {KVM_CAP_DIRTY_LOG_RING_ACQ_REL, KVM_CAP_DIRTY_LOG_RING}) {
    if (system.check(capability) < static_cast<int>(kBytes)) continue;
    kvm_enable_cap enable{};
    enable.cap = static_cast<std::uint32_t>(capability);
    enable.args[0] = kBytes;
    if (ioctl(vm, KVM_ENABLE_CAP, &enable) == 0) return kDirtyRing;
  }
  return 0;
}

Result<int> create_vm(const KvmSystem& system) {
  int fd;
  do {
    fd = ioctl(system.fd(), KVM_CREATE_VM, 0);
  } while (fd < 0 && errno == EINTR);  // a signal while KVM allocates
  if (fd < 0) return Unexpected<Error>(kvm_error("KVM_CREATE_VM"));
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

/// struct kvm_irq_routing with its entries. Not that struct itself, for the reason that CpuidTable
/// has.
struct Routes {
  static constexpr std::uint32_t kPins = 24;  // of the IO-APIC; the two PICs have the first 16
  std::uint32_t count = 0, flags = 0;
  std::array<kvm_irq_routing_entry, kPins + 16> entries{};

  void add(std::uint32_t gsi, std::uint32_t chip, std::uint32_t pin) {
    kvm_irq_routing_entry& entry = entries[count++];
    entry.gsi = gsi;
    entry.type = KVM_IRQ_ROUTING_IRQCHIP;
    entry.u.irqchip.irqchip = chip;
    entry.u.irqchip.pin = pin;
  }
};
static_assert(offsetof(Routes, entries) == 8 && sizeof(kvm_irq_routing_entry) == 48, "as in C");
constexpr unsigned long kSetGsiRouting = _IOC(_IOC_WRITE, KVMIO, 0x6a, 8);

/// As the MADT says (boot/acpi_tables.cc) and PCs have it: the PIT's line, GSI 0, comes in at the
/// IO-APIC's pin 2, where the second PIC is cascaded in the first. KVM's own routing takes pin 0.
Result<void> route_lines(int vm) {
  Routes routes;
  for (std::uint32_t gsi = 0; gsi < Routes::kPins; ++gsi) {
    if (gsi == 2) continue;
    if (gsi < 8) routes.add(gsi, KVM_IRQCHIP_PIC_MASTER, gsi);
    if (gsi >= 8 && gsi < 16) routes.add(gsi, KVM_IRQCHIP_PIC_SLAVE, gsi - 8);
    routes.add(gsi, KVM_IRQCHIP_IOAPIC, gsi == 0 ? 2 : gsi);
  }
  TRY(kvm_call(vm, kSetGsiRouting, "KVM_SET_GSI_ROUTING", &routes));
  return {};
}

}  // namespace

Result<KvmVm> KvmVm::create(const KvmSystem& system, Chips chips) {
  UniqueFd fd(TRY(create_vm(system)));
  // Only some Intel CPUs need these two, and those need them before a vCPU runs.
  TRY(kvm_call(fd.get(), KVM_SET_TSS_ADDR, "KVM_SET_TSS_ADDR", kTssPages));
  std::uint64_t identity_map = kIdentityMapPage;
  TRY(kvm_call(fd.get(), KVM_SET_IDENTITY_MAP_ADDR, "KVM_SET_IDENTITY_MAP_ADDR", &identity_map));
  if (chips == Chips::None) return KvmVm(std::move(fd), 0);
  TRY(kvm_call(fd.get(), KVM_CREATE_IRQCHIP, "KVM_CREATE_IRQCHIP", 0));
  kvm_pit_config pit{};
  pit.flags = KVM_PIT_SPEAKER_DUMMY;  // port 0x61 too: guests time their TSC with it
  TRY(kvm_call(fd.get(), KVM_CREATE_PIT2, "KVM_CREATE_PIT2", &pit));
  TRY(route_lines(fd.get()));
  const std::uint32_t ring = enable_dirty_ring(system, fd.get());
  return KvmVm(std::move(fd), ring);
}

Result<void> KvmVm::set_memory(std::uint32_t slot, GuestPhys base, std::span<std::byte> bytes,
                               bool log_dirty) const {
  kvm_userspace_memory_region region{};
  region.slot = slot;
  region.flags = log_dirty ? KVM_MEM_LOG_DIRTY_PAGES : 0;
  region.guest_phys_addr = base.raw();
  region.memory_size = bytes.size();
  // SAFETY: KVM takes our address as a number; the owner of the VM keeps the mapping alive.
  region.userspace_addr = reinterpret_cast<std::uint64_t>(bytes.data());
  TRY(kvm_call(fd_.get(), KVM_SET_USER_MEMORY_REGION, "KVM_SET_USER_MEMORY_REGION", &region));
  return {};
}

Result<void> KvmVm::set_line(std::uint32_t gsi, bool level) const {
  kvm_irq_level line{};
  line.irq = gsi;
  line.level = level ? 1 : 0;
  TRY(kvm_call(fd_.get(), KVM_IRQ_LINE, "KVM_IRQ_LINE", &line));
  return {};
}

void KvmVm::reset_dirty_rings() const {
  ioctl(fd_.get(), KVM_RESET_DIRTY_RINGS, 0);  // tells how many; there is nothing to fail
}

Result<void> KvmVm::notify_by_event(std::uint64_t at, int event) const {
  kvm_ioeventfd notify{};
  notify.addr = at;
  notify.len = 4;
  notify.fd = event;
  TRY(kvm_call(fd_.get(), KVM_IOEVENTFD, "KVM_IOEVENTFD", &notify));
  return {};
}

Result<void> KvmVm::enable(std::uint32_t capability, std::uint64_t argument,
                           const char* name) const {
  kvm_enable_cap enable{};
  enable.cap = capability;
  enable.args[0] = argument;
  TRY(kvm_call(fd_.get(), KVM_ENABLE_CAP, name, &enable));
  return {};
}

Result<KvmVcpu> KvmVm::create_vcpu(const KvmSystem& system, unsigned index) const {
  UniqueFd fd(TRY(kvm_call(fd_.get(), KVM_CREATE_VCPU, "KVM_CREATE_VCPU", index)));
  fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  return KvmVcpu::map(std::move(fd), system.run_size(), dirty_ring_size_);
}

RamSlots::RamSlots(std::uint64_t size) : pieces_(place_ram(size)) {}

Result<void> RamSlots::set(const KvmVm& vm, const SharedRam& ram, bool log_dirty) const {
  for (std::uint32_t slot = 0; slot < pieces_.size(); ++slot) {
    const RamPiece& piece = pieces_[slot];
    TRY(vm.set_memory(slot, piece.base, ram.bytes_of(piece), log_dirty));
  }
  return {};
}

std::optional<GuestPhys> RamSlots::page(std::uint32_t slot, std::uint64_t page) const {
  if (slot >= pieces_.size() || page >= pieces_[slot].size / arch::kPageSize) return std::nullopt;
  return pieces_[slot].base.checked_add(page * arch::kPageSize);
}

}  // namespace ringside::vmm::kvm
