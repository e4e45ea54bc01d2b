// The consumer: turns what the engine hands over into dtrace's output, record by record, and into
// lines for stderr.
// Does not: own descriptors or decide when to print (session.h).
// Fire context: no.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/aggregations.h"
#include "cli/printf.h"
#include "cli/settings.h"
#include "cli/sink.h"
#include "dif/engine.h"

namespace ringside::cli {

/// What printing must know of a running program; the engine's tables, or a test's.
class ProgramView {
 public:
  virtual ~ProgramView() = default;
  virtual const dif::Program& program() const = 0;
  virtual const dif::EcbInfo& ecb(dif::EcbId id) const = 0;
  virtual const dif::ProbeDescription& probe_name(dif::ProbeId probe) const = 0;
  /// A guest code address as text.
  virtual std::string describe(GuestVirt address) const = 0;
};

class Output {
 public:
  /// Parses every format of the program. `settings` may change under setopt(). All references must
  /// outlive the output.
  static Result<Output> create(const ProgramView& view, Settings& settings, Sink& sink);

  /// Prints the records; remembers aggregations, drops and faults.
  void consume(const dif::Harvest& harvest);
  /// What dtrace prints last: an empty line, then every aggregation that printa() never printed.
  void finish();

  /// Lines for stderr since the last call: faults and whatever an action could not do.
  std::vector<std::string> take_messages();
  /// Lines for drops since the last call.
  std::vector<std::string> take_drops();

 private:
  Output(const ProgramView& view, Settings& settings, Sink& sink);

  using Action = dif::Action;
  using ActionPlace = std::pair<std::uint32_t, std::uint32_t>;  // clause, action

  void print_record(const dif::Record& record);
  std::string row_start(const dif::Record& record, const dif::EcbInfo& ecb);
  std::string flow_name(const dif::ProbeDescription& name, unsigned cpu);
  std::string act(ActionPlace place, const Action& action, const std::vector<Value>& values);
  std::string print_aggregations(ActionPlace place, const Action& action);
  std::string aggregation_lines(std::span<const std::uint32_t> aggregations) const;
  void normalize(const Action& action, const std::vector<Value>& values);
  void set_option(const Action& action);

  const ProgramView* view_;
  Settings* settings_;
  Sink* sink_;
  std::map<ActionPlace, Format> formats_;
  Aggregations aggregations_;
  std::vector<bool> printed_;        // by aggregation: printa() has printed it
  std::vector<std::size_t> depths_;  // by CPU: flowindent's columns
  bool header_printed_ = false;
  std::vector<std::string> messages_;
  std::vector<std::array<std::uint64_t, dif::kDropKinds>> drops_;  // by CPU
};

}  // namespace ringside::cli
