// The fire thread: fires BEGIN, END, timers and the traps that it finds in mailboxes, and keeps the
// shim's heartbeat going. Other threads fire beside it: pollers (poller.h), and where vCPUs run on
// threads of ours, those (exit_channel.h).
// Used by the tracer, whose calls come from the session's thread.
// The order that the tracer keeps, and what it means:
//   start()        BEGIN has fired when it returns; traps still pass without firing
//   open_traps()   from now on traps fire (before the first int3 is written: none is lost)
//   open_timers()  from now on timers fire and upkeep runs
//   close()        when it returns END has fired; later traps are answered without firing, later
//                  events and breakpoints pass
//   finish()       serves late traps until the shim is quiet (bounded), then ends the thread
// Does not: arm or disarm anything.
// Fire context: the thread's body, yes; the calls above, no.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "providers/context/host_context.h"
#include "providers/fire/guest_clock.h"
#include "providers/fire/idle_wait.h"
#include "providers/fire/poller.h"
#include "providers/fire/probe_sink.h"
#include "providers/fire/timers.h"
#include "vmm/page_walk.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

class TrapDispatcher;
class VcpuSampler;

/// What the loop works on. All of it outlives the loop; null where there is no guest or no trap.
struct FireLoopParts {
  ProbeSink* sink = nullptr;
  GuestClock* clock = nullptr;
  TimerSchedule* timers = nullptr;
  std::optional<dif::ProbeId> begin, end;
  const GuestReader* kernel = nullptr;
  GuestVirt first_task{0};             // init_task, where `kernel` is a Linux's
  std::function<void()> look_again{};  // before a firing that reads through `kernel`
  vmm::Shim* shim = nullptr;
  TrapDispatcher* dispatcher = nullptr;  // with `shim`
  bool traps_ring = false;               // vCPUs' own threads answer; polling is for what they miss
  unsigned poll_threads = 1;             // with this one; where traps do not ring
  std::vector<FireGate*> gates;          // of what fires elsewhere
  VcpuSampler* sampler = nullptr;
  std::function<void()> upkeep;  // each second, between firings
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
  void close();
  void finish();

 private:
  enum class Request : std::uint8_t { Wait, RunTimers, Close, Finish };
  enum class Stage : std::uint8_t { Starting, Begun, Closed };

  void body();
  bool turn(Request& request, std::uint64_t& now);
  bool pass(vmm::PollShare share);
  vmm::PollShare own_share() const;
  void run_timers(std::uint64_t now);
  void fire_from_host(dif::ProbeId probe, const ArgumentPlan& plan, const HostFacts& facts);
  void keep_alive(std::uint64_t now);
  void rest(std::uint64_t now);
  void obey(Request request, std::uint64_t now);
  void serve_late_traps();
  void wait_for(Stage stage);
  void reach(Stage stage);

  FireLoopParts parts_;
  HostContext host_;
  IdleWait wait_;
  bool timers_open_ = false;
  std::uint64_t last_heartbeat_ = 0;
  std::uint64_t last_upkeep_ = 0;
  std::atomic<Request> request_ = Request::Wait;
  std::atomic<Stage> stage_ = Stage::Starting;
  std::thread thread_;
  std::vector<std::unique_ptr<Poller>> pollers_;
};

}  // namespace ringside::providers
