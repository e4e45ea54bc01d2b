// The fire thread: fires BEGIN, END, timers and the traps that it finds in mailboxes, and keeps the
// shim's heartbeat going. Other threads fire as well: pollers (poller.h), and the vCPUs' threads if
// vCPUs run in this process (exit_channel.h).
// Used by the tracer, whose calls come from the session's thread.
// The order that the tracer keeps, and what it means:
//   start()        BEGIN has fired when it returns; traps still pass without firing
//   open_traps()   from now on traps fire (before the first int3 is written: none is lost)
//   open_timers()  from now on timers fire and upkeep runs; set_timers() and set_end() may change
//                  which, before it or after it
//   shut()         when it returns nothing fires any more but END; later traps are answered without
//                  firing, later events and breakpoints pass
//   close()        the same, and END has fired
//   finish()       serves late traps until the shim is quiet (bounded), then ends the thread
// Does not: arm or disarm anything.
// Fire context: the thread's body, yes; the calls above, no.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "providers/clock/guest_clock.h"
#include "providers/context/host_context.h"
#include "providers/dispatch/probe_sink.h"
#include "providers/fire/poller.h"
#include "providers/profile/timers.h"

namespace ringside::providers {

class Replay;
class VcpuSampler;

/// The loop works on these. All of them outlive it.
struct FireLoopParts {
  ProbeSink& sink;
  GuestClock& clock;
  HostView view{};                         // of the guest, for what fires on none of its vCPUs
  std::optional<dif::ProbeId> begin, end;  // empty: not enabled
  std::vector<EnabledTimer> timers{};      // from the beginning on
  std::optional<ShimTraps> traps{};        // none: nothing traps by a shim
  Replay* replay = nullptr;                // null: no trap is recorded
  bool expects_waits = true;               // of traps; false: as good as all are recorded
  std::uint64_t longest_rest = IdleWait::kLongestPause;  // ns
  bool traps_ring = false;         // vCPUs' own threads answer; polling is for what they miss
  unsigned poll_threads = 1;       // with this one; where traps do not ring
  std::vector<FireGate*> gates{};  // of what fires elsewhere
  VcpuSampler* sampler = nullptr;  // null: there is no machine, and profile-N is as tick-N
  /// Each second, between firings; after `true`, in some milliseconds. May be empty.
  std::function<bool()> upkeep{};
};

class FireLoop {
 public:
  explicit FireLoop(FireLoopParts parts);
  ~FireLoop();
  FireLoop(const FireLoop&) = delete;
  FireLoop& operator=(const FireLoop&) = delete;

  void start();
  void open_traps();
  void open_timers();
  /// From now on these are the timers; those that were there before keep their phase, the others
  /// begin. When it returns no other one fires on this thread any more.
  void set_timers(std::span<const EnabledTimer> timers);
  /// Whether, and as which probe, END fires.
  void set_end(std::optional<dif::ProbeId> end);
  void shut();
  void close();
  void finish();

  /// Firings of tick-N, and of a profile-N that pauses nobody, that were skipped since they were
  /// too late. On any thread.
  std::uint64_t skipped_ticks() const { return skipped_ticks_.load(std::memory_order_relaxed); }
  /// Whether these are more than all that fired.
  bool skipped_most_ticks() const {
    return skipped_ticks() > ticks_.load(std::memory_order_relaxed);
  }

 private:
  enum class Request : std::uint8_t { Wait, RunTimers, Shut, Close, Finish };
  enum class Stage : std::uint8_t { Starting, Begun, Shut, Closed };

  void body();
  bool do_what_is_due(Request& request, std::uint64_t& now);
  void change_timers(std::uint64_t now);
  bool pass(vmm::PollShare share);
  vmm::PollShare own_share() const;
  void run_timers(std::uint64_t now);
  void keep_up(std::uint64_t now);
  void replay(std::uint64_t now);
  void end_recording();
  void fire_from_host(dif::ProbeId probe, const ArgumentPlan& plan, const HostFacts& facts);
  void keep_alive(std::uint64_t now);
  void rest(std::uint64_t now);
  void obey(Request request, std::uint64_t now);
  void shut_gates();
  void serve_late_traps();
  void wait_for(Stage stage);
  void reach(Stage stage);

  const FireLoopParts parts_;
  HostContext host_;
  TimerSchedule timers_;
  std::atomic<TimerSchedule*> next_timers_ = nullptr;  // the session's, until they are taken over
  std::atomic<dif::ProbeId> end_;                      // id 0: none
  IdleWait wait_;
  bool timers_open_ = false;
  std::atomic<std::uint64_t> ticks_ = 0, skipped_ticks_ = 0;  // that fired, and that did not
  std::uint64_t last_heartbeat_ = 0;
  ReplayWait replay_wait_;
  std::uint64_t next_replay_ = 0;
  std::uint64_t next_upkeep_ = 0;
  std::atomic<Request> request_ = Request::Wait;
  std::atomic<Stage> stage_ = Stage::Starting;
  std::thread thread_;
  std::vector<std::unique_ptr<Poller>> pollers_;
};

}  // namespace ringside::providers
