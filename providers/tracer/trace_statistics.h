// The figures of a trace: what fired, what did not, and what it has cost the guest.
// Used by tracers, which count, and by reports.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "providers/dispatch/trap_tally.h"
#include "providers/fire/replay.h"
#include "vmm/stop_times.h"

namespace ringside::providers {

/// The figures of the probes on a kernel's text, since tracing began.
struct KernelStatistics {
  std::uint64_t armed =
      0;  // places of the text where a breakpoint of ours stands, or stood at the end
  std::uint64_t recording = 0;   // of those, where traps are recorded and wait for nobody
  std::uint64_t jumps = 0;       // of those, where it is a jump and no int3
  std::uint64_t misses = 0;      // traps that passed unfired because nobody answered in time, and
                                 // what was forgotten
  std::uint64_t dropped = 0;     // of those, that were not recorded since their ring was full
  Replay::DropSpan drop_span{};  // when that was
  std::uint64_t spoiled = 0;     // of those, whose records the guest has changed
  std::uint64_t forgotten = 0;   // ends that may have found nothing: too much had begun at a time
  std::uint64_t unfired = 0;   // traps that were answered at a place of no probe: it has just gone,
                               // or the place is one of our own
  std::uint64_t retired = 0;   // places that are probed no more, since the guest changed them
  std::uint64_t recorded = 0;  // traps that were recorded, and fired later
  std::uint64_t unwanted = 0;  // traps that the guest did not record: no predicate was true
  WaitHistogram waits{};       // of all traps that were answered
  /// Why places wait although traps may be recorded, and how many for that reason. Empty where none
  /// may.
  std::map<std::string, std::uint64_t> why_waiting{};
};

struct TraceStatistics {
  std::uint64_t firings = 0;  // of probes, whatever made them fire; one trap may be several
  KernelStatistics kernel{};
  std::uint64_t disarmed = 0;  // probes that were too much for the budget
  std::uint64_t left_out = 0;  // samples of profile-N, which would have slowed the guest too much
  std::uint64_t skipped_ticks = 0;  // firings of tick-N for which it was too late
  vmm::Pauses pauses{};             // since the machine was started or attached to
};

}  // namespace ringside::providers
