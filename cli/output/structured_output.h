// Structured output (-O json, -x oformat=...): each firing is a record of typed values, with its
// time, machine, vCPU and probe. Drops, faults and aggregations are records of pseudo-probes.
// docs/output.md describes it, docs/output-schema.json is its schema.
// Does not: know the formats (structured_writer.h).
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.h"
#include "cli/output/aggregations.h"
#include "cli/output/sink.h"
#include "cli/output/values.h"
#include "dif/engine/engine.h"

namespace ringside::cli {

class ProgramView;

class StructuredOutput {
 public:
  /// Records are this program's until select().
  StructuredOutput(OutputFormat format, const ProgramView& view, Sink& sink);
  ~StructuredOutput();
  StructuredOutput(const StructuredOutput&) = delete;
  StructuredOutput& operator=(const StructuredOutput&) = delete;

  /// Where a record comes from; the timestamp is the firing's, in ns.
  struct Origin {
    std::uint64_t timestamp = 0;
    unsigned vcpu = 0;
    std::uint32_t probe = 0;
    const dif::ProbeDescription* name = nullptr;
  };
  struct Drop {
    unsigned vcpu = 0;
    dif::DropKind kind = dif::DropKind::Principal;
    std::uint64_t count = 0, total = 0;
    std::string message;
    std::vector<dif::ClauseDrops> clauses;  // which had them, as far as it is known
  };

  /// From here on records are of this program and its machine; of all machines, which have the same
  /// aggregations.
  void select(const ProgramView& view);
  void select_all();

  /// One record: begin(), then what its actions recorded in their order, then end().
  void begin(const Origin& origin);
  void value(const Value& value, std::optional<std::uint32_t> shape);
  void message(std::string_view text);
  void memory(Bytes bytes);
  void aggregation(std::uint32_t index, const std::vector<Aggregations::Row>& rows);
  void exit(std::int64_t status);
  /// An action on the output or the host: "system" with its command, "freopen"...
  void note(std::string_view action, std::string_view text);
  void end();

  /// Records of their own.
  void fault(const Origin& origin, const dif::FaultReport& report, std::string_view message);
  void drop(const Drop& drop);
  void statistics(const nlohmann::ordered_json& figures);
  /// An aggregation at the end of tracing; all of a machine share one record.
  void last_aggregation(std::uint32_t index, const std::vector<Aggregations::Row>& rows);
  void write_last_aggregations();
  /// The document's end.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringside::cli
