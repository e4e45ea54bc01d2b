// Makes room for the guest's own kprobes. Before the guest's kernel sets a kprobe in a function, it
// reads the function's text as code. It would take an int3 of ours for an instruction of one byte:
// it would refuse that place, or accept a place in the middle of the instruction that we displaced.
// So our int3s in that function are taken out before the kernel reads. They come back once the
// kprobe stands, except at the place of the kprobe.
// Places (kernel/kprobes.c, arch/x86/kernel/kprobes/{core,opt}.c, since 2.6.34):
//   arch_prepare_kprobe(struct kprobe *), arch_prepare_optimized_kprobe(struct optimized_kprobe *):
//     called with the lock of kprobes held, before the text is read
//   register_kprobe(): its ways out
// Used by the tracer of a running kernel.
// Threads: on_trap() on those that poll, catch_up() on the fire thread, the others on the
// session's. Fire context: no; on_trap() pauses the machine, as firing_pause.h may.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "providers/trap_points/trap_point_table.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"
#include "vmm/shim/trap.h"

namespace ringside::providers {

class KprobeWatch final : public vmm::TrapWatch {
 public:
  /// All must outlive it.
  KprobeWatch(vmm::Machine& machine, guest_linux::Kernel& kernel, TrapPointTable& table);

  /// Makes its own trap points; none in a kernel without kprobes. Unsupported, with the reason,
  /// when none can stand where they have to.
  Result<void> prepare();
  /// After prepare(): from now on the traps at its places come here.
  void add_to(vmm::TrapHandlers& handlers);

  void on_trap(const vmm::Trap& trap) override;
  /// Lets those come back that could not so far. Whether some still cannot: then soon again.
  bool catch_up();

  /// How trap points have been away since the last call.
  struct Away {
    unsigned times = 0;
    GuestVirt at;                      // where the guest has read, the last time
    std::uint64_t nanoseconds = 0;     // in all, of those that are back
    std::optional<std::string> error;  // why some cannot come back, once
  };
  Away take_away();

 private:
  struct Reader {
    GuestVirt address;
    std::uint32_t kprobe_at = 0;  // where in what the first argument points to
  };
  Result<void> watch_reader(const char* function, std::uint32_t kprobe_at);
  Result<void> watch_end();
  void step_aside(const vmm::Trap& trap, const Reader& place);
  void step_back();
  bool may_step_back();

  vmm::Machine& machine_;
  guest_linux::Kernel& kernel_;
  TrapPointTable& table_;
  std::vector<Reader> readers_;
  std::vector<GuestVirt> ends_;
  std::uint32_t addr_at_ = 0;  // of `addr` in struct kprobe

  std::mutex lock_;  // of what follows
  const vmm::PageTableReader reader_;
  bool is_away_ = false;
  std::uint64_t wait_ = 0, next_look_ = 0;  // ns: for how long the guest goes on, and until when
  std::uint64_t since_ = 0;
  bool told_ = false;
  Away away_;
};

}  // namespace ringside::providers
