#include "dif/evaluate/collection.h"

#include <algorithm>
#include <queue>

namespace ringside::dif {

namespace {

constexpr std::size_t kMostFaults = 4096;

/// Merges the vCPUs' records by timestamp. Within one vCPU the firing order stays even where a
/// guest's clock went backward, which sorting would not keep.
std::vector<Record> merge_records(std::vector<std::vector<Record>> runs) {
  if (runs.size() == 1) return std::move(runs.front());
  struct Cursor {
    std::size_t run, at;
    std::uint64_t timestamp;
    bool operator>(const Cursor& o) const {
      return timestamp != o.timestamp ? timestamp > o.timestamp : run > o.run;
    }
  };
  std::priority_queue<Cursor, std::vector<Cursor>, std::greater<>> queue;
  const auto advance = [&](std::size_t run, std::size_t at) {
    if (at < runs[run].size()) queue.push({run, at, runs[run][at].timestamp});
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

Collection::Collection(const EngineOptions& options, unsigned vcpus, const RecordShapes& shapes)
    : policy_(options.buffer_policy),
      temporal_(options.temporal),
      memory_(options.buffer_size * vcpus),
      aggregations_(options.aggregation_size),
      drops_(vcpus) {
  records_.reserve(vcpus);
  const std::size_t size = std::min(options.buffer_size, memory_.bytes().size() / vcpus);
  for (std::size_t i = 0; i < vcpus; ++i) {
    records_.emplace_back(memory_.bytes().subspan(i * size, size), policy_, shapes);
  }
  faults_.reserve(kMostFaults);
  filled_.reserve(vcpus);
}

void Collection::set_reserve(std::size_t bytes) {
  for (RecordBuffer& buffer : records_) buffer.set_reserve(bytes);
}

void Collection::note_filled(const std::vector<RecordBuffer>& buffers) {
  filled_.clear();
  for (std::uint32_t vcpu = 0; vcpu < buffers.size(); ++vcpu) {
    if (buffers[vcpu].filled()) filled_.push_back(vcpu);
  }
}

void Collection::leave_records_to(Collection& next) {
  std::swap(memory_, next.memory_);
  records_.swap(next.records_);
  note_filled(next.records_);
}

void Collection::add_fault(const FaultReport& report) {
  if (faults_.size() == kMostFaults) {
    ++fault_reports_lost_;
  } else {
    faults_.push_back(report);
  }
}

Harvest Collection::harvest() {
  Harvest harvest;
  if (filled_.empty()) note_filled(records_);
  harvest.filled = filled_;
  filled_.clear();
  harvest.storage.resize(records_.size());
  std::vector<std::vector<Record>> runs(records_.size());
  for (std::uint32_t vcpu = 0; vcpu < records_.size(); ++vcpu) {
    records_[vcpu].drain(vcpu, harvest.storage[vcpu], runs[vcpu]);
  }
  harvest.records = temporal_ ? merge_records(std::move(runs)) : join_records(runs);
  aggregations_.for_each([&](const AggregationBuffer::Entry& entry) {
    harvest.aggregates.push_back({entry.aggregation,
                                  entry.order,
                                  {entry.key.begin(), entry.key.end()},
                                  {entry.words.begin(), entry.words.end()}});
  });
  aggregations_.clear();
  harvest.faults.assign(faults_.begin(), faults_.end());
  faults_.clear();
  harvest.fault_reports_lost = std::exchange(fault_reports_lost_, 0);
  harvest.drops = drops_;
  std::ranges::fill(drops_, Drops::value_type{});
  return harvest;
}

}  // namespace ringside::dif
