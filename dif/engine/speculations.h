// Speculative tracing (Dynamic Tracing Guide, "Speculative Tracing"): nspec speculations, each with
// a buffer of specsize bytes per vCPU. speculation() takes a free one, speculate() leads a clause's
// record to it, commit() copies what it holds into the principal buffer, discard() throws it away.
//
// commit() and discard() act at once on the buffers of all vCPUs. A firing that records in a
// speculation keeps the program lock to its end, so nobody else uses the buffers meanwhile. A
// commit makes one group (record_buffer.h), which the consumer gets whole and in the order of time.
// In dtrace a CPU cannot reach the buffers of another one; it cleans up later, and a speculation is
// busy until then. All calls need the program lock (shared_locks.h).
//
//   Inactive --speculation()--> Active --speculate()--> Recording
//      ^                          | commit(), discard()     |
//      +--------------------------+-------------------------+
// Fire context: yes, but for the constructor.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "dif/engine/record_buffer.h"
#include "dif/evaluate/lazy_memory.h"
#include "dif/program/options.h"

namespace ringside::dif {

enum class SpeculationState : std::uint8_t {
  Inactive,
  Active,     // nobody speculated yet
  Recording,  // somebody did
};

class Speculations {
 public:
  Speculations(const EngineOptions& options, unsigned vcpus, const RecordShapes& shapes);

  /// speculation(): an id from 1 up, or 0 when none is free, which is counted.
  std::uint64_t allocate();
  /// Where `vcpu` records for the speculation; null when `id` names none that is active.
  RecordBuffer* speculate(std::uint64_t id, std::uint32_t vcpu);
  /// Ids that name no active speculation are ignored. False when the group does not fit into the
  /// principal buffer, which leaves it out whole. `now` is the time of the firing.
  bool commit(std::uint64_t id, RecordBuffer& principal, std::uint64_t now, Room room);
  void discard(std::uint64_t id);

  std::size_t count() const { return speculations_.size(); }
  SpeculationState state(std::uint64_t id) const;
  /// Calls of allocate() that found none, since the last call.
  std::uint64_t take_unavailable() { return std::exchange(unavailable_, 0); }

 private:
  struct Speculation {
    SpeculationState state = SpeculationState::Inactive;
    std::vector<RecordBuffer> buffers;  // by vCPU
  };

  Speculation* find_active(std::uint64_t id);

  LazyMemory memory_;
  std::vector<Speculation> speculations_;
  std::uint64_t unavailable_ = 0;
};

}  // namespace ringside::dif
