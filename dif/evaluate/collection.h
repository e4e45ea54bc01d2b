// Everything that firings produce, once: the engine has two, one that firings fill and one that
// the consumer empties. Only the buffers of policy Switch change hands with them; ring and fill
// buffers stay with the fire thread until tracing has ended.
// Fire context: the members that clause_runner.cc uses yes; harvest() no.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dif/engine/aggregate.h"
#include "dif/engine/engine.h"
#include "dif/engine/record_buffer.h"
#include "dif/evaluate/lazy_memory.h"

namespace ringside::dif {

class Collection {
 public:
  /// `shapes` must outlive this.
  Collection(const EngineOptions& options, unsigned vcpus, const RecordShapes& shapes);

  RecordBuffer& records(std::uint32_t vcpu) { return records_[vcpu]; }
  AggregationBuffer& aggregations() { return aggregations_; }
  void drop(std::uint32_t vcpu, DropKind kind, std::uint64_t count = 1) {
    drops_[vcpu][static_cast<std::size_t>(kind)] += count;
  }
  /// A record found no room. Fill drops nothing but END's: it ends tracing.
  void drop_record(std::uint32_t vcpu) {
    if (policy_ != BufferPolicy::Fill || room_ == Room::Final) drop(vcpu, DropKind::Principal);
  }
  void add_fault(const FaultReport& report);

  /// Which room firings may use: Final while END fires.
  Room room() const { return room_; }
  void set_room(Room room) { room_ = room; }
  /// Fill: bytes of each buffer that are END's.
  void set_reserve(std::size_t bytes);
  /// Ring and fill: the records go on in `next`; those that are full are noted here.
  void leave_records_to(Collection& next);

  /// Moves everything out and leaves the collection empty.
  Harvest harvest();

 private:
  using Drops = std::vector<std::array<std::uint64_t, kDropKinds>>;

  void note_filled(const std::vector<RecordBuffer>& buffers);

  BufferPolicy policy_;
  bool temporal_;
  Room room_ = Room::Ordinary;
  LazyMemory memory_;  // of all vCPUs' records
  std::vector<RecordBuffer> records_;
  AggregationBuffer aggregations_;
  std::vector<FaultReport> faults_;  // capacity is set once: adding does not allocate
  std::uint64_t fault_reports_lost_ = 0;
  Drops drops_;
  std::vector<std::uint32_t> filled_;
};

}  // namespace ringside::dif
