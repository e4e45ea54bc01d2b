// dtrace's text. In this file, top to bottom: the presenter, rows and what actions show in them,
// the start of a row and flowindent, the end.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/output/aggregation_text.h"
#include "cli/output/output.h"
#include "cli/output/presenter.h"
#include "cli/output/pretty_print.h"

namespace ringside::cli {
namespace {

constexpr std::size_t kFlowStep = 2;
constexpr std::size_t kDeepestFlow = 200;  // unmatched entries would indent for ever
constexpr std::size_t kMostOpen = 1000;    // of them; the oldest are forgotten
constexpr std::size_t kNameWidth = 32, kFlowWidth = 41;
constexpr std::size_t kCpuWidth = 3, kIdWidth = 6;
constexpr std::string_view kMachine = "MACHINE";  // the column that several machines have

/// "entry", or a provider's own "method-entry".
bool names_end(std::string_view name, std::string_view word) {
  if (!name.ends_with(word)) return false;
  return name.size() == word.size() || name[name.size() - word.size() - 1] == '-';
}

/// Whether both are of one function: "entry" and "return", "method-entry" and "method-return".
bool is_pair(const dif::ProbeDescription& entry, const dif::ProbeDescription& leave) {
  const auto kind = [](std::string_view name) { return name.substr(0, name.rfind('-') + 1); };
  return entry.function == leave.function && entry.module == leave.module &&
         entry.provider == leave.provider && kind(entry.name) == kind(leave.name);
}

class TextOutput : public Presenter {
 public:
  TextOutput(std::span<const ProgramView* const> views, const Settings& settings, Sink& sink)
      : settings_(settings),
        sink_(sink),
        several_(views.size() > 1),
        view_(views.front()),
        flows_(views.size()),
        machine_width_(kMachine.size()) {
    for (const ProgramView* view : views) {
      machine_width_ = std::max(machine_width_, view->machine().size());
    }
  }

  void select(std::size_t target, const ProgramView& view) override {
    target_ = target;
    view_ = &view;
    target_begins_ = text_.size();
  }
  void begin(const Row& row) override;
  void end() override;
  void value(const Value& value, std::optional<std::uint32_t> shape, ValueForm form) override;
  void memory(Bytes bytes) override { append_hex_dump(text_, bytes); }
  void packet(const Packet& packet, bool in_file) override {
    if (!in_file) append_hex_dump(text_, packet.bytes);
  }
  void formatted(const Format* format, std::span<const Value> values,
                 std::span<const std::uint32_t> /*shapes*/) override {
    if (format != nullptr) format->print(text_, values, {}, *view_, {}, own_parts());
  }
  void aggregations(const Aggregates& aggregates, const Format* format) override;
  void percentiles(const Aggregates& aggregates, std::string_view wanted) override {
    text_ += '\n';
    append_percentiles(text_, aggregates.table, aggregates.wanted, wanted, settings_, *view_,
                       sink_.escapes());
  }
  void emptied(const dif::Action&, std::optional<std::int64_t>, bool) override {}
  void exit(std::int64_t /*status*/) override {}
  void thread(const Thread& /*thread*/) override {}
  void truncate() override {
    write_text();
    sink_.truncate();
  }
  Result<void> reopen(const std::string& path) override;
  int begin_command(std::string_view command) override;
  void begin_snapshot(std::string_view path) override;
  // These are lines for stderr alone.
  void fault(const Origin&, const dif::FaultReport&, std::string_view) override {}
  void drop(const Drop&) override {}
  void statistics(const nlohmann::ordered_json&) override {}
  void begin_last(Moment /*moment*/) override { text_ = '\n'; }
  void select_all() override { of_all_ = true; }
  void last_aggregation(const Aggregations& table, std::uint32_t index) override {
    append_aggregations(text_, table, std::span(&index, 1), settings_, *view_, sink_.escapes());
  }
  void end_last() override;
  Result<std::vector<std::string>> finish() override {
    write_text();
    return {};
  }

