// The scope guard around a pause.
#include "vmm/machine.h"

#include <fmt/format.h>

#include <vector>

namespace ringside::vmm {

Result<PausedMachine> PausedMachine::pause(Machine& machine) {
  TRY(machine.vcpus().pause());
  return PausedMachine(&machine);
}

PausedMachine::~PausedMachine() {
  // A machine that cannot resume has ended; state() says so, and nobody could act on it here.
  if (machine_ != nullptr) (void)machine_->vcpus().resume();
}

Result<void> PausedMachine::write_code(const PageTable& table,
                                       std::span<const VirtualCodeWrite> writes) {
  std::vector<CodeWrite> physical;
  physical.reserve(writes.size());
  std::optional<GuestVirt> lost;
  for (const VirtualCodeWrite& write : writes) {
    if (const auto at = translate(memory(), table, write.at)) {
      physical.push_back({at->address, write.byte});
    } else if (!lost) {
      lost = write.at;
    }
  }
  if (!physical.empty()) TRY(write_code(physical));
  if (!lost) return {};
  return fail(ErrorCode::Invalid,
              fmt::format("there is no code to write at {:#x}: it is not mapped", lost->raw()));
}

}  // namespace ringside::vmm
