// The fire thread. In this file, top to bottom: the calls of the session's thread, the loop,
// firing, resting.
#include "providers/fire/fire_loop.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "providers/clock/host_clock.h"
#include "providers/fire/replay.h"
#include "providers/profile/sampler.h"
#include "vmm/base/host_cpu.h"

namespace ringside::providers {
namespace {

constexpr dif::ProbeId kNoProbe{0};
constexpr std::uint64_t kHeartbeatEvery = 1'000'000;  // ns; later at rest. The shim waits 100 ms.
constexpr std::uint64_t kUpkeepEvery = 1'000'000'000;
constexpr std::uint64_t kUpkeepSoon = 5'000'000;
constexpr std::uint64_t kQuietFor = 2'000'000;       // finish(): no trap for so long
constexpr std::uint64_t kDrainAtMost = 200'000'000;  // finish(): give up after

}  // namespace

FireLoop::FireLoop(FireLoopParts parts)
    // Without traps to look for, nothing comes unannounced, so there is nothing to spin for.
    : parts_(std::move(parts)),
      host_(parts_.view.kernel, parts_.view.first_task, parts_.view.paths, parts_.view.packets,
            parts_.view.locks),
      timers_(parts_.timers, parts_.sampler != nullptr ? TimerSchedule::Samples::Pause
                                                       : TimerSchedule::Samples::Free),
      end_(parts_.end.value_or(kNoProbe)),
      wait_(parts_.traps && !parts_.traps_ring && parts_.expects_waits ? IdleWait::kSpins : 0,
            parts_.longest_rest),
      replay_wait_(parts_.longest_rest) {}

FireLoop::~FireLoop() {
  if (!thread_.joinable()) return;
  close();
  finish();
}

void FireLoop::start() {
  thread_ = start_firing_thread("ringside-fire", [this] { body(); });
  wait_for(Stage::Begun);
}

void FireLoop::open_traps() {
  for (FireGate* gate : parts_.gates) gate->open();
  if (!parts_.traps) return;
  for (unsigned n = 1; n < own_share().count; ++n) {
    const vmm::PollShare share{n, own_share().count};
    pollers_.push_back(std::make_unique<Poller>(*parts_.traps, share));
  }
  parts_.traps->shim.activate();
}

void FireLoop::open_timers() {
  request_.store(Request::RunTimers, std::memory_order_release);
}

void FireLoop::set_timers(std::span<const EnabledTimer> timers) {
  if (timers_.has_just(timers)) return;
  TimerSchedule next(timers, timers_);
  next_timers_.store(&next, std::memory_order_release);
  next_timers_.wait(&next, std::memory_order_acquire);
}  // what is in `next` now is the former schedule

void FireLoop::set_end(std::optional<dif::ProbeId> end) {
  end_.store(end.value_or(kNoProbe), std::memory_order_release);
}

void FireLoop::shut() {
  request_.store(Request::Shut, std::memory_order_release);
  wait_for(Stage::Shut);
}

void FireLoop::close() {
  request_.store(Request::Close, std::memory_order_release);
  wait_for(Stage::Closed);
}

void FireLoop::finish() {
  pollers_.clear();  // what comes now the fire thread finds
  request_.store(Request::Finish, std::memory_order_release);
  thread_.join();
}

void FireLoop::wait_for(Stage stage) {
  for (Stage now = stage_.load(); now < stage; now = stage_.load()) stage_.wait(now);
}

void FireLoop::reach(Stage stage) {
  stage_.store(stage);
  stage_.notify_all();
}

void FireLoop::body() {
  parts_.clock.set_wall(host_tsc(), realtime_ns());
  if (parts_.begin) fire_from_host(*parts_.begin, kNoArguments, {});
  reach(Stage::Begun);

  Request request = Request::Wait;
  std::uint64_t now = 0;
  while (request != Request::Finish) {
    if (do_what_is_due(request, now)) {
      wait_.busy();
    } else {
      rest(now);
    }
  }
  serve_late_traps();
}

/// Whether there was a trap, or a request: the next one of those soon follows.
bool FireLoop::do_what_is_due(Request& request, std::uint64_t& now) {
  bool busy = pass(own_share());
  now = monotonic_ns();
  const Request next = request_.load(std::memory_order_acquire);
  if (next != request) {
    obey(next, now);
    request = next;
    busy = true;
  }
  if (next_timers_.load(std::memory_order_relaxed) != nullptr) change_timers(now);
  if (parts_.replay != nullptr && now >= next_replay_) replay(now);
  if (timers_open_) run_timers(now);
  keep_alive(now);
  return busy;
}

void FireLoop::change_timers(std::uint64_t now) {
  TimerSchedule& next = *next_timers_.load(std::memory_order_acquire);
  if (timers_open_) next.take_over(timers_, now);
  std::swap(timers_, next);
  next_timers_.store(nullptr, std::memory_order_release);
  next_timers_.notify_one();
}

vmm::PollShare FireLoop::own_share() const {
  return {0, parts_.traps_ring ? 1 : parts_.poll_threads};
}

bool FireLoop::pass(vmm::PollShare share) {
  return parts_.traps && parts_.traps->shim.poll_share(parts_.traps->handlers, share) != 0;
}

void FireLoop::obey(Request request, std::uint64_t now) {
  if (request == Request::RunTimers) {
    timers_open_ = true;
    next_upkeep_ = now + kUpkeepEvery;
    timers_.open(now);
    return;
  }
  if (stage_.load() < Stage::Shut) shut_gates();
  if (request == Request::Shut || stage_.load() == Stage::Closed) return;
  const dif::ProbeId end = end_.load(std::memory_order_acquire);
  if (end != kNoProbe) fire_from_host(end, kNoArguments, {});
  reach(Stage::Closed);
}

void FireLoop::shut_gates() {
  timers_open_ = false;
  if (parts_.replay != nullptr) end_recording();
  for (FireGate* gate : parts_.gates) gate->close();
  parts_.sink.wait_for_firings();  // firings under way are over, and END is the last one
  if (parts_.traps) parts_.traps->shim.deactivate();
  reach(Stage::Shut);
}

/// All that was recorded until now fires before the gates close.
void FireLoop::end_recording() {
  parts_.traps->shim.deactivate();
  const std::uint64_t begun = monotonic_ns();
  const auto is_quiet = [this] {
    return parts_.traps->shim.quiescent() && parts_.replay->is_quiet();
  };
  while (!is_quiet() && monotonic_ns() - begun < kDrainAtMost) (void)pass({});
  parts_.replay->drain();
}

void FireLoop::replay(std::uint64_t now) {
  next_replay_ = now + replay_wait_.after(parts_.replay->pass());
}

void FireLoop::run_timers(std::uint64_t now) {
  const std::uint64_t skipped =
      timers_.run(now, [this](const EnabledTimer& timer, std::uint64_t late) {
        if (timer.kind == TimerKind::Profile && parts_.sampler != nullptr) {
          if (parts_.replay != nullptr) parts_.replay->catch_up();
          parts_.sampler->sample(timer, late);
        } else {
          fire_from_host(timer.probe, *timer.plan, {late});
          ticks_.fetch_add(1, std::memory_order_relaxed);
        }
      });
  if (skipped != 0) skipped_ticks_.fetch_add(skipped, std::memory_order_relaxed);
  if (parts_.upkeep && now >= next_upkeep_) keep_up(now);
}

void FireLoop::keep_up(std::uint64_t now) {
  next_upkeep_ = now + (parts_.upkeep() ? kUpkeepSoon : kUpkeepEvery);
  parts_.clock.set_wall(host_tsc(), realtime_ns());
}

void FireLoop::fire_from_host(dif::ProbeId probe, const ArgumentPlan& plan,
                              const HostFacts& facts) {
  if (parts_.replay != nullptr) parts_.replay->catch_up();
  host_.begin(plan, facts);
  const std::uint64_t tsc = host_tsc();
  if (parts_.view.look_again) parts_.view.look_again();
  const std::uint32_t vcpu = parts_.sink.host_vcpu();
  const dif::FireRecord record{vcpu, parts_.clock.host_time(tsc), parts_.clock.wall_of_host(tsc)};
  const std::lock_guard lock(parts_.sink.firing_lock(vcpu));
  parts_.sink.fire(probe, record, host_);
}

void FireLoop::keep_alive(std::uint64_t now) {
  if (!parts_.traps || now - last_heartbeat_ < kHeartbeatEvery) return;
  last_heartbeat_ = now;
  parts_.traps->shim.heartbeat();
}

void FireLoop::rest(std::uint64_t now) {
  const std::uint64_t timer = timers_open_ ? timers_.next_deadline() : UINT64_MAX;
  const std::uint64_t deadline = parts_.replay != nullptr ? std::min(timer, next_replay_) : timer;
  const std::uint64_t pause = wait_.idle(deadline > now ? deadline - now : 0);
  if (pause == 0) {
    cpu_relax();
  } else {
    sleep_ns(pause);
  }
}

void FireLoop::serve_late_traps() {
  if (!parts_.traps) return;
  const std::uint64_t begun = monotonic_ns();
  std::uint64_t last_seen = begun;
  for (std::uint64_t now = begun; now - begun < kDrainAtMost; now = monotonic_ns()) {
    keep_alive(now);
    if (pass({}) || !parts_.traps->shim.quiescent()) last_seen = now;
    if (now - last_seen >= kQuietFor) return;
    sleep_ns(IdleWait::kFirstPause);
  }
}

}  // namespace ringside::providers