 private:
  enum class Flow : std::uint8_t { Entry, Return, None };
  struct CpuFlow {
    std::vector<const dif::ProbeDescription*> open;  // entries whose return has not come yet
    dif::EcbId last;
  };

  /// Where to note the parts of text_ that come from the program itself; null: not needed.
  OwnParts* own_parts() { return sink_.escapes() ? &own_ : nullptr; }
  void write_text();
  void start_row(const Row& row);
  Flow flow_of(const Row& row);
  static std::size_t follow_flow(CpuFlow& flows, const Row& row, Flow flow);
  void append_flow_name(const Row& row, Flow flow);

  const Settings& settings_;
  Sink& sink_;
  const bool several_;
  const ProgramView* view_;                  // of what is shown now
  std::size_t target_ = 0;                   // its index
  std::vector<std::vector<CpuFlow>> flows_;  // by target and CPU: flowindent's columns
  std::size_t machine_width_;                // columns of the longest machine's name
  bool header_done_ = false;
  std::string text_;               // of the record that is being shown
  OwnParts own_;                   // of text_
  std::size_t line_ended_ = 0;     // how long text_ was when print() ended its line
  std::size_t target_begins_ = 0;  // in text_, at the end
  bool of_all_ = false;            // what is shown now is all targets'
};

void TextOutput::begin(const Row& row) {
  text_.clear();
  start_row(row);
  line_ended_ = std::string::npos;
}

void TextOutput::end() {
  const bool ended = text_.size() == line_ended_;
  if (!settings_.quiet && !ended) text_ += '\n';  // setopt() in this very record counts
  write_text();
}

void TextOutput::write_text() {
  sink_.write(text_, own_);
  text_.clear();
  own_.clear();
}

void TextOutput::value(const Value& value, std::optional<std::uint32_t> shape, ValueForm form) {
  if (form == ValueForm::Trace) {
    const std::size_t start = text_.size();
    OwnParts* const own = own_parts();
    append_column(text_, value,
                  {settings_.quiet, settings_.raw_bytes, 33, settings_.stack_indent,
                   own != nullptr && !value.own},
                  *view_);
    if (own != nullptr && value.own) own->emplace_back(start, text_.size());
    return;
  }
  if (shape) {
    append_print(text_, view_->program().shapes, *shape, value.bytes, *view_);
  } else {
    append_print(text_, value, *view_);
  }
  text_ += '\n';
  line_ended_ = text_.size();
}

void TextOutput::aggregations(const Aggregates& aggregates, const Format* format) {
  const auto& [table, wanted, merged] = aggregates;
  if (format == nullptr) {
    text_ += '\n';
    append_aggregations(text_, table, wanted, settings_, *view_, sink_.escapes());
    return;
  }
  for (const auto& row : table.rows(wanted, settings_)) {
    format->print(text_, row.keys, row.values, *view_, bar_style(settings_), own_parts());
  }
}

Result<void> TextOutput::reopen(const std::string& path) {
  write_text();
  if (!path.empty()) return sink_.redirect(path);
  sink_.restore();
  return {};
}

int TextOutput::begin_command(std::string_view /*command*/) {
  write_text();
  const int output_fd = sink_.redirected() ? sink_.fd() : STDOUT_FILENO;
  sink_.flush();
  return output_fd;
}

void TextOutput::begin_snapshot(std::string_view /*path*/) {
  write_text();
  sink_.flush();
}

void TextOutput::start_row(const Row& row) {
  const Settings& settings = settings_;
  const bool columns = !settings.testing;  // of CPU and ID
  if (!std::exchange(header_done_, true)) {
    if (columns && several_ && (settings.flow_indent || !settings.quiet)) {
      append_left(text_, kMachine, machine_width_);
      text_ += ' ';
    }
    if (settings.flow_indent) {
      text_ += columns ? "CPU " : "";
      append_left(text_, "FUNCTION", kFlowWidth);
      text_ += '\n';
    } else if (!settings.quiet) {
      text_ += columns ? "CPU     ID " : "";
      append_right(text_, "FUNCTION:NAME", kNameWidth);
      text_ += '\n';
    }
  }
  const unsigned cpu = row.origin.vcpu;
  if (!settings.flow_indent && settings.quiet) return;
  if (columns && several_) {
    append_left(text_, view_->machine(), machine_width_);
    text_ += ' ';
  }
  if (columns) {
    append_padded_number(text_, cpu, kCpuWidth);
    text_ += ' ';
  }
  if (settings.flow_indent) return append_flow_name(row, flow_of(row));
  if (columns) {
    append_padded_number(text_, row.origin.probe, kIdWidth);
    text_ += ' ';
  }
  append_right(text_, row.label, kNameWidth);
  text_ += ' ';
}

/// A call's several clauses make one arrow: the first at its entry, the last at its return.
TextOutput::Flow TextOutput::flow_of(const Row& row) {
  const auto& records = row.around.records;
  const dif::Record& record = records[row.index];
  const std::string_view name = row.origin.name->name;
  auto& flows = flows_[target_];
  if (flows.size() <= record.vcpu) flows.resize(std::size_t{record.vcpu} + 1);
  const dif::EcbId last = std::exchange(flows[record.vcpu].last, record.ecb);
  const auto same_probe = [&](dif::EcbId other) {
    return other != record.ecb && view_->ecb(other).probe.value == row.origin.probe;
  };
  if (names_end(name, "entry")) {
    return last.value != 0 && same_probe(last) ? Flow::None : Flow::Entry;
  }
  if (!names_end(name, "return")) return Flow::None;
  const auto next =
      std::find_if(records.begin() + static_cast<std::ptrdiff_t>(row.index) + 1, records.end(),
                   [&](const dif::Record& each) { return each.vcpu == record.vcpu; });
  return next != records.end() && same_probe(next->ecb) ? Flow::None : Flow::Return;
}

/// How many calls deep the arrow stands. A return takes away all down to its own entry: calls above
/// it whose return has no probe, or was dropped, are over, too. One whose entry nobody saw takes
/// away nothing.
std::size_t TextOutput::follow_flow(CpuFlow& flows, const Row& row, Flow flow) {
  auto& open = flows.open;
  const std::size_t depth = open.size();
  if (flow == Flow::Entry) {
    if (depth == kMostOpen) open.erase(open.begin());
    open.push_back(row.origin.name);
  }
  if (flow != Flow::Return) return depth;
  const auto is_own = [&](const dif::ProbeDescription* entry) {
    return is_pair(*entry, *row.origin.name);
  };
  const auto own = std::find_if(open.rbegin(), open.rend(), is_own);
  if (own != open.rend()) open.erase(std::prev(own.base()), open.end());
  return open.size();
}

/// "-> f" on entry and "<- f" on return ("=>" and "<=" for system calls), indented by depth.
void TextOutput::append_flow_name(const Row& row, Flow flow) {
  const std::size_t depth = follow_flow(flows_[target_][row.origin.vcpu], row, flow) * kFlowStep;
  const bool is_syscall = row.origin.name->provider == "syscall";
  const std::size_t start = text_.size();
  text_.append(std::min(depth, kDeepestFlow), ' ');
  switch (flow) {
    case Flow::Entry:
      text_ += is_syscall ? " => " : " -> ";
      text_ += row.origin.name->function;
      break;
    case Flow::Return:
      text_ += is_syscall ? " <= " : " <- ";
      text_ += row.origin.name->function;
      break;
    case Flow::None:
      text_ += "| ";  // one column before the arrows, as dtrace has it
      text_ += row.label;
      break;
  }
  const std::size_t used = text_.size() - start;
  text_.append(used < kFlowWidth ? kFlowWidth - used + 1 : 1, ' ');
}

/// Each target's own aggregations stand below its machine's name, then those of all.
void TextOutput::end_last() {
  if (!several_ || of_all_ || text_.size() == target_begins_) return;
  text_.insert(target_begins_, view_->machine() + ":\n");
}

}  // namespace

std::unique_ptr<Presenter> make_text_output(std::span<const ProgramView* const> views,
                                            const Settings& settings, Sink& sink) {
  return std::make_unique<TextOutput>(views, settings, sink);
}

}  // namespace ringside::cli
