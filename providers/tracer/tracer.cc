// The tracer over one machine, or over none. In this file, top to bottom: what it is made of,
// attaching, start, coming and going, stop.
#include "providers/tracer/tracer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "providers/builtin.h"
#include "providers/cleanup/clean.h"
#include "providers/clock/host_clock.h"
#include "providers/profile/profile.h"
#include "providers/registry.h"
#include "providers/tracer/boot_tracer.h"
#include "providers/tracer/machine_tracer.h"
#include "providers/tracer/running_kernel_tracer.h"
#include "providers/tracer/trace.h"
#include "vmm/base/check.h"
#include "vmm/base/end_order.h"

namespace ringside::providers {
namespace {

/// So many probes that were taken out together are named.
constexpr std::size_t kNamedProbes = 3;

/// So long the end waits for a way to the machine that is lost just then (a libvirtd that starts
/// again); it is looked for so often.
constexpr std::chrono::seconds kWayBack(30);
constexpr std::chrono::milliseconds kWayLook(100);

class LiveTracer final : public Tracer {
 public:
  LiveTracer(vmm::Machine* machine, guest_linux::Kernel* kernel, Channel channel,
             const TracerOptions& options)
      : calibration_(options.calibration != nullptr ? options.calibration
                                                    : std::make_shared<TscCalibration>()),
        host_files_(options.host_files),
        poll_threads_(std::max(1U, options.poll_threads)),
        recording_(options.recording),
        record_full_(options.record_full),
        machine_(machine),
        held_machine_(options.held != nullptr ? machine : nullptr) {
    guest_linux::FileKernel* const held = options.held;
    auto builtin = std::make_unique<BuiltinProvider>();
    auto profile = std::make_unique<ProfileProvider>();
    builtin_ = builtin.get();
    profile_ = profile.get();
    registry_.add(std::move(builtin));
    if (options.saved) {
      load_saved_state(*machine, *kernel);
      unpublished_ = std::move(profile);
      return;
    }
    if (held != nullptr) {
      kernel_tracer_ = std::make_unique<BootTracer>(*machine, *held);
    } else if (machine != nullptr && kernel != nullptr) {
      kernel_tracer_ = std::make_unique<RunningKernelTracer>(
          *machine, *kernel, options.traps, options.recording, options.defined, options.host_files);
    }
    if (kernel_tracer_) kernel_tracer_->add_providers(registry_);
    // After those: what it publishes grows on demand, up to the end of a range.
    registry_.add(std::move(profile));
    if (machine == nullptr) return;
    machine_tracer_ = std::make_unique<MachineTracer>(
        *machine, channel, registry_, kernel != nullptr ? &kernel->types() : nullptr);
    if (kernel_tracer_) kernel_tracer_->add_wide_providers(registry_);
  }
  ~LiveTracer() override { stop(); }
  void tell(std::optional<std::string> cleaned) { cleaned_ = std::move(cleaned); }

