// A program without an engine, and an output over a pipe, for tests of what is printed.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output/output.h"

namespace ringside::cli::testing_support {

using dif::Action;
using dif::ActionKind;
using dif::ValueKind;
using dif::ValueType;

inline const ValueType kInt{ValueKind::Integer, true, 4};
inline const ValueType kString{ValueKind::String, false, 0};

/// A program with one ECB per clause, all on probes that the test names.
class FakeProgram : public ProgramView {
 public:
  const dif::Program& program() const override { return program_; }
  const dif::EcbInfo& ecb(dif::EcbId id) const override { return ecbs_[id.value - 1]; }
  const dif::ProbeDescription& probe_name(dif::ProbeId probe) const override {
    return names_[probe.value - 1];
  }
  std::string describe(GuestVirt at) const override {
    return at.raw() == 0x10 ? "vmlinux`f+0x10" : "vmlinux`f";
  }
  std::string machine() const override { return name; }
  dif::Program& mutable_program() { return program_; }
  Result<std::string> snapshot(const std::string& path) const override {
    snapshots.push_back(path);
    if (snapshots.size() > 1) return fail(ErrorCode::Io, path + " is there already");
    return path + ": all of it";
  }
  std::string name = "guest";
  mutable std::vector<std::string> snapshots;

  /// Adds a clause; returns the id of its ECB. Fields follow one another in the record.
  dif::EcbId add(dif::ProbeDescription name, std::vector<Action> actions,
                 std::vector<dif::RecordField> fields = {}) {
    names_.push_back(std::move(name));
    dif::EcbInfo info;
    info.id.value = static_cast<std::uint32_t>(ecbs_.size()) + 1;
    info.clause = static_cast<std::uint32_t>(program_.clauses.size());
    info.probe.value = static_cast<std::uint32_t>(names_.size());
    info.fields = std::move(fields);
    ecbs_.push_back(info);
    program_.clauses.emplace_back().actions = std::move(actions);
    return info.id;
  }
  /// Makes `ecb` another clause of the probe that `first` is on.
  void share_probe(dif::EcbId ecb, dif::EcbId first) {
    ecbs_[ecb.value - 1].probe = ecbs_[first.value - 1].probe;
  }
  std::uint32_t aggregation(dif::AggregateFunction function) {
    dif::Aggregation aggregation;
    aggregation.function = function;
    aggregation.keys = {kString};
    program_.aggregations.push_back(aggregation);
    return static_cast<std::uint32_t>(program_.aggregations.size()) - 1;
  }

 private:
  dif::Program program_;
  std::deque<dif::EcbInfo> ecbs_;  // that do not move: an output keeps references
  std::deque<dif::ProbeDescription> names_;
};

inline Action action(ActionKind kind) {
  Action result;
  result.kind = kind;
  return result;
}

inline Action on_aggregation(ActionKind kind, std::uint32_t aggregation) {
  Action result = action(kind);
  result.aggregations = {aggregation};
  return result;
}

inline dif::AggregateEntry entry(std::uint32_t aggregation, std::string_view key,
                                 std::int64_t value) {
  dif::AggregateEntry result;
  result.aggregation = aggregation;
  result.key.resize(key.size() + 1);
  std::memcpy(result.key.data(), key.data(), key.size());
  result.words = {value};
  return result;
}

class OutputFixture : public testing::Test {
 protected:
  OutputFixture() : sink_(open_pipe()) {}
  ~OutputFixture() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  int open_pipe() {
    EXPECT_EQ(pipe(ends_), 0);
    return ends_[1];
  }
  Output& output() {
    if (!output_) output_.emplace(std::move(*Output::create(program_, settings_, sink_)));
    return *output_;
  }
  template <class... T>
  void fire(dif::EcbId ecb, T... values) {
    std::vector<std::byte> data;
    (append(data, values), ...);
    dif::TraceData trace_data;
    trace_data.records.push_back({ecb, 0, 0, data});
    output().consume(trace_data);
  }
  std::string text() {
    sink_.flush();
    char buffer[16384];
    const ssize_t size = read(ends_[0], buffer, sizeof buffer);
    return {buffer, static_cast<std::size_t>(size > 0 ? size : 0)};
  }

  FakeProgram program_;
  Settings settings_;
  int ends_[2] = {-1, -1};
  Sink sink_;
  std::optional<Output> output_;

 private:
  template <class T>
  static void append(std::vector<std::byte>& data, const T& value) {
    data.resize(data.size() + sizeof value);
    std::memcpy(data.data() + data.size() - sizeof value, &value, sizeof value);
  }
};

}  // namespace ringside::cli::testing_support
