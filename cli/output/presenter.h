// The forms of a trace's output behind one interface. Output walks over the records of a TraceData
// and tells a presenter what there is to show: dtrace's text (text_output.cc), or structured
// records with typed values, their times and their probes (structured_output.cc, for -O;
// docs/output.md describes them, docs/output-schema.json is their schema). Pictures are made of
// these records (cli/pictures).
// Does not: change aggregations or settings, or write to stderr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.h"
#include "cli/output/aggregations.h"
#include "cli/output/packet_file.h"
#include "cli/output/printf.h"
#include "cli/output/sink.h"
#include "cli/output/values.h"
#include "dif/engine/engine.h"

namespace ringside::cli {

class ProgramView;
class RecordWriter;

class Presenter {
 public:
  virtual ~Presenter() = default;

  /// Where a record comes from; the timestamp is the firing's, in ns.
  struct Origin {
    std::uint64_t timestamp = 0;
    unsigned vcpu = 0;
    std::uint32_t probe = 0;
    const dif::ProbeDescription* name = nullptr;
  };
  struct Row {
    Origin origin;
    std::string_view label;        // "function:name"
    const dif::TraceData& around;  // the record among its neighbours
    std::size_t index = 0;
  };
  struct Drop {
    unsigned vcpu = 0;
    dif::DropKind kind = dif::DropKind::Principal;
    std::uint64_t count = 0, total = 0;
    std::string message;
    std::vector<dif::ClauseDrops> clauses;  // which had them, as far as it is known
  };
  enum class ValueForm : std::uint8_t { Trace, Print };
  /// Aggregations of the program by their numbers, and their contents.
  struct Aggregates {
    const Aggregations& table;
    std::span<const std::uint32_t> wanted;
    bool merged = false;  // they are all targets' together
  };

  /// From here on all is about this target: its index among the views, and its view.
  virtual void select(std::size_t target, const ProgramView& view) = 0;

  /// One record: begin(), then what its actions recorded in their order, then end().
  virtual void begin(const Row& row) = 0;
  virtual void end() = 0;
  /// `shape` is the value's among the program's shapes, where it has one.
  virtual void value(const Value& value, std::optional<std::uint32_t> shape, ValueForm form) = 0;
  virtual void memory(Bytes bytes) = 0;
  /// pcap(); `in_file`: a capture file has it.
  virtual void packet(const Packet& packet, bool in_file) = 0;
  /// printf(); `format` is null where the action has none. `shapes` are those of the values.
  virtual void formatted(const Format* format, std::span<const Value> values,
                         std::span<const std::uint32_t> shapes) = 0;
  /// printa(); `format` is null where the action has none.
  virtual void aggregations(const Aggregates& aggregates, const Format* format) = 0;
  /// percentile(): `wanted` as dif::parse_percentiles() reads it.
  virtual void percentiles(const Aggregates& aggregates, std::string_view wanted) = 0;
  /// clear() or trunc(), which keeps as many keys as `keep` says, or none.
  virtual void emptied(const dif::Action& action, std::optional<std::int64_t> keep,
                       bool merged) = 0;
  virtual void exit(std::int64_t status) = 0;
  /// The thread that fired, with -x threads.
  struct Thread {
    std::uint32_t pid = 0, tid = 0;
    std::string_view execname;
  };
  virtual void thread(const Thread& thread) = 0;
  virtual void truncate() = 0;
  /// freopen(); an empty path is the first output again.
  virtual Result<void> reopen(const std::string& path) = 0;
  /// system() runs this command next; what was shown so far goes out. Its standard output is the
  /// descriptor that is returned.
  virtual int begin_command(std::string_view command) = 0;
  /// snapshot() writes this file next; what was shown so far goes out.
  virtual void begin_snapshot(std::string_view path) = 0;

  /// Records of their own.
  virtual void fault(const Origin& origin, const dif::FaultReport& report,
                     std::string_view message) = 0;
  virtual void drop(const Drop& drop) = 0;
  virtual void statistics(const nlohmann::ordered_json& figures) = 0;

  /// The aggregations as they are, at the trace's end or, in structured output only, meanwhile.
  enum class Moment : std::uint8_t { Meanwhile, End };
  /// begin_last(); then for each target select(), last_aggregation() for each that is to be shown,
  /// and end_last(). Then the same once, with select_all(), for aggregations that all targets have
  /// together. At the end then finish().
  virtual void begin_last(Moment moment) = 0;
  virtual void select_all() = 0;
  virtual void last_aggregation(const Aggregations& table, std::uint32_t index) = 0;
  virtual void end_last() = 0;
  /// Lines for stderr on what the output lacks. NotFound: a picture has nothing to show.
  virtual Result<std::vector<std::string>> finish() = 0;
};

/// `views` are the targets'; `settings` may change under setopt(). All must outlive the presenter.
std::unique_ptr<Presenter> make_text_output(std::span<const ProgramView* const> views,
                                            const Settings& settings, Sink& sink);
/// `writer` takes the records; null: one for the form that the settings have now.
std::unique_ptr<Presenter> make_structured_output(const ProgramView& first,
                                                  const Settings& settings, Sink& sink,
                                                  std::unique_ptr<RecordWriter> writer);

}  // namespace ringside::cli
