// A trap, and the table that says who handles it. Every trap goes to the probes' sink. A few
// addresses have a watch as well: the tracer stands there for its own sake, to notice that the
// guest loads a module, say. One look at the table tells whether a trap is one of those. Used by
// all that serves traps. Does not: serve them (trap_server.h). Threads: TrapHandlers is complete
// before the first trap; from then on any thread reads it. Fire context: yes, but for
// TrapHandlers::add().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/shim/fetch_list.h"
#include "vmm/shim/shim_layout.h"

namespace ringside::vmm {

/// The words of the guest's current task about itself at a trap: hostile, as all of a mailbox.
struct TrappedTask {
  struct Ids {
    std::int32_t pid = 0, tgid = 0;
    std::uint64_t start_time = 0;  // ns since boot
  };
  GuestVirt address;  // a struct task_struct
  std::array<char, 16> comm{};
  std::optional<Ids> ids;  // empty: not recorded
};

/// A validated copy of one raised mailbox.
struct Trap {
  GuestVirt address;      // of the int3 or jump, or of a process's struct shim_user_point: a trap
                          // point that the table knows
  std::uint64_t tsc = 0;  // the guest's, at entry to the shim
  GuestVirt percpu_base;  // the guest's word: compare before use; 0 if it was not recorded
  Registers registers;    // as they were before it, or 0 if not recorded; rip is the int3's address
  std::optional<TrappedTask> task = std::nullopt;   // empty: not known
  std::optional<std::uint32_t> cpu = std::nullopt;  // whose ring had it; empty: it waits
  const FetchList* list = nullptr;                  // of a recorded trap: what was copied
  std::span<const std::byte> runs{};                // and the copies, as RecordedRuns takes them
};

/// Of a mailbox or a record, which have them in the order of their encoding.
inline void set_in_order(std::span<const std::uint64_t, SHIM_REGISTERS> regs, Registers& out) {
  static_assert(SHIM_RAX == 0 && SHIM_R15 == 15 && SHIM_REGISTERS == arch::kByEncoding.size());
  for (std::size_t n = 0; n < SHIM_REGISTERS; ++n) out.*arch::kByEncoding[n] = regs[n];
}

/// `segments`: as the stub has them of a trap at `address` (struct shim_head).
inline void set_place(Registers& out, GuestVirt address, std::uint64_t segments,
                      const ShimPlace& shim) {
  const bool is_of_process = shim.has_slot_at(address);
  out.rip = is_of_process ? segments : address.raw();
  out.cs = is_of_process ? SHIM_USER_CS : segments & 0xffff;
  out.ss = is_of_process ? SHIM_USER_SS : segments >> 32 & 0xffff;
}

inline TrappedTask::Ids task_ids(std::uint32_t pid, std::uint32_t tgid, std::uint64_t start_time) {
  return {static_cast<std::int32_t>(pid), static_cast<std::int32_t>(tgid), start_time};
}

/// Empty where the shim does not know it, and where `address` cannot be one.
inline std::optional<TrappedTask> trapped_task(std::uint64_t address,
                                               std::span<const std::uint64_t, 2> comm,
                                               std::optional<TrappedTask::Ids> ids) {
  if (!arch::in_kernel_half(GuestVirt(address))) return std::nullopt;
  TrappedTask out{GuestVirt(address), {}, ids};
  static_assert(sizeof out.comm == decltype(comm)::extent * sizeof comm[0]);
  std::memcpy(out.comm.data(), comm.data(), sizeof out.comm);
  return out;
}

/// Takes every trap, on a thread that polls or on that of the vCPU.
class TrapSink {
 public:
  virtual ~TrapSink() = default;
  /// The vCPU stands still until this returns.
  virtual void on_trap(const Trap& trap) = 0;
};

/// Takes the traps of its own addresses, after the sink. It may pause the machine and make the vCPU
/// wait, so these traps are served by threads that poll, never by a vCPU's own.
class TrapWatch {
 public:
  virtual ~TrapWatch() = default;
  /// Whether the vCPU stands still for now. While it does, the sink does not see the trap, and this
  /// is asked again at each poll.
  virtual bool keeps(const Trap& trap) {
    (void)trap;
    return false;
  }
  /// Once it is not kept any more. The vCPU stands still until this returns.
  virtual void on_trap(const Trap& trap) { (void)trap; }
};

class TrapHandlers {
 public:
  struct Row {
    GuestVirt address;
    TrapWatch* watch;
  };

  /// `sink` and all watches must outlive it.
  explicit TrapHandlers(TrapSink& sink) : sink_(sink) {}

  void add(GuestVirt address, TrapWatch& watch) {
    rows_.insert(std::ranges::upper_bound(rows_, address, {}, &Row::address), {address, &watch});
  }

  TrapSink& sink() const { return sink_; }
  /// Nearly always none. Several only if the guest's symbols give two functions one address.
  std::span<const Row> watches_at(GuestVirt address) const {
    const auto first = std::ranges::lower_bound(rows_, address, {}, &Row::address);
    const auto last = std::ranges::upper_bound(rows_, address, {}, &Row::address);
    return {first, last};
  }

 private:
  TrapSink& sink_;
  std::vector<Row> rows_;  // by address; about ten
};

}  // namespace ringside::vmm
