// In this file, top to bottom: the places, traps there, what is told.
#include "providers/tracer/kprobe_watch.h"

#include <algorithm>
#include <utility>

#include "providers/clock/host_clock.h"
#include "providers/tracer/watched_entry.h"
#include "providers/trap_points/sites/function_sites.h"
#include "vmm/arch/arch.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {
namespace {

using guest_linux::offset_of;

constexpr const char* kReader = "arch_prepare_kprobe";
constexpr const char* kOptimizer = "arch_prepare_optimized_kprobe";
constexpr const char* kWhole = "register_kprobe";
/// Between two pauses of a guest that was found changing its text.
constexpr std::uint64_t kShortestWait = 10'000'000, kLongestWait = 500'000'000;  // ns

}  // namespace

KprobeWatch::KprobeWatch(vmm::Machine& machine, guest_linux::Kernel& kernel, TrapPointTable& table)
    : machine_(machine),
      kernel_(kernel),
      table_(table),
      reader_(machine.memory(), kernel.table()) {}

Result<void> KprobeWatch::prepare() {
  if (kernel_.symbols().find(kReader, "vmlinux") == nullptr) return {};
  const auto addr = offset_of(kernel_.types(), "kprobe", {"addr"});
  if (!addr) return fail(ErrorCode::Unsupported, "the kernel's types do not describe kprobes");
  addr_at_ = *addr;
  TRY(watch_end());
  TRY(watch_reader(kReader, 0));
  if (const auto kp = offset_of(kernel_.types(), "optimized_kprobe", {"kp"})) {
    TRY(watch_reader(kOptimizer, *kp));
  }
  return {};
}

Result<void> KprobeWatch::watch_reader(const char* function, std::uint32_t kprobe_at) {
  const auto* const symbol = kernel_.symbols().find(function, "vmlinux");
  if (symbol == nullptr) return {};  // of a kernel without optimised kprobes
  readers_.push_back({TRY(watch_entry(table_, kernel_, *symbol)), kprobe_at});
  return {};
}

Result<void> KprobeWatch::watch_end() {
  const auto* const symbol = kernel_.symbols().find(kWhole, "vmlinux");
  if (symbol == nullptr) {
    return fail(ErrorCode::Unsupported, "the kernel has no function register_kprobe");
  }
  const auto ways_out = TRY(return_sites(table_.original_text(), kernel_.symbols(), *symbol));
  for (const ReturnSite& way_out : ways_out) {
    TRY(table_.examine_and_add(way_out.address));
    ends_.push_back(way_out.address);
  }
  return {};
}

void KprobeWatch::add_to(vmm::TrapHandlers& handlers) {
  for (const Reader& reader : readers_) handlers.add(reader.address, *this);
  for (const GuestVirt end : ends_) handlers.add(end, *this);
}

void KprobeWatch::on_trap(const vmm::Trap& trap) {
  if (std::ranges::find(ends_, trap.address) != ends_.end()) {
    const std::lock_guard lock(lock_);
    step_back();
    return;
  }
  const auto place = std::ranges::find(readers_, trap.address, &Reader::address);
  if (place != readers_.end()) step_aside(trap, *place);
}

/// An int3 that cannot be restored stays: then the guest's kernel refuses its kprobe, or we are
/// told at the end that the machine is gone.
void KprobeWatch::step_aside(const vmm::Trap& trap, const Reader& place) {
  const GuestVirt argument(trap.registers.*arch::kArgumentRegisters[0]);
  const GuestVirt kprobe = argument.wrapping_add(place.kprobe_at);
  const std::lock_guard lock(lock_);
  reader_.forget();
  const auto at = load<std::uint64_t>(reader_, kprobe.wrapping_add(addr_at_));
  if (!at || !table_.stands_in_function(GuestVirt(*at))) return;
  auto paused = vmm::PausedMachine::pause(machine_);
  if (!paused) return;
  const auto done = table_.step_aside(*paused, GuestVirt(*at));
  if (done && !*done) return;
  if (!std::exchange(is_away_, true)) since_ = monotonic_ns();
  ++away_.times;
  away_.at = GuestVirt(*at);
}

void KprobeWatch::step_back() {
  if (!is_away_) return;
  auto paused = vmm::PausedMachine::pause(machine_);
  if (!paused) return;
  const auto done = table_.step_back(*paused);
  if (!done && !std::exchange(told_, true)) away_.error = done.error().message;
  if (!done || !*done) return;
  is_away_ = false;
  wait_ = next_look_ = 0;
  away_.nanoseconds += monotonic_ns() - since_;
}

/// A guest that changes its text all the time is not stopped for each look: only where it seems to
/// be done, and after a longer time each time when it was not.
bool KprobeWatch::may_step_back() {
  if (!is_away_ || monotonic_ns() < next_look_) return false;
  reader_.forget();
  return !table_.kprobe_table().is_changing(reader_);
}

bool KprobeWatch::catch_up() {
  const std::lock_guard lock(lock_);
  if (!may_step_back()) return is_away_;
  step_back();
  if (is_away_) {
    wait_ = std::clamp(2 * wait_, kShortestWait, kLongestWait);
    next_look_ = monotonic_ns() + wait_;
  }
  return is_away_;
}

KprobeWatch::Away KprobeWatch::take_away() {
  const std::lock_guard lock(lock_);
  if (is_away_) return {};  // told with the time that it took
  return std::exchange(away_, {});
}

}  // namespace ringside::providers
