#include "providers/tracer/trace.h"

#include <utility>

#include "dif/verify/stack_use.h"
#include "providers/clock/host_clock.h"

namespace ringside::providers {
namespace {

GuestClock::Config clock_config(const TraceSources& from) {
  const auto guest_khz = from.kernel != nullptr ? from.kernel->tsc_khz() : std::nullopt;
  return {from.machine != nullptr ? &from.machine->stops() : nullptr, from.vcpus, host_tsc(),
          plausible_hertz(guest_khz)};
}

}  // namespace

Trace::Trace(const TraceSources& from)
    : sink_(from.engine, from.vcpus,
            from.machine_tracer != nullptr && from.machine_tracer->has_exits()
                ? EngineSink::Remember::LastFirings
                : EngineSink::Remember::Nothing),
      clock_(TickRate(from.host_hertz), clock_config(from)),
      kernel_(begin_kernel(from)),
      traps_(kernel_ ? std::optional(kernel_->traps()) : std::nullopt),
      machine_(from.machine_tracer != nullptr ? from.machine_tracer->begin(sink_, clock_, traps_)
                                              : nullptr),
      loop_(std::make_unique<FireLoop>(
          FireLoopParts{.sink = sink_,
                        .clock = clock_,
                        .view = traps_ ? traps_->view : from.saved,
                        .begin = from.begin,
                        .end = from.end,
                        .timers = from.timers,
                        .traps = traps_ ? traps_->shim : std::nullopt,
                        .replay = traps_ ? traps_->replay : nullptr,
                        .expects_waits = expects_waits(),
                        .longest_rest = longest_rest(from),
                        .traps_ring = machine_ && machine_->traps_ring(),
                        .poll_threads = from.poll_threads,
                        .gates = gates(),
                        .sampler = machine_ ? &machine_->sampler() : nullptr,
                        .upkeep = traps_ ? traps_->upkeep : nullptr})) {
  if (!machine_) return;
  pause_.emplace(*from.machine, from.vcpus, traps_ && traps_->shim ? &traps_->shim->shim : nullptr);
  sink_.set_firing_pause(*pause_);
  machine_->sampler().pace().limit(from.max_slow);
}

std::unique_ptr<KernelTrace> Trace::begin_kernel(const TraceSources& from) {
  if (from.kernel == nullptr) return nullptr;
  KernelTracer::Wants wants{.stacks = dif::uses_kernel_stack(from.engine.program())};
  wants.full_rings_wait = from.record_full == RecordFull::Wait;
  if (from.records) {
    wants.record_needs = [&engine = from.engine](dif::ProbeId probe, dif::EntryArguments entrys) {
      return engine.record_needs(probe, entrys);
    };
  }
  return from.kernel->begin(sink_, clock_, wants);
}

/// A ring that is full drops what comes meanwhile, unless the guest may wait.
std::uint64_t Trace::longest_rest(const TraceSources& from) const {
  const bool may_sleep = !expects_waits() && from.record_full == RecordFull::Wait;
  return may_sleep ? IdleWait::kLongestUnwatched : IdleWait::kLongestPause;
}

std::vector<FireGate*> Trace::gates() const {
  std::vector<FireGate*> all = traps_ ? traps_->gates : std::vector<FireGate*>();
  if (!machine_) return all;
  for (FireGate* gate : machine_->gates()) all.push_back(gate);
  return all;
}

}  // namespace ringside::providers
