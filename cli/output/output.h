// The consumer: takes the records that the engines of one or several targets hand over, walks over
// them, does what their actions ask for, and makes lines for stderr. A presenter (presenter.h)
// makes text or documents of what there is to show. With several targets, rows and lines name the
// machine. Each target has aggregations of its own, unless aggmerge makes them one.
// Does not: own descriptors or decide when to print (session.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options/settings.h"
#include "cli/output/aggregations.h"
#include "cli/output/presenter.h"
#include "cli/output/printf.h"
#include "cli/output/record_merge.h"
#include "cli/output/sink.h"
#include "cli/output/values.h"
#include "dif/engine/engine.h"

namespace ringside::cli {

/// The facts that printing needs of a running program: the engine's tables, or a test's.
class ProgramView : public CodeNames {
 public:
  virtual const dif::Program& program() const = 0;
  virtual const dif::EcbInfo& ecb(dif::EcbId id) const = 0;
  virtual const dif::ProbeDescription& probe_name(dif::ProbeId probe) const = 0;
  /// The machine's name; empty when there is none.
  virtual std::string machine() const { return {}; }
  /// snapshot(): writes the machine's memory to this file of the host; what there is to say of it.
  virtual Result<std::string> snapshot(const std::string& path) const {
    return fail(ErrorCode::Unsupported, "there is no machine to write to " + path);
  }
};

class Output {
 public:
  /// Parses every format of the program. `settings` may change under setopt(). All references must
  /// outlive the output. NotFound: the form is a picture, and the program has nothing to draw.
  static Result<Output> create(const ProgramView& view, Settings& settings, Sink& sink);
  /// One view for each target. Invalid where aggmerge cannot be: the aggregations differ. `writer`:
  /// takes the records as trees, whatever the settings' form is, and faults and drops are told in
  /// them alone.
  static Result<Output> create(std::span<const ProgramView* const> views, Settings& settings,
                               Sink& sink, std::unique_ptr<RecordWriter> writer = nullptr);
  ~Output();
  Output(Output&&) noexcept;
  Output& operator=(Output&&) = delete;

  /// How messages about faults name a line of the program's text: "a.d:13"; without it, or where it
  /// is empty, they name none.
  void set_places(std::function<std::string(int line)> place) { place_ = std::move(place); }

  /// The only target's: prints the records; remembers aggregations, drops and faults.
  void consume(const dif::TraceData& trace_data);
  /// The same for one of several targets, by the index of its view; but the records wait for
  /// print_until().
  void add(std::size_t target, dif::TraceData trace_data);
  /// Prints those that fired at this time or before, of all targets in the order of their firing.
  void print_until(std::uint64_t timestamp);
  /// Nothing more will come of this target; what was added has been printed.
  void leave(std::size_t target);
  /// Into structured output, the figures of a target at its end (cli/statistics/figures.h).
  void statistics(std::size_t target, const nlohmann::ordered_json& figures);
  /// Shows every aggregation as it is now, in a record as at the end. Structured output only.
  void show_aggregations();
  /// In structured output, all aggregations as they are now, if any may have changed since the last
  /// call; whether it has shown them.
  bool show_aggregations_meanwhile();
  /// Prints dtrace's last lines: an empty line, then every aggregation that printa() never printed.
  /// Ends a structured document or a picture. NotFound: there is nothing to draw.
  Result<void> finish();

  /// Lines for stderr since the last call: faults and whatever an action could not do.
  std::vector<std::string> take_messages();
  /// Lines for drops since the last call.
  std::vector<std::string> take_drops();
  /// All drops of a target so far.
  std::uint64_t drops(std::size_t target) const;
  /// The drops of clauses, one line for each clause: "993 drops of line 1 (tick-1000)".
  std::vector<std::string> drops_by_clause(std::size_t target) const;

 private:
  Output(std::span<const ProgramView* const> views, Settings& settings, Sink& sink,
         std::unique_ptr<RecordWriter> writer);

  using Action = dif::Action;

  /// One action of an enabled clause, with all that printing it needs and no look-up.
  struct Step {
    const Action* action = nullptr;
    const Format* format = nullptr;  // null: it has none
    std::vector<dif::RecordField> fields;
    std::vector<bool> own;  // by field: a constant of the program
  };
  struct Plan {
    dif::ProbeId probe;
    const dif::ProbeDescription* name = nullptr;
    std::string label;  // "function:name"
    std::vector<Step> steps;
  };
  /// The state that is kept of each target.
  struct Source {
    explicit Source(const ProgramView& program);
    const ProgramView* view;
    std::vector<std::vector<std::optional<Format>>> formats;  // by clause and action
    std::vector<std::unique_ptr<Plan>> plans;                 // by EcbId
    Aggregations aggregations;
    std::vector<bool> printed;  // by aggregation: printa() has printed it
    std::vector<std::array<std::uint64_t, dif::kDropKinds>> drops;  // by CPU, not yet taken
    std::vector<std::array<std::uint64_t, dif::kDropKinds>> all_drops;
    std::vector<std::uint64_t> clause_drops;  // by clause; empty while there are none
    std::vector<std::uint64_t> lost_orders;   // likewise, of clauses with orders; not yet taken
    bool left = false;
  };

