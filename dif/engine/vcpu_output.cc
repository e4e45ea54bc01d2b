#include "dif/engine/vcpu_output.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace ringside::dif {

namespace {

constexpr std::size_t kMostFaults = 4096;

/// Merges the vCPUs' records. Within one vCPU their order stays even where a guest's clock went
/// backward, which sorting would not keep; so groups stay whole, too.
std::vector<Record> merge_records(std::vector<std::vector<Record>> runs) {
  if (runs.size() == 1) return std::move(runs.front());
  struct Cursor {
    std::size_t run, at;
    std::uint64_t order;
    bool operator>(const Cursor& o) const {
      return order != o.order ? order > o.order : run > o.run;
    }
  };
  std::priority_queue<Cursor, std::vector<Cursor>, std::greater<>> queue;
  const auto advance = [&](std::size_t run, std::size_t at) {
    if (at < runs[run].size()) queue.push({run, at, runs[run][at].order()});
  };
  std::vector<Record> merged;
  for (std::size_t run = 0; run < runs.size(); ++run) advance(run, 0);
  while (!queue.empty()) {
    const Cursor next = queue.top();
    queue.pop();
    merged.push_back(runs[next.run][next.at]);
    advance(next.run, next.at + 1);
  }
  return merged;
}

/// One vCPU after the other.
std::vector<Record> join_records(const std::vector<std::vector<Record>>& runs) {
  std::vector<Record> joined;
  for (const auto& run : runs) joined.insert(joined.end(), run.begin(), run.end());
  return joined;
}

}  // namespace

VcpuOutput::VcpuOutput(const EngineOptions& options, std::size_t clauses, RecordBuffer& records)
    : policy_(options.buffer_policy),
      records_(records),
      aggregations_(options.aggregation_size),
      clause_drops_(clauses) {
  faults_.reserve(kMostFaults);
}

void VcpuOutput::add_fault(const FaultReport& report) {
  if (faults_.size() == kMostFaults) {
    ++fault_reports_lost_;
  } else {
    faults_.push_back(report);
  }
}

void VcpuOutput::take(std::uint32_t vcpu, TraceData& trace_data) {
  aggregations_.for_each([&](const AggregationBuffer::Entry& entry) {
    trace_data.aggregates.push_back({entry.aggregation,
                                     entry.order,
                                     {entry.key.begin(), entry.key.end()},
                                     {entry.words.begin(), entry.words.end()}});
  });
  aggregations_.clear();
  trace_data.faults.insert(trace_data.faults.end(), faults_.begin(), faults_.end());
  faults_.clear();
  trace_data.fault_reports_lost += std::exchange(fault_reports_lost_, 0);
  trace_data.drops.push_back(std::exchange(drops_, {}));
  if (trace_data.drops.back() == Drops{}) return;
  for (std::uint32_t clause = 0; clause < clause_drops_.size(); ++clause) {
    for (std::size_t kind = 0; kind < kDropKinds; ++kind) {
      const std::uint64_t count = std::exchange(clause_drops_[clause][kind], 0);
      if (count == 0) continue;
      trace_data.clause_drops.push_back({vcpu, static_cast<DropKind>(kind), clause, count});
    }
  }
}

void take_records(const std::vector<RecordBuffer*>& buffers, bool temporal, TraceData& trace_data) {
  trace_data.storage.resize(buffers.size());
  std::vector<std::vector<Record>> runs(buffers.size());
  for (std::uint32_t vcpu = 0; vcpu < buffers.size(); ++vcpu) {
    buffers[vcpu]->drain(vcpu, trace_data.storage[vcpu], runs[vcpu]);
  }
  trace_data.records = temporal ? merge_records(std::move(runs)) : join_records(runs);
}

void order_faults(TraceData& trace_data) {
  std::ranges::stable_sort(trace_data.faults, {}, &FaultReport::timestamp);
}

}  // namespace ringside::dif
