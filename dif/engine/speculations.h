// Speculative tracing (Dynamic Tracing Guide, "Speculative Tracing"): nspec speculations, each with
// a buffer of specsize bytes per vCPU. speculation() takes a free one, speculate() leads a clause's
// record to it, commit() copies what it holds into the principal buffers, discard() throws it away.
//
// commit() copies the buffer of its own vCPU at once. Other vCPUs' buffers follow when they are
// next cleaned (cleanrate) or taken; until then the speculation is busy and speculation() does
// not give it out again. dtrace's state COMMITTING has no place here: a commit holds the program
// lock, so a commit on the only vCPU that took part is over before anybody can ask.
// Everything here under the program lock (shared_locks.h), but for any_to_copy().
//
//            speculate()            on another vCPU
//   Active ------------> ActiveOne ----------------> ActiveMany
//     |                     | own vCPU                   |
//     | commit, discard     | commit, discard            | commit: CommittingMany
//     v                     v                            | discard: Discarding
//   Inactive <-----------------------------------------  clean()
// Fire context: yes, but for the constructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "dif/engine/record_buffer.h"
#include "dif/evaluate/lazy_memory.h"
#include "dif/program/options.h"

namespace ringside::dif {

class VcpuOutput;

enum class SpeculationState : std::uint8_t {
  Inactive,
  Active,      // nobody speculated yet
  ActiveOne,   // one vCPU did
  ActiveMany,  // several did
  CommittingMany,
  Discarding,
};

class Speculations {
 public:
  Speculations(const EngineOptions& options, unsigned vcpus, const RecordShapes& shapes);

  /// speculation(): an id from 1 up, or 0 when none is free, which is counted.
  std::uint64_t allocate();
  /// Where `vcpu` records for the speculation; null when `id` names none that is active.
  RecordBuffer* speculate(std::uint64_t id, std::uint32_t vcpu);
  /// Ids that name no active speculation are ignored. A copy that does not fit into the principal
  /// buffer is left out whole and counts one principal drop.
  void commit(std::uint64_t id, std::uint32_t vcpu, VcpuOutput& out);
  void discard(std::uint64_t id, std::uint32_t vcpu);

  /// Copies what committed speculations still hold of this vCPU's. They stay busy.
  void copy_committed(std::uint32_t vcpu, VcpuOutput& out);
  /// Whether there may be something to copy. Any thread.
  bool any_to_copy() const { return to_copy_.load(std::memory_order_relaxed) != 0; }
  /// Frees the speculations that were discarded, and those of which all was copied.
  void clean();

  std::size_t count() const { return speculations_.size(); }
  SpeculationState state(std::uint64_t id) const;
  /// Whether speculate() led records to it that still wait to be committed or discarded.
  bool records(std::uint64_t id) const;
  /// Calls of allocate() that found none because all were active, since the last call.
  std::uint64_t take_unavailable() { return std::exchange(unavailable_, 0); }
  /// Or because those that were not active had not been cleaned.
  std::uint64_t take_busy() { return std::exchange(busy_, 0); }

 private:
  struct Speculation {
    SpeculationState state = SpeculationState::Inactive;
    std::uint32_t vcpu = 0;             // ActiveOne: which
    std::vector<RecordBuffer> buffers;  // by vCPU

    bool has_others_than(std::uint32_t vcpu) const;  // whether other vCPUs have recorded
  };

  const Speculation* find(std::uint64_t id) const;
  Speculation* find_active(std::uint64_t id);
  void copy(Speculation& speculation, std::uint32_t vcpu, VcpuOutput& out);

  LazyMemory memory_;
  std::vector<Speculation> speculations_;
  std::uint64_t unavailable_ = 0, busy_ = 0;
  std::atomic<std::uint32_t> to_copy_ = 0;  // speculations in CommittingMany
};

}  // namespace ringside::dif