  Result<void> for_each_probe(const dif::ProbeDescription& pattern,
                              const std::function<void(const Probe&)>& visit) override {
    if (kernel_tracer_) kernel_tracer_->look_again();
    return registry_.for_each(pattern, visit);
  }
  Result<void> refusals(const dif::ProbeDescription& pattern,
                        const std::function<void(const Refusal&)>& visit) override {
    if (kernel_tracer_) kernel_tracer_->look_again();
    if (saved_) {
      visit({pattern, "a saved guest does not run, so only dtrace's probes fire"});
      return {};
    }
    return registry_.refusals(pattern, visit);
  }
  void gaps(const dif::ProbeDescription& pattern,
            const std::function<void(const Refusal&)>& visit) override {
    registry_.gaps(pattern, visit);
  }
  Result<std::optional<Probe>> probe_by_id(dif::ProbeId id) override { return registry_.by_id(id); }
  ProbeArguments arguments(const Probe& probe) override { return registry_.arguments(probe); }
  std::string detail(const Probe& probe) override { return registry_.detail(probe); }
  dif::ProviderAttributes attributes(const Probe& probe) override {
    return registry_.attributes(probe);
  }
  bool has_provider(std::string_view name) override { return registry_.has(name); }
  void expect_probes(std::size_t count) override {
    if (kernel_tracer_) kernel_tracer_->expect_probes(count);
  }
  Result<void> enable(const Probe& probe) override { return registry_.enable(probe); }
  Result<void> add_probes(std::span<const Probe> probes) override;
  Result<void> remove_probes(std::span<const Probe> probes) override;
  void expect_modules() override {
    if (kernel_tracer_) kernel_tracer_->expect_modules();
  }
  int modules_fd() const override {
    return trace_ && trace_->kernel() ? trace_->kernel()->modules_fd() : -1;
  }
  std::optional<LateModule> take_module() override;
  void follow_files() override;
  Result<void> for_each_probe_in(const LateModule& module, const dif::ProbeDescription& pattern,
                                 const std::function<void(const Probe&)>& visit) override {
    return registry_.for_each_in(module.module, pattern, visit);
  }
  void let_go(const LateModule& module, const Result<std::size_t>& added) override;
  std::optional<std::string> cannot(dif::ActionKind action) override {
    if (saved_) return "a saved guest is not changed, and is in a file already";
    return machine_tracer_ ? machine_tracer_->cannot(action) : "there is no guest to do it to";
  }
  unsigned vcpu_count() const override {
    const unsigned possible = kernel_tracer_ ? kernel_tracer_->possible_cpus() : 0;
    return std::max(possible, machine_tracer_ ? machine_tracer_->vcpu_count() : 1);
  }
  Channel channel() const override {
    return machine_tracer_ ? machine_tracer_->channel() : Channel::Spin;
  }

  void keep_to(const Budget& budget) override { budget_ = budget; }
  Result<void> begin(dif::Engine& engine) override;
  Result<void> arm() override;
  void halt() override;
  void stop() override;
  FiringPause* firing_pause() override { return trace_ ? trace_->firing_pause() : nullptr; }
  bool has_left_breakpoints() const override {
    return kernel_tracer_ && kernel_tracer_->has_left_breakpoints();
  }
  std::optional<std::string> loss() const override {
    return kernel_tracer_ ? kernel_tracer_->loss() : std::nullopt;
  }
  std::optional<std::string> must_leave() const override {
    return kernel_tracer_ ? kernel_tracer_->must_leave() : std::nullopt;
  }
  int leave_fd() const override { return kernel_tracer_ ? kernel_tracer_->leave_fd() : -1; }
  TraceStatistics statistics() const override;
  std::vector<dif::ProbeId> last_firings() const override {
    return trace_ ? trace_->sink().last_firings() : std::vector<dif::ProbeId>();
  }
  std::string clock() const override { return trace_ ? describe(trace_->clock()) : std::string(); }
  std::vector<std::string> take_notices() override {
    auto notices = kernel_tracer_ ? kernel_tracer_->take_notices() : std::vector<std::string>();
    append_taken_out(notices);
    if (host_files_) std::ranges::move(host_files_->take_notices(), std::back_inserter(notices));
    std::ranges::move(std::exchange(of_modules_, {}), std::back_inserter(notices));
    if (cleaned_) notices.push_back(*std::exchange(cleaned_, std::nullopt));
    if (machine_tracer_) {
      if (auto losses = machine_tracer_->take_losses()) notices.push_back(std::move(*losses));
    }
    if (trace_ && trace_->clock().disbelieved() != 0 && !std::exchange(told_of_clock_, true)) {
      notices.push_back(
          "the guest has set its clock, or lies about it: timestamps go on by the "
          "host's");
    }
    return notices;
  }

