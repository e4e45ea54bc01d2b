// The tracer of a Linux that runs: shim, trap points, the providers that stand on instructions.
// Used by the tracer alone. Threads: the session's; notices are left on the fire thread, too.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "providers/fire/channel.h"
#include "providers/tracer/deferred_shim.h"
#include "providers/tracer/file_watch.h"
#include "providers/tracer/hardware_breakpoint_watch.h"
#include "providers/tracer/hibernation_watch.h"
#include "providers/tracer/kernel_tracer.h"
#include "providers/tracer/kprobe_watch.h"
#include "providers/tracer/module_watch.h"
#include "providers/tracer/page_watch.h"
#include "providers/tracer/panic_watch.h"
#include "providers/tracer/probe_armer.h"
#include "providers/trap_points/trap_point_table.h"
#include "providers/trap_points/user_point_table.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/stacks/stack_check.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"

namespace ringside::providers {

struct DefinedProbes;

class RunningKernelTracer final : public KernelTracer {
 public:
  /// Machine and kernel must outlive it. `host_files`: TracerOptions'.
  RunningKernelTracer(vmm::Machine& machine, guest_linux::Kernel& kernel, TrapForm form,
                      Recording recording, std::shared_ptr<const DefinedProbes> defined,
                      std::shared_ptr<guest_linux::HostFiles> host_files);
  ~RunningKernelTracer() override;
  RunningKernelTracer(const RunningKernelTracer&) = delete;
  RunningKernelTracer& operator=(const RunningKernelTracer&) = delete;

  void add_providers(Registry& registry) override;
  void add_wide_providers(Registry& registry) override;
  std::optional<std::uint32_t> tsc_khz() const override;
  unsigned possible_cpus() const override;
  void look_again() override { table_.look_again(); }
  void expect_modules() override { expects_modules_ = true; }
  void expect_probes(std::size_t count) override { expected_probes_ = count; }
  std::unique_ptr<KernelTrace> begin(ProbeSink& sink, GuestClock& clock,
                                     const Wants& wants) override;
  /// Gives the kernel its int3 gate back and takes the shim out of the guest, unless an int3 of
  /// ours may still stand: the shim lets the guest pass it, the kernel's own handler would not.
  void retire() override;

  std::optional<std::string> loss() const override;
  std::optional<std::string> must_leave() const override;
  int leave_fd() const override { return hibernation_ ? hibernation_->event_fd() : -1; }
  bool has_left_breakpoints() const override {
    return (table_.any_armed() || users_.any_armed()) &&
           machine_.state() == vmm::MachineState::Running && !loss();
  }
  std::vector<std::string> take_notices() override;

 private:
  class Trace;

  vmm::ShimCounters counters() const {
    return shim_.installed() != nullptr ? shim_.installed()->counters() : vmm::ShimCounters();
  }
  /// Beginnings that defined probes have forgotten.
  std::uint64_t displaced() const { return displaced_ != nullptr ? displaced_->load() : 0; }
  guest_linux::HostUnwindTables* host_tables() const {
    return host_files_ && host_files_->any() ? &host_files_->unwind_tables() : nullptr;
  }
  std::optional<std::string> panic() const;
  void tell_what_stays();
  bool take_out_shim();
  Result<void> leave();
  Result<void> end_fault_search();
  Result<guest_linux::StackCheck*> prepare_stack_check();
  void notice(std::string text);
  void watch_kprobes();
  void watch_hardware_breakpoints();
  void watch_hibernation();
  void watch_modules();
  Result<void> watch_files();
  Result<void> watch_pages();
  void tend_files();
  void end_user_slots();
  std::size_t armed() const { return table_.armed() + users_.armed(); }
  bool has_points() const { return table_.size() != 0 || users_.size() != 0; }
  void use_jumps();
  void note_changed(const std::vector<GuestVirt>& places);
  void tell_of_kprobes();

  vmm::Machine& machine_;
  guest_linux::Kernel& kernel_;
  const TrapForm form_;
  const Recording recording_;
  const std::shared_ptr<const DefinedProbes> defined_;           // null: none
  const std::shared_ptr<guest_linux::HostFiles> host_files_;     // null: none
  std::shared_ptr<const std::atomic<std::uint64_t>> displaced_;  // beginnings; null: none yet
  DeferredShim shim_;
  TrapPointTable table_;
  UserPointTable users_;
  ProbeArmer points_;
  bool expects_modules_ = false;
  std::size_t expected_probes_ = 0;
  std::optional<ModuleWatch> modules_;               // where it does, once tracing has begun
  std::optional<KprobeWatch> kprobes_;               // once tracing has begun with trap points
  std::optional<HardwareBreakpointWatch> hardware_;  // the same, where there may be jumps
  std::optional<FileWatch> files_;                   // where trap points stand in files
  std::optional<PageWatch> pages_;                   // the same
  std::optional<HibernationWatch> hibernation_;      // of a guest that outlives us
  mutable PanicWatch panic_;
  std::optional<guest_linux::StackCheck> stack_check_;  // once tracing has begun with trap points
  bool retired_ = false;

  std::atomic<std::uint64_t> retired_places_ = 0;  // since the guest changed its code
  std::mutex notices_lock_;  // between the fire thread's upkeep and the session
  std::vector<GuestVirt> changed_;
  std::vector<std::string> notices_;
};

}  // namespace ringside::providers
