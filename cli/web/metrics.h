// /metrics: the programs that run, in the text form of OpenMetrics, which Prometheus reads.
// Aggregations of count() and its kin are gauges, those of quantize() and its kin histograms, each
// key a label. Keys with stacks are left out: they are no labels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringside::cli {

struct ProgramMetrics {
  unsigned number = 0;
  std::int64_t pid = 0;
  std::uint64_t records = 0, left_out = 0;
  std::vector<std::string> aggregations;  // records of MEANWHILE
};

/// A machine that one of them traces, as `ringside stats` has it.
struct MachineMetrics {
  unsigned program = 0;
  std::string machine;
  std::uint64_t firings = 0, missed = 0, drops = 0;
};

inline constexpr const char* kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

std::string open_metrics(std::span<const ProgramMetrics> programs,
                         std::span<const MachineMetrics> machines);

}  // namespace ringside::cli
