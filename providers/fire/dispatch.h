// The dispatcher: leads a trap to every probe that stands there, in the order of enabling.
// Bindings are collected while probes are enabled, then sealed into flat arrays that on_trap()
// walks. Two gates keep the promise about when probes fire: nothing fires before open() or after
// close(); such a trap is only answered, and the shim lets the guest go on.
// Does not: arm text, or decide where a probe may stand.
// Fire context: on_trap() yes; everything else no.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "providers/context/linux_context.h"
#include "providers/fire/binding.h"
#include "providers/fire/guest_clock.h"
#include "providers/fire/probe_sink.h"
#include "vmm/linux/kernel.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

/// Finds tracepoints by address. Fire context.
class TracepointFinder {
 public:
  virtual ~TracepointFinder() = default;
  /// The armed tracepoint at `address`; empty when there is none or it is retired.
  virtual std::optional<TracepointId> armed_at(GuestVirt address) const = 0;
};

/// Traps that fired nothing, by why.
struct DispatchCounters {
  std::uint64_t closed = 0;       // before open() or after close()
  std::uint64_t no_point = 0;     // no armed tracepoint there (a late trap)
  std::uint64_t unknown_cpu = 0;  // the per-cpu base belongs to no CPU: the guest lies
};

class TrapDispatcher final : public vmm::TrapSink, public FireGate {
 public:
  TrapDispatcher(const TracepointFinder& finder, const guest_linux::Kernel& kernel,
                 LinuxContext& context, unsigned vcpus);

  /// Before seal().
  void add(TracepointId point, const Binding& binding);
  /// Makes the arrays and says where firings go and what time they get. Once, before open().
  void seal(ProbeSink& sink, GuestClock& clock);

  void open() override { open_.store(true, std::memory_order_release); }
  void close() override { open_.store(false, std::memory_order_release); }
  bool is_open() const { return open_.load(std::memory_order_acquire); }

  /// Under the fire lock: on the fire thread, or on that of the vCPU that rang.
  void on_trap(const vmm::Trap& trap) override;
  /// The same for a vCPU that stands still without the shim and is known to be this CPU.
  void on_stop(const vmm::Trap& trap, std::uint32_t cpu);
  /// Under the fire lock.
  const DispatchCounters& counters() const { return counters_; }

 private:
  /// Bindings of one tracepoint: [first, first + count), and, for the path that all system calls
  /// share, a table by number (they fire after the others).
  struct Place {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::int32_t by_number = -1;
  };
  struct NumberTable {
    std::uint8_t regs_register = 0;
    std::array<dif::ProbeId, kSyscallNumbers> probes = {};  // id 0: none
  };
  struct Collected {
    TracepointId point;
    Binding binding;
  };
  std::optional<TracepointId> point_of(const vmm::Trap& trap);
  void serve(TracepointId point, const vmm::Trap& trap, std::uint32_t cpu);
  void place_number(Place& place, const Binding& binding);
  void fire(const Binding& binding, const dif::FireRecord& record);
  void fire_by_number(const NumberTable& table, const dif::FireRecord& record);

  const TracepointFinder& finder_;
  const guest_linux::Kernel& kernel_;
  LinuxContext& context_;
  const unsigned vcpus_;
  ProbeSink* sink_ = nullptr;
  GuestClock* clock_ = nullptr;
  std::atomic<bool> open_ = false;
  std::vector<Collected> collected_;
  std::vector<Place> places_;  // by TracepointId
  std::vector<Binding> bindings_;
  std::vector<NumberTable> number_tables_;
  DispatchCounters counters_;
};

}  // namespace ringside::providers
