#include "providers/tracer/module_watch.h"

#include <sys/eventfd.h>

#include <algorithm>

#include "providers/clock/host_clock.h"
#include "providers/tracer/watched_entry.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

constexpr const char* kLoader = "do_init_module";

}  // namespace

ModuleWatch::ModuleWatch(std::uint64_t timeout)
    : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), timeout_(timeout) {
  entries_.reserve(kMostWaiting);  // a firing must not allocate
}

Result<void> ModuleWatch::prepare(const guest_linux::Kernel& kernel, TrapPointTable& table) {
  const auto* const symbol = kernel.symbols().find(kLoader, "vmlinux");
  if (symbol == nullptr) {
    return fail(ErrorCode::Unsupported, "the kernel has no function do_init_module");
  }
  place_ = TRY(watch_entry(table, kernel, *symbol));
  return {};
}

bool ModuleWatch::keeps(const vmm::Trap& trap) {
  const GuestVirt structure(trap.registers.*arch::kArgumentRegisters[0]);
  const std::lock_guard lock(lock_);
  if (ended_) return false;
  const auto entry = std::ranges::find(entries_, structure, &Entry::structure);
  if (entry == entries_.end() || entry->tsc != trap.tsc) {
    const bool is_new = entry == entries_.end();
    if (is_new && entries_.size() == kMostWaiting) return false;
    Entry& fresh = is_new ? entries_.emplace_back() : *entry;
    fresh = {.structure = structure, .tsc = trap.tsc, .since = monotonic_ns()};
    (void)eventfd_write(event_.get(), 1);  // full: then it is readable
    return true;
  }
  if (entry->stage == Stage::Done) {
    entries_.erase(entry);
    return false;
  }
  entry->has_gone_on = monotonic_ns() - entry->since >= timeout_;
  return !entry->has_gone_on;
}

std::optional<GuestVirt> ModuleWatch::take() {
  const std::lock_guard lock(lock_);
  eventfd_t count = 0;
  (void)eventfd_read(event_.get(), &count);
  const auto waiting = std::ranges::find(entries_, Stage::Waiting, &Entry::stage);
  if (waiting == entries_.end()) return std::nullopt;
  waiting->stage = Stage::Taken;
  return waiting->structure;
}

bool ModuleWatch::let_go(GuestVirt structure) {
  const std::lock_guard lock(lock_);
  const auto entry = std::ranges::find(entries_, structure, &Entry::structure);
  // Another one has come there since, and waits to be taken itself.
  if (entry == entries_.end() || entry->stage != Stage::Taken) return false;
  entry->stage = Stage::Done;
  if (!entry->has_gone_on) return true;
  entries_.erase(entry);
  return false;
}

void ModuleWatch::end() {
  const std::lock_guard lock(lock_);
  ended_ = true;
}

}  // namespace ringside::providers
