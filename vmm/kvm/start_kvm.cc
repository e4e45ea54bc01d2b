// The launcher's own checks are those that need neither KVM nor files. The others are made where
// the thing that they check is opened.
#include "vmm/kvm/start_kvm.h"

#include "vmm/kvm/kvm_machine.h"
#include "vmm/shared_ram.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kSmallestRam = 16 << 20;  // a kernel for teaching; Linux says what it needs

}  // namespace

Result<StartedGuest> start_kvm(const GuestConfig& guest, const KvmConfig& config) {
  TRY(check_ram_size(guest.memory, host_memory(), kSmallestRam));
  auto machine = TRY(kvm::KvmMachine::create(guest, config));
  if (guest.progress) guest.progress("starting our own VMM with KVM");
  const CommandPort port = machine->command_port();
  return StartedGuest{std::move(machine), port};
}

}  // namespace ringside::vmm
