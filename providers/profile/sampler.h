// profile-N's samples: one firing for each vCPU, with the place where it is. There are two ways. By
// pausing: the sampler pauses the machine, reads every vCPU's registers, fires for each vCPU, and
// lets the machine go on. The whole guest waits meanwhile; its TSC may stop too, so the sampler
// tells the clock. By kicking, if vCPUs run on threads of this process: each vCPU leaves the guest,
// fires on its own thread, and goes on; no vCPU waits for another. In both ways the vCPU stands
// still while it fires, so pid, execname and memory are those of that moment. A CPU that Linux has
// taken offline has no samples. Fire context: yes, but for the pause itself (a request to the
// machine's owner, with no firing lock held).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "providers/clock/guest_clock.h"
#include "providers/context/vcpu_context.h"
#include "providers/dispatch/probe_sink.h"
#include "providers/profile/profile.h"
#include "providers/profile/sample_pace.h"
#include "vmm/arch/arch.h"
#include "vmm/machine.h"
#include "vmm/shim/mailboxes.h"
#include "vmm/vcpu_exits.h"

namespace ringside::providers {

class VcpuSampler final : public FireGate {
 public:
  /// Firings go to `sink` and get their time from `clock`. A vCPU that waits in `shim` is reported
  /// where it was interrupted; null: there is none. `exits` kicks vCPUs, and then samples fire
  /// between open() and close(); null: samples are made by pausing. All must outlive it.
  VcpuSampler(vmm::Machine& machine, VcpuContexts& contexts, ProbeSink& sink, GuestClock& clock,
              const vmm::Mailboxes* shim, vmm::VcpuExits* exits);

  /// `late`: how many ns after its time. Fire thread.
  void sample(const EnabledTimer& timer, std::uint64_t late);
  /// Samples that were asked for these probes and have not fired yet never will. When it returns no
  /// firing of theirs is under way; so with no firing lock held.
  void forget(std::span<const dif::ProbeId> probes);
  /// A vCPU came out for a sample. On its thread.
  void on_sample(vmm::StoppedVcpu& vcpu, std::uint64_t tag);
  void open() override { open_.store(true, std::memory_order_release); }
  void close() override { open_.store(false, std::memory_order_release); }
  /// How often it may pause, and what that has left out. Limit it before the first sample.
  SamplePace& pace() { return pace_; }
  const SamplePace& pace() const { return pace_; }
  /// A machine that cannot be paused any more is not asked again.
  bool gave_up() const { return gave_up_; }

 private:
  /// The most samples that may be under way: several timers may fall due together, and a vCPU that
  /// was outside the guest for long answers once for all of them.
  static constexpr std::uint64_t kKept = 16;

  struct Asked {
    EnabledTimer timer;
    std::uint64_t late = 0;      // ns, when it was asked for
    std::uint64_t host_tsc = 0;  // of that moment
  };
  struct Moment {
    std::uint64_t late, time;
    std::int64_t wall;
  };
  /// Samples that a vCPU answers at once, the earliest first.
  struct Due {
    std::array<Asked, kKept> asked;
    std::size_t count = 0;
  };
  void pause_and_fire(const EnabledTimer& timer, std::uint64_t late);
  void kick(const EnabledTimer& timer, std::uint64_t late);
  Due take_due(unsigned vcpu, std::uint64_t tag);
  bool asked_again(dif::ProbeId probe, std::uint64_t after, std::uint64_t last) const;
  /// The sample of a vCPU that stands still, under its firing lock.
  struct Seen {
    Registers registers;
    CpuPlace place;
    unsigned vcpu = 0;
    bool is_offline = false;
  };
  Seen look_at(const Registers& registers, unsigned vcpu) const;
  bool is_in_shim(const Registers& registers) const {
    return shim_ != nullptr && shim_->contains(GuestVirt(registers.*arch::kProgramCounter));
  }
  void fire_due(vmm::StoppedVcpu& vcpu, const Seen& seen, std::uint64_t tag);
  void fire(const EnabledTimer& timer, const Seen& seen, const Moment& moment);

  vmm::Machine& machine_;
  VcpuContexts& contexts_;
  ProbeSink& sink_;
  GuestClock& clock_;
  const vmm::Mailboxes* const shim_;
  vmm::VcpuExits* const exits_;
  SamplePace pace_;
  bool gave_up_ = false;

  // By kicking.
  std::atomic<bool> open_ = false;
  BriefLock asked_lock_;            // for what follows: the thread that asks, and vCPUs in turn
  std::uint64_t last_ = 0;          // the tag that was asked for last; the first one is 1
  std::array<Asked, kKept> asked_;  // by tag; probe 0: forgotten
  std::vector<std::uint64_t> answered_;  // by vCPU: the last tag
};

}  // namespace ringside::providers
