// A target: a machine that is traced, its kernel, and the tracer over both. bind() adds the program
// that is bound to that kernel, the engine that evaluates it, and the names of its processes' code.
// A target may have no machine; then only probes fire that need none. A session has any number of
// targets and one consumer. Each target has its own engine and its own fire thread. They share D's
// global variables (dif/evaluate/variables.h). All timestamps are on one time line, the host's
// (TracerOptions::calibration).
// Threads: the session's. Does not: start machines, compile, or print.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "dif/engine/engine.h"
#include "providers/tracer/tracer.h"
#include "vmm/linux/discovery/file_kernel.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/paths.h"
#include "vmm/linux/processes/host_files.h"
#include "vmm/linux/processes/page_cache.h"
#include "vmm/linux/processes/processes.h"
#include "vmm/linux/processes/user_names.h"
#include "vmm/machine.h"

namespace ringside::providers {

/// A machine that runs, or that is held before its first instruction, and what is known of it.
struct TracedMachine {
  std::string name;                             // what records and messages call it
  std::unique_ptr<vmm::Machine> machine;        // null: none
  std::unique_ptr<guest_linux::Kernel> kernel;  // null where no Linux is known in it
  guest_linux::FileKernel* held = nullptr;      // the same kernel, in a machine that is held
  bool saved = false;                           // it stands still for ever (vmm/saved)
};

class Target {
 public:
  enum class ProcessNames : std::uint8_t { Raw, AsInFile, Demangled };

  /// Takes machine and kernel when it succeeds; the tracer over them is the target's, too. `held`
  /// and `saved` of the options are set from `traced`. Unsupported when the machine has no such
  /// channel; else as Tracer::attach().
  static Result<std::unique_ptr<Target>> attach(TracedMachine& traced, TracerOptions options);
  /// For attach(), and for tests with a tracer of their own. `host_files`: TracerOptions'.
  Target(TracedMachine traced, std::unique_ptr<Tracer> tracer,
         std::shared_ptr<guest_linux::HostFiles> host_files = nullptr)
      : traced_(std::move(traced)),
        host_files_(std::move(host_files)),
        tracer_(std::move(tracer)) {}
  /// Stops tracing and shuts the machine down.
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  // All that these lead to lives as long as the target.

  /// Empty without a machine.
  const std::string& name() const { return traced_.name; }
  /// Null without a machine; so is the kernel, also where no Linux is known.
  vmm::Machine* machine() const { return traced_.machine.get(); }
  guest_linux::Kernel* kernel() const { return traced_.kernel.get(); }
  /// The same kernel, of a machine that is held before its first instruction; else null.
  guest_linux::FileKernel* held_kernel() const { return traced_.held; }
  Tracer& tracer() const { return *tracer_; }
  /// TracerOptions'.
  guest_linux::HostFiles* host_files() const { return host_files_.get(); }

  /// Gives the target its program and makes the engine, with buffers for as many vCPUs as there
  /// are. Once. `names`: whether user_names() is there. `share`: the global variables, where other
  /// targets have them, too; by default the engine has its own.
  void bind(dif::VerifiedProgram program, const dif::EngineOptions& options, ProcessNames names,
            dif::GlobalsShare share = {});
  /// Enables every clause on every probe that it matches, in the program's order; how many each
  /// clause has matched. Limit, with how many would fit, when that is too much at once; NotFound
  /// for a description that matches nothing, where `must_match`.
  enum class Matching : std::uint8_t { Optional, Required };
  Result<std::vector<std::size_t>> enable_all(Matching matching);

  /// These from bind() on.
  dif::Engine& engine() const { return *engine_; }
  const dif::Program& program() const { return engine_->program(); }
  /// Null without a Linux that can tell them, and with ProcessNames::Raw.
  guest_linux::UserNames* user_names() const { return user_names_.get(); }

  /// Before end_set_up(): process_ended() is to tell of this process of the guest. NotFound where
  /// there is none.
  Result<void> follow_process(std::int64_t pid);
  bool follows_process() const { return followed_.has_value(); }
  /// Whether that one has ended. False where none is followed.
  bool process_ended() const;

  /// While tracing: enables what the program wants in modules that the guest is loading, which
  /// then go on.
  void admit_modules();

  /// While tracing: looks for files that processes have mapped since, for probes of all processes.
  void follow_files();

  /// While tracing: reads the unwind tables that stacks of processes have lacked, from files of the
  /// host.
  void serve_stacks();

  /// Fires BEGIN; tracer().arm() is next.
  Result<void> begin() { return tracer_->begin(*engine_); }
  /// Gives back what only compiling and enabling need; overlays of the kernel's types are gone.
  void end_set_up();

 private:
  /// A process, and how it is found again.
  struct FollowedProcess {
    guest_linux::ProcessLayout layout;
    GuestVirt init_task;
    std::uint64_t pid = 0;
    GuestVirt task;
  };
  std::optional<GuestVirt> find_task(const FollowedProcess& process) const;
  Result<std::size_t> enable_in(const Tracer::LateModule& module);
  /// The probes that one description of a clause means.
  struct Matched {
    std::uint32_t clause = 0;
    std::vector<Probe> probes;
  };
  Result<std::vector<Matched>> find_all(Matching matching);
  Error beyond(const Error& limit, std::size_t asked,
               const std::vector<dif::ProbeId>& enabled) const;

  TracedMachine traced_;
  const std::shared_ptr<guest_linux::HostFiles> host_files_;  // null: none
  /// How a file is found whose unwind tables a stack has lacked.
  struct StackFiles {
    guest_linux::PageCacheLayout pages;
    guest_linux::LinuxPaths paths;
  };
  std::optional<StackFiles> stack_files_;  // empty: there are no files of the host
  std::unique_ptr<Tracer> tracer_;
  std::unique_ptr<dif::Engine> engine_;
  std::uint64_t taken_ = 0;  // of dif::kMostEnabled
  std::unordered_set<std::uint32_t>
      late_known_;  // probes in modules that came later, to the engine
  std::optional<FollowedProcess> followed_;
  std::chrono::steady_clock::time_point next_follow_{};  // of files
  std::unique_ptr<guest_linux::UserNames> user_names_;
};

}  // namespace ringside::providers
