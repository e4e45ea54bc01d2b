// The tracer over one machine, or over none. In this file, top to bottom: what
// it is made of, attaching, start, stop.
#include "providers/tracer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "dif/verify/stack_use.h"
#include "providers/boot/boot_tracer.h"
#include "providers/builtin.h"
#include "providers/fire/engine_sink.h"
#include "providers/fire/fire_loop.h"
#include "providers/fire/guest_clock.h"
#include "providers/fire/host_clock.h"
#include "providers/fire/timers.h"
#include "providers/machine_tracer.h"
#include "providers/profile.h"
#include "providers/registry.h"
#include "providers/running_kernel_tracer.h"
#include "vmm/base/check.h"

namespace ringside::providers {
namespace {

/// Remembers what fired last.
class RememberingSink final : public EngineSink {
 public:
  /// `remembers`: for last_firings().
  RememberingSink(dif::Engine& engine, bool remembers, unsigned vcpus)
      : EngineSink(engine), remembers_(remembers), lately_(vcpus) {}
  void fire(dif::ProbeId probe, const dif::FireRecord& record,
            const dif::GuestContext& guest) override {
    if (remembers_) lately_[record.vcpu].add({record.timestamp, probe});
    EngineSink::fire(probe, record, guest);
  }

  std::vector<dif::ProbeId> last_firings() const {
    std::vector<Fired> all;
    for (const Lately& lately : lately_) lately.append_to(all);
    std::ranges::stable_sort(all, std::ranges::greater(), &Fired::time);
    std::vector<dif::ProbeId> firings;
    for (const Fired& fired : std::span(all).first(std::min(all.size(), kRemembered))) {
      firings.push_back(fired.probe);
    }
    return firings;
  }

 private:
  static constexpr std::size_t kRemembered = 8;
  struct Fired {
    std::uint64_t time = 0;
    dif::ProbeId probe;
  };
  /// Of one vCPU, in its turn.
  class alignas(64) Lately {
   public:
    void add(const Fired& fired) { last_[count_++ % kRemembered] = fired; }
    void append_to(std::vector<Fired>& all) const {
      const std::uint64_t kept = std::min<std::uint64_t>(count_, kRemembered);
      for (std::uint64_t n = 1; n <= kept; ++n) all.push_back(last_[(count_ - n) % kRemembered]);
    }

   private:
    std::array<Fired, kRemembered> last_{};
    std::uint64_t count_ = 0;
  };

  const bool remembers_;
  std::vector<Lately> lately_;
};

class LiveTracer final : public Tracer {
 public:
  LiveTracer(vmm::Machine* machine, guest_linux::Kernel* kernel, Channel channel,
             const TracerOptions& options)
      : calibration_(options.calibration != nullptr ? options.calibration
                                                    : std::make_shared<TscCalibration>()),
        poll_threads_(std::max(1U, options.poll_threads)),
        held_machine_(options.held != nullptr ? machine : nullptr) {
    guest_linux::FileKernel* const held = options.held;
    auto builtin = std::make_unique<BuiltinProvider>();
    auto profile = std::make_unique<ProfileProvider>();
    builtin_ = builtin.get();
    profile_ = profile.get();
    registry_.add(std::move(builtin));
    if (held != nullptr) {
      kernel_tracer_ = std::make_unique<BootTracer>(*machine, *held);
    } else if (machine != nullptr && kernel != nullptr) {
      kernel_tracer_ = std::make_unique<RunningKernelTracer>(*machine, *kernel);
    }
    if (kernel_tracer_) kernel_tracer_->add_providers(registry_);
    // After those: what it publishes grows on demand, up to the end of a range.
    registry_.add(std::move(profile));
    if (machine == nullptr) return;
    std::optional<LinuxGuest> inside;
    if (kernel_tracer_) inside.emplace(kernel_tracer_->inside());
    machine_tracer_ = std::make_unique<MachineTracer>(*machine, channel, inside);
    machine_tracer_->add_providers(registry_, kernel != nullptr ? &kernel->types() : nullptr);
  }
  ~LiveTracer() override { stop(); }

  Result<void> for_each_probe(const dif::ProbeDescription& pattern,
                              const std::function<void(const Probe&)>& visit) override {
    if (kernel_tracer_) kernel_tracer_->look_again();
    return registry_.for_each(pattern, visit);
  }
  Result<void> refusals(const dif::ProbeDescription& pattern,
                        const std::function<void(const Refusal&)>& visit) override {
    if (kernel_tracer_) kernel_tracer_->look_again();
    return registry_.refusals(pattern, visit);
  }
  Result<std::optional<Probe>> probe_by_id(dif::ProbeId id) override { return registry_.by_id(id); }
  ProbeArguments arguments(const Probe& probe) override { return registry_.arguments(probe); }
  dif::ProviderAttributes attributes(const Probe& probe) override {
    return registry_.attributes(probe);
  }
  bool has_provider(std::string_view name) override { return registry_.has(name); }
  Result<void> enable(const Probe& probe) override { return registry_.enable(probe); }
  Result<void> add_probes(std::span<const Probe> probes) override;
  Result<void> remove_probes(std::span<const Probe> probes) override;
  std::optional<std::string> cannot(dif::ActionKind action) override {
    return machine_tracer_ ? machine_tracer_->cannot(action) : "there is no guest to do it to";
  }
  unsigned vcpu_count() const override {
    return machine_tracer_ ? machine_tracer_->vcpu_count() : 1;
  }
  Channel channel() const override {
    return machine_tracer_ ? machine_tracer_->channel() : Channel::Spin;
  }

