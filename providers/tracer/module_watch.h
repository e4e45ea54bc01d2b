// Notices that the guest loads a module, before the module's init runs. It holds the vCPU that
// loads the module until the module's probes stand, so that no firing is lost.
// Place (kernel/module/main.c, before 5.19 kernel/module.c):
//   do_init_module(struct module *): the module's text is final, its jump labels, static calls and
//     alternatives are patched and its symbols can be read; its init is about to be called.
// Used by the tracer of a running kernel.
// Threads: keeps() on those that poll, the others on the session's. Fire context: keeps() yes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "providers/trap_points/trap_point_table.h"
#include "vmm/base/brief_lock.h"
#include "vmm/base/unique_fd.h"
#include "vmm/linux/kernel.h"
#include "vmm/shim/trap.h"

namespace ringside::providers {

class ModuleWatch final : public vmm::TrapWatch {
 public:
  /// A vCPU is kept no longer than this, in nanoseconds: interrupts are off meanwhile, and a
  /// guest's watchdogs wait for 20 s and more.
  static constexpr std::uint64_t kTimeout = 5'000'000'000;
  /// So many at once; more are not kept.
  static constexpr std::size_t kMostWaiting = 256;

  explicit ModuleWatch(std::uint64_t timeout = kTimeout);

  /// Makes its own trap point. Unsupported, with the reason, when none can stand where it has to.
  Result<void> prepare(const guest_linux::Kernel& kernel, TrapPointTable& table);
  /// After prepare(): from now on the traps at its place come here.
  void add_to(vmm::TrapHandlers& handlers) { handlers.add(place_, *this); }

  bool keeps(const vmm::Trap& trap) override;

  /// Readable while somebody waits to be taken.
  int event_fd() const { return event_.get(); }
  /// The struct module that came first of those that were not taken; the guest's word. Empty: there
  /// is none.
  std::optional<GuestVirt> take();
  /// The vCPU that loads this module may go on. False when it has gone on before.
  bool let_go(GuestVirt structure);
  /// From now on nobody is kept.
  void end();

 private:
  enum class Stage : std::uint8_t { Waiting, Taken, Done };
  struct Entry {
    GuestVirt structure;
    std::uint64_t tsc = 0;    // of the trap: the same module may come again
    std::uint64_t since = 0;  // by the host's clock
    Stage stage = Stage::Waiting;
    bool has_gone_on = false;
  };

  GuestVirt place_;
  const UniqueFd event_;
  const std::uint64_t timeout_;

  BriefLock lock_;  // of what follows
  std::vector<Entry> entries_;
  bool ended_ = false;
};

}  // namespace ringside::providers
