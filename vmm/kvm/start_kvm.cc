// From what the user asked for to a machine of our own: the checks that need neither KVM nor files;
// the others are where what they check is opened.
#include "vmm/kvm/kvm_machine.h"
#include "vmm/machine.h"
#include "vmm/shared_ram.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kSmallestRam = 16 << 20;  // a kernel for teaching; Linux says what it needs

}  // namespace

Result<std::unique_ptr<Machine>> start_kvm(const MachineConfig& config) {
  if (config.keep) {
    return fail(ErrorCode::Unsupported,
                "a machine of --machine kvm lives in this process and ends with it; to keep a "
                "guest, take --machine qemu or qemu-kvm");
  }
  TRY(check_ram_size(config.memory, host_memory(), kSmallestRam));
  auto machine = TRY(kvm::KvmMachine::create(config));
  if (config.progress) config.progress("starting our own VMM with KVM");
  return machine;
}

}  // namespace ringside::vmm