 private:
  TraceSources trace_sources(dif::Engine& engine) const;
  /// curthread is what the first CPU ran.
  void load_saved_state(vmm::Machine& machine, guest_linux::Kernel& kernel) {
    saved_.emplace(machine.memory(), kernel.table());
    const auto bases = kernel.percpu_bases();
    if (bases.empty()) return;
    saved_task_ = kernel.current_task(*saved_, GuestVirt(bases.front())).value_or(GuestVirt());
  }
  EventSubscription wants() const {
    return {machine_tracer_->enabled_events(), profile_->has_samples()};
  }
  Result<void> arm_probes();
  void watch_over_budget();
  void end_watch();
  void append_lost_samples(std::vector<std::string>& notices);
  void append_skipped_ticks(std::vector<std::string>& notices);
  void append_taken_out(std::vector<std::string>& notices);
  Result<void> arm_added();
  void await_way_to_machine();
  void let_host_probes_fire();
  bool fires_on_vcpus() const;
  Result<void> check_recording() const;

  const std::shared_ptr<TscCalibration> calibration_;
  const std::shared_ptr<guest_linux::HostFiles> host_files_;  // null: none
  std::optional<std::string> cleaned_;  // what was found in the guest, until it is told
  Registry registry_;
  BuiltinProvider* builtin_;
  ProfileProvider* profile_;
  std::unique_ptr<ProfileProvider> unpublished_;  // of a saved guest, for which no time passes
  std::optional<vmm::PageTableReader> saved_;     // reads a saved guest; empty: it runs
  GuestVirt saved_task_;                          // what its first CPU ran
  const unsigned poll_threads_;
  const Recording recording_;
  const RecordFull record_full_;
  vmm::Machine* machine_;                          // null for the machine `none`
  vmm::Machine* held_machine_;                     // until start() lets it begin; else null
  std::unique_ptr<KernelTracer> kernel_tracer_;    // null where no kernel is known
  std::unique_ptr<MachineTracer> machine_tracer_;  // null for the machine `none`