  Result<void> parse_formats(Source& source);
  Result<void> merge_aggregations();
  bool several() const { return sources_.size() > 1; }
  /// A line about the target that is printed now.
  std::string told(std::string_view line) const;
  /// From here on all is about this target.
  void select(std::size_t target);
  const Plan& plan(dif::EcbId id);
  const ProgramView& view() const { return *source_->view; }

  void print_record(const dif::TraceData& trace_data, std::size_t index);
  void write_faults(const dif::TraceData& trace_data);
  void write_drops(const dif::TraceData& trace_data);
  void count_clause_drops(const dif::TraceData& trace_data);
  void append_drops(std::vector<std::string>& lines);
  void append_lost_orders(std::vector<std::string>& lines);
  void write_packets();
  std::span<const Value> values_of(const Step& step, Bytes data);

  // output_actions.cc
  void act(const Step& step, std::span<const Value> values);
  std::string formatted(const Step& step, std::span<const Value> values);
  bool is_merged(std::uint32_t aggregation) const {
    return aggregation < merged_.size() && merged_[aggregation];
  }
  bool acts_for_another(const Action& action) const;
  /// Whether the action is on aggregations that all targets have together.
  bool shares(const Action& action) const;
  const Aggregations& aggregations(std::uint32_t aggregation) const;
  /// To change it.
  Aggregations& aggregations(std::uint32_t aggregation);
  /// Marks those of the action as printed. Those of one action have the same keys, so they are
  /// merged or apart together.
  Presenter::Aggregates to_print(const Action& action);
  void mark_printed(std::uint32_t aggregation);
  /// For each target, and then for all together, visits their aggregations in the order of
  /// printing.
  void visit_aggregations(const std::function<void(std::uint32_t)>& show);
  void finish_aggregation(std::uint32_t aggregation);

  // The functions that actions.def names.
  void show_nothing(const Step& step, std::span<const Value> values);
  void tell_exit(const Step& step, std::span<const Value> values);
  void tell_thread(const Step& step, std::span<const Value> values);
  void print_value(const Step& step, std::span<const Value> values);
  void print_memory(const Step& step, std::span<const Value> values);
  void print_packet(const Step& step, std::span<const Value> values);
  void print_formatted(const Step& step, std::span<const Value> values);
  void print_aggregations(const Step& step, std::span<const Value> values);
  void print_percentiles(const Step& step, std::span<const Value> values);
  void clear(const Step& step, std::span<const Value> values);
  void trunc(const Step& step, std::span<const Value> values);
  void normalize(const Step& step, std::span<const Value> values);
  void denormalize(const Step& step, std::span<const Value> values);
  void set_option(const Step& step, std::span<const Value> computed);
  void truncate_output(const Step& step, std::span<const Value> values);
  void reopen(const Step& step, std::span<const Value> values);
  void run_command(const Step& step, std::span<const Value> values);
  void write_snapshot(const Step& step, std::span<const Value> values);

  Settings* settings_;
  bool tells_in_records_;  // of faults and drops: whoever takes the records needs no lines
  std::function<std::string(int line)> place_;
  std::vector<std::unique_ptr<Source>> sources_;  // by target; never empty
  Source* source_;                                // of what is printed now
  const Plan* plan_ = nullptr;                    // the same
  const dif::Record* record_ = nullptr;           // the same
  RecordMerge merge_;
  // With aggmerge: which aggregations are all targets' together, and they; the first source's
  // `printed` counts for them.
  std::vector<bool> merged_;
  std::optional<Aggregations> merged_aggregations_;
  std::unique_ptr<Presenter> presenter_;
  CaptureFiles captures_;
  std::optional<std::int64_t> wall_ = {};  // walltimestamp less timestamp, of the first packet
  bool told_of_packets_ = false;           // that there is no file for them
  std::vector<Value> values_;              // of the action that is being printed
  std::vector<std::string> messages_;
  bool aggregations_changed_ = false;  // since they were last shown
};

}  // namespace ringside::cli
