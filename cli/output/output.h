// The consumer: turns what the engine hands over into dtrace's output, record by record, and into
// lines for stderr. As text here (and in output_actions.cc), as documents in structured_output.h.
// Does not: own descriptors or decide when to print (session.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/settings.h"
#include "cli/output/aggregations.h"
#include "cli/output/code_names.h"
#include "cli/output/printf.h"
#include "cli/output/sink.h"
#include "dif/engine/engine.h"

namespace ringside::cli {

class StructuredOutput;

/// What printing must know of a running program; the engine's tables, or a test's.
class ProgramView : public CodeNames {
 public:
  virtual const dif::Program& program() const = 0;
  virtual const dif::EcbInfo& ecb(dif::EcbId id) const = 0;
  virtual const dif::ProbeDescription& probe_name(dif::ProbeId probe) const = 0;
  /// The machine's name, for structured records; empty when there is none.
  virtual std::string machine() const { return {}; }
};

class Output {
 public:
  /// Parses every format of the program. `settings` may change under setopt(). All references must
  /// outlive the output.
  static Result<Output> create(const ProgramView& view, Settings& settings, Sink& sink);
  ~Output();
  Output(Output&&) noexcept;
  Output& operator=(Output&&) = delete;

  /// Prints the records; remembers aggregations, drops and faults.
  void consume(const dif::Harvest& harvest);
  /// What dtrace prints last: an empty line, then every aggregation that printa() never printed.
  /// Ends a structured document.
  void finish();

  /// Lines for stderr since the last call: faults and whatever an action could not do.
  std::vector<std::string> take_messages();
  /// Lines for drops since the last call.
  std::vector<std::string> take_drops();

 private:
  Output(const ProgramView& view, Settings& settings, Sink& sink);

  using Action = dif::Action;

  /// One action of an enabled clause, with all that printing it needs and no look-up.
  struct Step {
    const Action* action = nullptr;
    const Format* format = nullptr;  // null: it has none
    std::vector<dif::RecordField> fields;
  };
  struct Plan {
    dif::ProbeId probe;
    const dif::ProbeDescription* name = nullptr;
    std::string label;  // "function:name"
    std::vector<Step> steps;
  };
  enum class Flow : std::uint8_t { Entry, Return, None };
  struct CpuFlow {
    std::size_t depth = 0;
    dif::EcbId last;
  };

  Result<void> parse_formats();
  const Plan& plan(dif::EcbId id);

  void print_record(const dif::Harvest& harvest, std::size_t index);
  void start_row(const dif::Harvest& harvest, std::size_t index, const Plan& plan);
  Flow flow_of(const dif::Harvest& harvest, std::size_t index, const Plan& plan);
  void append_flow_name(const Plan& plan, Flow flow, unsigned cpu);
  void write_drops(const dif::Harvest& harvest);
  std::span<const Value> values_of(const Step& step, Bytes data);

  // output_actions.cc
  void act(const Step& step, std::span<const Value> values);
  void append_formatted(std::string& out, const Step& step, std::span<const Value> values);
  void finish_aggregations();
  // The functions that actions.def names.
  void show_nothing(const Step& step, std::span<const Value> values);
  void tell_exit(const Step& step, std::span<const Value> values);
  void print_value(const Step& step, std::span<const Value> values);
  void print_memory(const Step& step, std::span<const Value> values);
  void print_formatted(const Step& step, std::span<const Value> values);
  void print_aggregations(const Step& step, std::span<const Value> values);
  void clear(const Step& step, std::span<const Value> values);
  void trunc(const Step& step, std::span<const Value> values);
  void normalize(const Step& step, std::span<const Value> values);
  void denormalize(const Step& step, std::span<const Value> values);
  void set_option(const Step& step, std::span<const Value> computed);
  void truncate_output(const Step& step, std::span<const Value> values);
  void reopen(const Step& step, std::span<const Value> values);
  void run_command(const Step& step, std::span<const Value> values);

  const ProgramView* view_;
  Settings* settings_;
  Sink* sink_;
  std::unique_ptr<StructuredOutput> structured_;             // null for text
  std::vector<std::vector<std::optional<Format>>> formats_;  // by clause and action
  std::vector<std::unique_ptr<Plan>> plans_;                 // by EcbId
  Aggregations aggregations_;
  std::vector<bool> printed_;   // by aggregation: printa() has printed it
  std::vector<CpuFlow> flows_;  // by CPU: flowindent's columns
  bool header_done_ = false;
  std::string text_;            // of the record that is being printed
  std::size_t line_ended_ = 0;  // how long text_ was when print() ended its line
  std::vector<Value> values_;   // of the action that is being printed
  std::vector<std::string> messages_;
  std::vector<std::array<std::uint64_t, dif::kDropKinds>> drops_;  // by CPU, not yet taken
  std::vector<std::array<std::uint64_t, dif::kDropKinds>> all_drops_;
};

}  // namespace ringside::cli
