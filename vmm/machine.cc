// The scope guard around a pause.
#include "vmm/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "vmm/base/host_cpu.h"

namespace ringside::vmm {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Result<PausedMachine> PausedMachine::pause(Machine& machine) {
  Vcpus& vcpus = machine.vcpus();
  machine.stops().begin_pause(host_tsc(), Clock::now());
  if (auto paused = vcpus.pause(); !paused) {
    machine.stops().end_pause(host_tsc(), Clock::now());
    return tl::make_unexpected(std::move(paused).error());
  }
  return PausedMachine(&machine);
}

PausedMachine::~PausedMachine() {
  // A machine that cannot resume has ended; state() says so, and nobody could act on it here.
  if (machine_ == nullptr) return;
  (void)machine_->vcpus().resume();
  machine_->stops().end_pause(host_tsc(), Clock::now());
}

Result<void> PausedMachine::write_code(const PageTable& table,
                                       std::span<const VirtualCodeWrite> writes) {
  std::vector<CodeWrite> physical;
  physical.reserve(writes.size());
  std::optional<GuestVirt> lost;
  for (const VirtualCodeWrite& write : writes) {
    if (const auto at = translate(memory(), table, write.at)) {
      physical.push_back({at->address, write.byte, write.is_joined});
    } else if (!lost) {
      lost = write.at;
    }
  }
  if (!physical.empty()) TRY(write_code(physical));
  if (!lost) return {};
  return fail(ErrorCode::Invalid,
              fmt::format("there is no code to write at {:#x}: it is not mapped", lost->raw()));
}

/// A translation begins with an instruction, and each has a byte that is not 0.
Result<void> PausedMachine::clear_code(GuestPhys at, std::uint64_t size) {
  std::vector<std::byte> code(size);
  if (!memory().read(at, code)) return fail(ErrorCode::Io, "code to be cleared is not in memory");
  if (machine_->code().is_needed()) {
    std::vector<CodeWrite> writes;
    for (std::uint64_t n = 0; n < size; ++n) {
      if (code[n] != std::byte{0}) writes.push_back({at.wrapping_add(n), 0});
    }
    if (!writes.empty()) TRY(write_code(writes));
  }
  std::ranges::fill(code, std::byte{0});
  if (!memory().write(at, code)) return fail(ErrorCode::Io, "code cannot be cleared in memory");
  return {};
}

}  // namespace ringside::vmm
