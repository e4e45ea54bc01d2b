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
#include <vector>

#include "dif/engine/record_buffer.h"
#include "dif/evaluate/lazy_memory.h"
#include "dif/evaluate/speculation_ids.h"
#include "dif/program/options.h"

namespace ringside::dif {

class Speculations : public SpeculationIds {
 public:
  Speculations(const EngineOptions& options, unsigned vcpus, const RecordShapes& shapes);

  /// Where `vcpu` records for the speculation; null when `id` names none that is active.
  RecordBuffer* speculate(std::uint64_t id, std::uint32_t vcpu);
  /// Ids that name no active speculation are ignored. False when the group does not fit into the
  /// principal buffer, which leaves it out whole. `now` is the time of the firing.
  bool commit(std::uint64_t id, RecordBuffer& principal, std::uint64_t now, Room room);
  void discard(std::uint64_t id);

 private:
  LazyMemory memory_;
  std::vector<std::vector<RecordBuffer>> buffers_;  // by id - 1 and vCPU
};

}  // namespace ringside::dif