  Result<void> start(dif::Engine& engine) override;
  void stop() override;
  std::optional<std::string> loss() const override {
    return kernel_tracer_ ? kernel_tracer_->loss() : std::nullopt;
  }
  std::uint64_t lost_firings() const override {
    return kernel_tracer_ ? kernel_tracer_->lost_firings() : 0;
  }
  std::vector<dif::ProbeId> last_firings() const override {
    return sink_ ? sink_->last_firings() : std::vector<dif::ProbeId>();
  }
  std::vector<std::string> take_notices() override {
    auto notices = kernel_tracer_ ? kernel_tracer_->take_notices() : std::vector<std::string>();
    if (machine_tracer_) {
      if (auto losses = machine_tracer_->take_losses()) notices.push_back(std::move(*losses));
    }
    if (clock_ && clock_->disbelieved() != 0 && !std::exchange(told_of_clock_, true)) {
      notices.push_back(
          "the guest has set its clock, or lies about it: timestamps go on by the "
          "host's");
    }
    return notices;
  }

 private:
  FireLoopParts loop_parts();
  Result<void> arm();

  const std::shared_ptr<TscCalibration> calibration_;
  Registry registry_;
  BuiltinProvider* builtin_;
  ProfileProvider* profile_;
  const unsigned poll_threads_;
  vmm::Machine* held_machine_;                     // until start() lets it begin; else null
  std::unique_ptr<KernelTracer> kernel_tracer_;    // null where no kernel is known
  std::unique_ptr<MachineTracer> machine_tracer_;  // null for the machine `none`

  bool started_ = false;
  bool told_of_clock_ = false;
  // Made by start(); the loop last, so that its thread ends before what it
  // works on.
  std::optional<RememberingSink> sink_;
  std::optional<GuestClock> clock_;
  std::optional<TimerSchedule> timers_;
  std::unique_ptr<FireLoop> loop_;
};

FireLoopParts LiveTracer::loop_parts() {
  FireLoopParts parts;
  parts.poll_threads = poll_threads_;
  parts.sink = &*sink_;
  parts.clock = &*clock_;
  parts.timers = &*timers_;
  parts.begin = builtin_->begin();
  parts.end = builtin_->end();
  return parts;
}

Result<void> LiveTracer::start(dif::Engine& engine) {
  CHECK(!started_);
  started_ = true;
  if (const auto error = builtin_->error()) engine.set_error_probe(*error);
  if (const auto end = builtin_->end()) engine.set_end_probe(*end);
  if (!engine.records_fit()) return fail(ErrorCode::Limit, "Enabling exceeds size of buffer");
  const auto guest_khz = kernel_tracer_ ? kernel_tracer_->tsc_khz() : std::nullopt;
  sink_.emplace(engine, machine_tracer_ && machine_tracer_->exit_channel() != nullptr,
                vcpu_count());
  const std::uint64_t host_hertz = calibration_->hertz();
  clock_.emplace(TickRate(choose_hertz(host_hertz, guest_khz)), host_hertz);
  timers_.emplace(profile_->enabled(), machine_tracer_ != nullptr);

  FireLoopParts parts = loop_parts();
  if (kernel_tracer_) {
    kernel_tracer_->prepare(*sink_, *clock_, parts, dif::uses_kernel_stack(engine.program()));
  }
  if (machine_tracer_) {
    if (kernel_tracer_ && kernel_tracer_->breakpoints() != nullptr) {
      machine_tracer_->exit_channel()->set_breakpoints(kernel_tracer_->breakpoints());
    }
    machine_tracer_->prepare(*sink_, *clock_, parts);
  }
  loop_ = std::make_unique<FireLoop>(std::move(parts));
  loop_->start();
  // BEGIN may have called exit(): then there is nothing to arm for.
  if (machine_tracer_ && !sink_->finished()) {
    loop_->open_traps();
    if (auto armed = arm(); !armed) {
      stop();
      return armed;
    }
  }
  loop_->open_timers();
  if (held_machine_ != nullptr && !sink_->finished()) held_machine_->vcpus().release();
  return {};
}

Result<void> LiveTracer::add_probes(std::span<const Probe> probes) {
  if (!loop_ || !kernel_tracer_) return fail(ErrorCode::Invalid, "no guest is being traced");
  TRY(kernel_tracer_->begin_to_add());
  const auto fresh = registry_.enable_more(probes);
  if (!fresh) {
    kernel_tracer_->abandon_added();
    return tl::make_unexpected(fresh.error());
  }
  if (fresh->empty()) return {};
  auto armed = kernel_tracer_->arm_added();
  if (!armed) TRY(registry_.disable(*fresh));
  return armed;
}

Result<void> LiveTracer::remove_probes(std::span<const Probe> probes) {
  if (!loop_ || !kernel_tracer_) return fail(ErrorCode::Invalid, "no guest is being traced");
  TRY(registry_.disable(probes));
  std::vector<dif::ProbeId> ids;
  for (const Probe& probe : probes) ids.push_back(probe.id);
  return kernel_tracer_->remove(ids);
}

/// Whoever is to be told listens before the first int3 is written.
Result<void> LiveTracer::arm() {
  TRY(machine_tracer_->open());
  if (kernel_tracer_) TRY(kernel_tracer_->arm());
  return {};
}

void LiveTracer::stop() {
  if (!loop_) return;
  loop_->close();
  if (kernel_tracer_) kernel_tracer_->disarm();
  if (machine_tracer_) machine_tracer_->close();
  loop_->finish();
  loop_.reset();
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
  return std::unique_ptr<Tracer>(std::make_unique<LiveTracer>(machine, kernel, channel, options));
}

}  // namespace ringside::providers