  Budget budget_;
  std::mutex changes_;  // of what is armed: the session's, and the enforcer's
  bool told_of_clock_ = false, told_of_pace_ = false, told_of_ticks_ = false;
  std::uint64_t skipped_ticks_ = 0;      // of a trace that has ended
  std::vector<std::string> of_modules_;  // notices
  dif::Engine* engine_ = nullptr;        // with trace_
  std::optional<Trace> trace_;           // from start() on; its loop until stop()
};

TraceSources LiveTracer::trace_sources(dif::Engine& engine) const {
  return {.engine = engine,
          .machine = machine_,
          .kernel = kernel_tracer_.get(),
          .machine_tracer = machine_tracer_.get(),
          .saved = saved_ ? HostView{&*saved_, saved_task_, {}, {}, {}} : HostView(),
          .vcpus = vcpu_count(),
          .host_hertz = calibration_->hertz(),
          .begin = builtin_->begin(),
          .end = builtin_->end(),
          .timers = profile_->enabled(),
          .poll_threads = poll_threads_,
          .records = recording_ != Recording::No && !fires_on_vcpus(),
          .record_full = record_full_,
          .max_slow = budget_.max_slow.value_or(100)};
}

Result<void> LiveTracer::begin(dif::Engine& engine) {
  CHECK(!trace_);
  // Enabled or not: they may be while tracing runs, and the engine must know them before.
  engine.set_end_probe(builtin_->end_id());
  engine.set_error_probe(builtin_->error_id());
  if (!builtin_->error_is_enabled()) engine.mute_error_probe();
  if (!engine.records_fit()) return fail(ErrorCode::Limit, "Enabling exceeds size of buffer");
  engine_ = &engine;
  trace_.emplace(trace_sources(engine));
  if (auto can_record = check_recording(); !can_record) {
    trace_.reset();  // before anything has fired
    return can_record;
  }
  trace_->loop()->start();
  return {};
}

/// Whether probes that need no trap fire on the threads of vCPUs. What was recorded before them has
/// not fired then.
bool LiveTracer::fires_on_vcpus() const {
  if (!machine_tracer_ || !machine_tracer_->has_exits()) return false;
  const EventSubscription wanted = wants();
  return wanted.samples || wanted.events.wants_any();
}

Result<void> LiveTracer::check_recording() const {
  if (recording_ != Recording::Yes) return {};
  const auto obstacle = fires_on_vcpus()
                            ? std::optional<std::string>("profile-N and vm fire at once")
                        : trace_->kernel() ? trace_->kernel()->recording_obstacle()
                                           : std::nullopt;
  if (!obstacle) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("-x record=yes: {}; with -x record=auto these traps wait", *obstacle));
}

Result<void> LiveTracer::arm() {
  CHECK(trace_);
  // BEGIN may have called exit(): then there is nothing to arm for.
  const bool goes_on = !trace_->sink().finished();
  if (machine_tracer_ && goes_on) {
    trace_->loop()->open_traps();
    if (auto armed = arm_probes(); !armed) {
      stop();
      return armed;
    }
  }
  if (goes_on) watch_over_budget();
  trace_->loop()->open_timers();
  if (held_machine_ != nullptr && goes_on) held_machine_->vcpus().release();
  return {};
}

/// Whoever is to be told listens before the first int3 is written.
Result<void> LiveTracer::arm_probes() {
  TRY(trace_->machine()->listen(wants()));
  if (trace_->kernel()) TRY(trace_->kernel()->arm());
  return {};
}

void LiveTracer::watch_over_budget() {
  if (!budget_.limits() || !trace_->kernel()) return;
  KernelTrace& kernel = *trace_->kernel();
  const TrapDispatcher* const traps = kernel.limited();
  if (traps == nullptr) return;
  BudgetEnforcerParts parts;
  parts.loads = [traps] { return traps->tally().by_cpu(); };
  parts.counts = [this, traps] {
    const std::lock_guard changing(changes_);
    return traps->table().counts();
  };
  parts.hits_since = [this, traps](const DispatchTable::Counts& before) {
    const std::lock_guard changing(changes_);
    return traps->table().hits_since(before);
  };
  parts.take_out = [this, &kernel](std::span<const dif::ProbeId> probes) {
    const std::lock_guard changing(changes_);
    return kernel.remove(probes);
  };
  trace_->enforce(budget_, std::move(parts));
}

/// Nothing is taken out any more; what was is still known.
void LiveTracer::end_watch() {
  if (trace_ && trace_->enforcer()) trace_->enforcer()->end();
}

void LiveTracer::append_lost_samples(std::vector<std::string>& notices) {
  if (!trace_ || !trace_->machine() || told_of_pace_) return;
  const SamplePace& pace = trace_->machine()->sampler().pace();
  told_of_pace_ = pace.lost_most();
  if (!told_of_pace_) return;
  if (pace.slowed()) {
    notices.push_back(fmt::format(
        "over budget (maxslow={}): samples of profile-N are left out, for each of which "
        "the guest stands still; -v counts them; -x maxslow=100 sets no limit",
        budget_.max_slow.value_or(100)));
  } else {
    const std::string_view slower = pace.slower_probe();
    notices.push_back(fmt::format(
        "most samples of profile-N are left out, as the guest stands still for longer than N "
        "allows for each; -v counts them; a lower rate{} loses fewer",
        slower.empty() ? "" : fmt::format(", as of {},", slower)));
  }
}

void LiveTracer::append_skipped_ticks(std::vector<std::string>& notices) {
  if (told_of_ticks_ || !trace_ || !trace_->loop() || !trace_->loop()->skipped_most_ticks()) return;
  told_of_ticks_ = true;
  notices.push_back(
      "most firings of tick-N are left out: what fires, or a busy host, held them up for 0.1 s and "
      "more; -v counts them; less often, or with less to do, they come in time");
}

/// The registry is the session's thread's, so names are looked up here.
void LiveTracer::append_taken_out(std::vector<std::string>& notices) {
  append_lost_samples(notices);
  append_skipped_ticks(notices);
  if (!trace_ || !trace_->enforcer()) return;
  for (const BudgetEnforcer::TakenOut& taken : trace_->enforcer()->take_taken_out()) {
    std::vector<std::string> names;
    for (const dif::ProbeId id :
         std::span(taken.probes).first(std::min<std::size_t>(taken.probes.size(), kNamedProbes))) {
      const auto probe = registry_.by_id(id);
      if (probe && *probe) names.push_back((*probe)->name.to_string());
    }
    notices.push_back(describe(budget_, taken.overrun, names, taken.probes.size()));
    if (!taken.done) notices.push_back(taken.done.error().message);
  }
}

Result<void> LiveTracer::add_probes(std::span<const Probe> probes) {
  if (!trace_ || !trace_->loop()) return fail(ErrorCode::Invalid, "nothing is being traced");
  const std::lock_guard changing(changes_);
  if (kernel_tracer_) kernel_tracer_->look_again();
  const auto fresh = registry_.enable_more(probes);
  auto armed = fresh ? arm_added() : tl::make_unexpected(fresh.error());
  if (armed) {
    let_host_probes_fire();
    return {};
  }
  if (trace_->kernel()) trace_->kernel()->abandon_added();
  if (fresh) TRY(registry_.disable(*fresh));
  return armed;
}

/// All that can fail. Probes that the host fires are enabled after it, which cannot.
Result<void> LiveTracer::arm_added() {
  if (trace_->machine()) TRY(trace_->machine()->listen(wants()));
  if (trace_->kernel()) TRY(trace_->kernel()->arm_added());
  return {};
}

/// From now on timers, events, END and ERROR fire where they are enabled, and nowhere else.
void LiveTracer::let_host_probes_fire() {
  trace_->loop()->set_timers(profile_->enabled());
  trace_->loop()->set_end(builtin_->end());
  if (builtin_->error_is_enabled()) {
    engine_->unmute_error_probe();
  } else {
    engine_->mute_error_probe();
  }
  if (trace_->machine()) trace_->machine()->set_events(machine_tracer_->enabled_events());
}

Result<void> LiveTracer::remove_probes(std::span<const Probe> probes) {
  if (!trace_ || !trace_->loop()) return fail(ErrorCode::Invalid, "nothing is being traced");
  const std::lock_guard changing(changes_);
  TRY(registry_.disable(probes));
  std::vector<dif::ProbeId> ids;
  for (const Probe& probe : probes) ids.push_back(probe.id);
  let_host_probes_fire();
  if (trace_->machine()) trace_->machine()->sampler().forget(ids);
  trace_->sink().wait_for_firings();
  auto done = trace_->kernel() ? trace_->kernel()->remove(ids) : Result<void>();
  if (trace_->machine()) TRY(trace_->machine()->stop_listening());
  return done;
}

std::optional<Tracer::LateModule> LiveTracer::take_module() {
  if (!trace_ || !trace_->loop() || !trace_->kernel()) return std::nullopt;
  const std::lock_guard changing(changes_);
  while (auto module = trace_->kernel()->take_module()) {
    const auto admitted = registry_.admit(module->module);
    if (admitted) return module;
    let_go(*module, tl::make_unexpected(admitted.error()));
  }
  return std::nullopt;
}

void LiveTracer::let_go(const LateModule& module, const Result<std::size_t>& added) {
  const bool in_time = trace_->kernel()->let_go(module);
  if (!added) {
    of_modules_.push_back(fmt::format("the guest has loaded module {}, which has no probes: {}",
                                      module.name, added.error().message));
  } else if (*added != 0) {
    of_modules_.push_back(fmt::format("the guest has loaded module {}: {} more probe{}{}",
                                      module.name, *added, *added == 1 ? "" : "s",
                                      in_time ? "" : ", which missed its first moments"));
  }
}

void LiveTracer::follow_files() {
  if (!trace_ || !trace_->loop() || !trace_->kernel()) return;
  const std::lock_guard changing(changes_);
  std::vector<std::string> names;
  const auto places = registry_.follow_files(names);
  if (places && *places == 0) return;
  const auto done = places ? trace_->kernel()->arm_added() : tl::make_unexpected(places.error());
  if (!places) trace_->kernel()->abandon_added();
  if (!done) {
    of_modules_.push_back("probes of processes do not stand in a file that came later: " +
                          done.error().message);
    return;
  }
  of_modules_.push_back(fmt::format(
      "a process has mapped another file {}{}: {} more place{} of probes, whose calls "
      "before now were not seen",
      names.front(), names.size() > 1 ? " and more" : "", *places, *places == 1 ? "" : "s"));
}

TraceStatistics LiveTracer::statistics() const {
  TraceStatistics all;
  if (machine_ != nullptr) all.pauses = machine_->stops().pauses();
  if (!trace_) return all;
  all.firings = trace_->sink().firings();
  if (trace_->kernel()) all.kernel = trace_->kernel()->statistics();
  if (trace_->enforcer()) all.disarmed = trace_->enforcer()->count();
  if (trace_->machine()) all.left_out = trace_->machine()->sampler().pace().left_out();
  all.skipped_ticks = trace_->loop() ? trace_->loop()->skipped_ticks() : skipped_ticks_;
  return all;
}

void LiveTracer::halt() {
  end_watch();
  if (trace_ && trace_->loop()) trace_->loop()->shut();
}

/// Firings are answered meanwhile.
void LiveTracer::await_way_to_machine() {
  const auto deadline = std::chrono::steady_clock::now() + kWayBack;
  while (machine_ != nullptr && machine_->is_others() && end_order() != EndOrder::Hurried &&
         std::chrono::steady_clock::now() < deadline) {
    const auto paused = vmm::PausedMachine::pause(*machine_);
    if (paused || paused.error().code != ErrorCode::NotFound) return;
    std::this_thread::sleep_for(kWayLook);
  }
}

void LiveTracer::stop() {
  end_watch();
  if (trace_ && trace_->loop()) {
    trace_->loop()->close();
    await_way_to_machine();
    if (trace_->firing_pause()) trace_->firing_pause()->end();
    if (trace_->kernel()) trace_->kernel()->disarm();
    if (trace_->machine()) trace_->machine()->close();
    trace_->loop()->finish();
    skipped_ticks_ = trace_->loop()->skipped_ticks();
    trace_->end_loop();
  }
  // Also what was prepared for a trace that never began.
  if (kernel_tracer_) kernel_tracer_->retire();
}

}  // namespace

Result<std::unique_ptr<Tracer>> Tracer::attach(vmm::Machine* machine, guest_linux::Kernel* kernel,
                                               const TracerOptions& options) {
  Channel channel = Channel::Spin;
  if (machine != nullptr) {
    const ChannelChoice choice{machine->exits() != nullptr, machine->vcpu_count(), online_cpus()};
    channel = TRY(choose_channel(options.channel, choice));
  }
  if (options.held != nullptr) {
    CHECK(machine != nullptr && machine->exits() != nullptr);
    kernel = options.held;
  }
  // Before any text is looked at: breakpoints that nobody explains are in the way of probes.
  std::optional<std::string> cleaned;
  if (kernel != nullptr && options.held == nullptr && !options.saved) {
    const Occupied occupied = options.only_to_clean ? Occupied::IsAnError : Occupied::IsUsedAgain;
    cleaned = TRY(clean(*machine, *kernel, occupied));
  }
  auto tracer = std::make_unique<LiveTracer>(machine, kernel, channel, options);
  tracer->tell(std::move(cleaned));
  return tracer;
}

}  // namespace ringside::providers
