// The consumer. In this file, top to bottom: set-up, what was taken at once, one record, the start
// of a row and flowindent, the end, messages. The actions: output_actions.cc.
#include "cli/output/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "cli/messages/messages.h"
#include "cli/output/structured_output.h"
#include "dif/verify/stack_use.h"
#include "vmm/base/utf8.h"

namespace ringside::cli {
namespace {

constexpr std::size_t kFlowStep = 2;
constexpr std::size_t kDeepestFlow = 200;  // unmatched entries would indent for ever
constexpr std::size_t kMostOpen = 1000;    // of them; the oldest are forgotten
constexpr std::size_t kNameWidth = 32, kFlowWidth = 41;
constexpr std::size_t kCpuWidth = 3, kIdWidth = 6;
constexpr std::string_view kMachine = "MACHINE";  // the column that several machines have

bool has_format(const dif::Action& action) {
  return dif::action_info(action.kind).records == dif::RecordedData::Formatted &&
         !action.format.empty();
}

/// Whether values of this kind are addresses of code.
bool names_code(dif::ValueKind kind) {
  switch (kind) {
    case dif::ValueKind::Integer:
    case dif::ValueKind::String:
    case dif::ValueKind::Bytes:
    case dif::ValueKind::Void: return false;
    case dif::ValueKind::KernelStack:
    case dif::ValueKind::UserStack:
    case dif::ValueKind::KernelSymbol:
    case dif::ValueKind::KernelModule:
    case dif::ValueKind::UserSymbol:
    case dif::ValueKind::UserModule:
    case dif::ValueKind::UserAddress: return true;
  }
  return true;
}

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

/// "line 3 (tick-1s)"
std::string clause_text(const dif::Clause& clause) {
  const std::string probe = clause.probes.empty() ? "" : clause.probes[0].to_string();
  return fmt::format("line {} ({}{})", clause.line,
                     probe.substr(std::min(probe.find_first_not_of(':'), probe.size())),
                     clause.probes.size() > 1 ? ", ..." : "");
}

/// "printa(), clear()": what the consumer does for it. exit() ends tracing by itself.
std::string orders_of(const dif::Clause& clause) {
  std::string text;
  for (const dif::Action& action : clause.actions) {
    if (!dif::is_order(action.kind) || action.kind == dif::ActionKind::Exit) continue;
    text += fmt::format("{}{}()", text.empty() ? "" : ", ", dif::action_info(action.kind).name);
  }
  return text;
}

}  // namespace

Output::Source::Source(const ProgramView& program)
    : view(&program),
      aggregations(program.program().aggregations, &program),
      printed(program.program().aggregations.size()) {}

Output::Output(std::span<const ProgramView* const> views, Settings& settings, Sink& sink)
    : settings_(&settings), sink_(&sink), merge_(views.size()), machine_width_(kMachine.size()) {
  for (const ProgramView* view : views) {
    sources_.push_back(std::make_unique<Source>(*view));
    machine_width_ = std::max(machine_width_, view->machine().size());
  }
  source_ = sources_.front().get();
  if (settings.format != OutputFormat::Text) {
    structured_ = std::make_unique<StructuredOutput>(settings.format, view(), sink);
  }
}

Output::~Output() = default;
Output::Output(Output&&) noexcept = default;

Result<Output> Output::create(const ProgramView& view, Settings& settings, Sink& sink) {
  const ProgramView* const only = &view;
  return create(std::span(&only, 1), settings, sink);
}

Result<Output> Output::create(std::span<const ProgramView* const> views, Settings& settings,
                              Sink& sink) {
  Output output(views, settings, sink);
  for (const auto& source : output.sources_) TRY(output.parse_formats(*source));
  if (settings.merge_aggregations && output.several()) TRY(output.merge_aggregations());
  return output;
}

Result<void> Output::parse_formats(Source& source) {
  for (const dif::Clause& clause : source.view->program().clauses) {
    auto& formats = source.formats.emplace_back(clause.actions.size());
    for (std::size_t i = 0; i < clause.actions.size(); ++i) {
      if (!has_format(clause.actions[i])) continue;
      auto format = Format::parse(clause.actions[i].format);
      if (!format) {
        return fail(format.error().code,
                    fmt::format("line {}: {}", clause.line, format.error().message));
      }
      formats[i] = std::move(*format);
    }
  }
  return {};
}

/// An address is another one on another machine, so what has one in its key stays apart.
Result<void> Output::merge_aggregations() {
  const auto& first = view().program().aggregations;
  for (const auto& source : sources_) {
    if (source->view->program().aggregations == first) continue;
    return fail(ErrorCode::Invalid,
                fmt::format("aggmerge: the aggregations on {} and {} differ in their keys or "
                            "parameters; leave the option away",
                            view().machine(), source->view->machine()));
  }
  for (const dif::Aggregation& each : first) {
    merged_.push_back(std::ranges::none_of(
        each.keys, [](const dif::ValueType& key) { return names_code(key.kind); }));
  }
  merged_aggregations_.emplace(first);
  return {};
}

std::string Output::told(std::string_view line) const {
  // It may quote text of a guest, which must not pass for a line of ours.
  const std::string safe = terminal_text(line, Breaks::Escaped);
  return several() ? fmt::format("{}: {}", view().machine(), safe) : safe;
}

const Output::Plan& Output::plan(dif::EcbId id) {
  auto& plans = source_->plans;
  if (plans.size() <= id.value) plans.resize(std::size_t{id.value} + 1);
  std::unique_ptr<Plan>& plan = plans[id.value];
  if (plan) return *plan;
  plan = std::make_unique<Plan>();
  const dif::EcbInfo& ecb = view().ecb(id);
  plan->probe = ecb.probe;
  plan->name = &view().probe_name(ecb.probe);
  plan->label = plan->name->function + ':' + plan->name->name;
  const auto& actions = view().program().clauses[ecb.clause].actions;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    Step& step = plan->steps.emplace_back();
    step.action = &actions[i];
    const auto& format = source_->formats[ecb.clause][i];
    step.format = format ? &*format : nullptr;
    for (const dif::RecordField& field : ecb.fields) {
      if (field.action != i) continue;
      step.fields.push_back(field);
      const auto& arguments = actions[i].arguments;
      step.own.push_back(field.argument < arguments.size() &&
                         dif::returns_constant(arguments[field.argument]));
    }
  }
  return *plan;
}

void Output::consume(const dif::TraceData& trace_data) {
  source_->aggregations.merge(trace_data.aggregates);
  for (std::size_t i = 0; i < trace_data.records.size(); ++i) print_record(trace_data, i);
  write_faults(trace_data);
  write_drops(trace_data);
}

void Output::add(std::size_t target, dif::TraceData trace_data) {
  source_ = sources_[target].get();
  for (const dif::AggregateEntry& change : trace_data.aggregates) {
    aggregations(change.aggregation).merge(std::span(&change, 1));
  }
  write_faults(trace_data);
  write_drops(trace_data);
  merge_.add(target, std::move(trace_data));
}

void Output::print_until(std::uint64_t timestamp) {
  merge_.visit_until(
      timestamp, [this](std::size_t target, const dif::TraceData& trace_data, std::size_t index) {
        source_ = sources_[target].get();
        print_record(trace_data, index);
      });
}

void Output::leave(std::size_t target) {
  sources_[target]->left = true;
}

void Output::write_faults(const dif::TraceData& trace_data) {
  if (structured_) structured_->select(view());
  for (const dif::FaultReport& report : trace_data.faults) {
    const Plan& failed = plan(report.ecb);
    const dif::Program& program = view().program();
    const dif::Clause& clause = program.clauses[view().ecb(report.ecb).clause];
    messages_.push_back(
        told(fault_message(report, failed.probe, *failed.name) +
             fault_cause(report, program, clause, place_, settings_->engine.string_size)));
    if (structured_) {
      structured_->fault({report.timestamp, report.vcpu, failed.probe.value, failed.name}, report,
                         messages_.back());
    }
  }
}

void Output::write_drops(const dif::TraceData& trace_data) {
  if (structured_) structured_->select(view());
  count_clause_drops(trace_data);
  auto& drops = source_->drops;
  auto& all_drops = source_->all_drops;
  if (drops.size() < trace_data.drops.size()) drops.resize(trace_data.drops.size());
  if (all_drops.size() < trace_data.drops.size()) all_drops.resize(trace_data.drops.size());
  for (std::size_t cpu = 0; cpu < trace_data.drops.size(); ++cpu) {
    for (std::size_t index = 0; index < dif::kDropKinds; ++index) {
      const std::uint64_t count = trace_data.drops[cpu][index];
      if (count == 0) continue;
      drops[cpu][index] += count;
      all_drops[cpu][index] += count;
      const auto kind = static_cast<dif::DropKind>(index);
      const auto number = static_cast<unsigned>(cpu);
      if (structured_) {
        StructuredOutput::Drop drop{number,
                                    kind,
                                    count,
                                    all_drops[cpu][index],
                                    told(drop_text(kind, count, number, settings_->drop_tags)),
                                    {}};
        for (const dif::ClauseDrops& each : trace_data.clause_drops) {
          if (each.vcpu == cpu && each.kind == kind) drop.clauses.push_back(each);
        }
        structured_->drop(drop);
      }
    }
  }
}

void Output::count_clause_drops(const dif::TraceData& trace_data) {
  const auto& clauses = view().program().clauses;
  for (auto* counts : {&source_->clause_drops, &source_->lost_orders}) {
    counts->resize(clauses.size());
  }
  for (const dif::ClauseDrops& each : trace_data.clause_drops) {
    if (each.clause >= clauses.size()) continue;
    source_->clause_drops[each.clause] += each.count;
    if (!orders_of(clauses[each.clause]).empty()) source_->lost_orders[each.clause] += each.count;
  }
}

std::vector<std::string> Output::drops_by_clause(std::size_t target) const {
  const Source& source = *sources_[target];
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < source.clause_drops.size(); ++i) {
    const std::uint64_t count = source.clause_drops[i];
    if (count == 0) continue;
    lines.push_back(fmt::format("{} drop{} of {}", count, count == 1 ? "" : "s",
                                clause_text(source.view->program().clauses[i])));
  }
  return lines;
}

/// The bytes of an action's recorded arguments, in order. Fields are ours, sizes are not trusted.
std::span<const Value> Output::values_of(const Step& step, Bytes data) {
  values_.clear();
  for (std::size_t i = 0; i < step.fields.size(); ++i) {
    const dif::RecordField& field = step.fields[i];
    if (field.offset > data.size() || field.size > data.size() - field.offset) continue;
    values_.push_back({field.type, data.subspan(field.offset, field.size), step.own[i]});
  }
  return values_;
}

void Output::print_record(const dif::TraceData& trace_data, std::size_t index) {
  const dif::Record& record = trace_data.records[index];
  const Plan& enabled = plan(record.ecb);
  plan_ = &enabled;
  text_.clear();
  if (structured_) {
    structured_->select(view());
    structured_->begin({record.timestamp, record.vcpu, enabled.probe.value, enabled.name});
    for (const Step& step : enabled.steps) act(step, values_of(step, record.data));
    structured_->end();
    return;
  }
  start_row(trace_data, index, enabled);
  line_ended_ = std::string::npos;
  for (const Step& step : enabled.steps) act(step, values_of(step, record.data));
  const bool ended = text_.size() == line_ended_;
  if (!settings_->quiet && !ended) text_ += '\n';  // setopt() in this very record counts
  write_text();
}

void Output::write_text() {
  sink_->write(text_, own_);
  text_.clear();
  own_.clear();
}

void Output::start_row(const dif::TraceData& trace_data, std::size_t index, const Plan& plan) {
  const Settings& settings = *settings_;
  const bool columns = !settings.testing;  // of CPU and ID
  if (!std::exchange(header_done_, true)) {
    if (columns && several() && (settings.flow_indent || !settings.quiet)) {
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
  const unsigned cpu = trace_data.records[index].vcpu;
  if (!settings.flow_indent && settings.quiet) return;
  if (columns && several()) {
    append_left(text_, view().machine(), machine_width_);
    text_ += ' ';
  }
  if (columns) {
    append_padded_number(text_, cpu, kCpuWidth);
    text_ += ' ';
  }
  if (settings.flow_indent) return append_flow_name(plan, flow_of(trace_data, index, plan), cpu);
  if (columns) {
    append_padded_number(text_, plan.probe.value, kIdWidth);
    text_ += ' ';
  }
  append_right(text_, plan.label, kNameWidth);
  text_ += ' ';
}

/// A call's several clauses make one arrow: the first at its entry, the last at its return.
Output::Flow Output::flow_of(const dif::TraceData& trace_data, std::size_t index,
                             const Plan& plan) {
  const dif::Record& record = trace_data.records[index];
  auto& flows = source_->flows;
  if (flows.size() <= record.vcpu) flows.resize(std::size_t{record.vcpu} + 1);
  const dif::EcbId last = std::exchange(flows[record.vcpu].last, record.ecb);
  const auto same_probe = [&](dif::EcbId other) {
    return other != record.ecb && this->plan(other).probe == plan.probe;
  };
  if (names_end(plan.name->name, "entry")) {
    return last.value != 0 && same_probe(last) ? Flow::None : Flow::Entry;
  }
  if (!names_end(plan.name->name, "return")) return Flow::None;
  const auto next = std::find_if(
      trace_data.records.begin() + static_cast<std::ptrdiff_t>(index) + 1, trace_data.records.end(),
      [&](const dif::Record& each) { return each.vcpu == record.vcpu; });
  return next != trace_data.records.end() && same_probe(next->ecb) ? Flow::None : Flow::Return;
}

/// How many calls deep the arrow stands. A return takes away all down to its own entry: calls above
/// it whose return has no probe, or was dropped, are over, too. One whose entry nobody saw takes
/// away nothing.
std::size_t Output::follow_flow(CpuFlow& flows, const Plan& plan, Flow flow) {
  auto& open = flows.open;
  const std::size_t depth = open.size();
  if (flow == Flow::Entry) {
    if (depth == kMostOpen) open.erase(open.begin());
    open.push_back(plan.name);
  }
  if (flow != Flow::Return) return depth;
  const auto is_own = [&](const dif::ProbeDescription* entry) {
    return is_pair(*entry, *plan.name);
  };
  const auto own = std::find_if(open.rbegin(), open.rend(), is_own);
  if (own != open.rend()) open.erase(std::prev(own.base()), open.end());
  return open.size();
}

/// "-> f" on entry and "<- f" on return ("=>" and "<=" for system calls), indented by depth.
void Output::append_flow_name(const Plan& plan, Flow flow, unsigned cpu) {
  const std::size_t depth = follow_flow(source_->flows[cpu], plan, flow) * kFlowStep;
  const bool is_syscall = plan.name->provider == "syscall";
  const std::size_t start = text_.size();
  text_.append(std::min(depth, kDeepestFlow), ' ');
  switch (flow) {
    case Flow::Entry:
      text_ += is_syscall ? " => " : " -> ";
      text_ += plan.name->function;
      break;
    case Flow::Return:
      text_ += is_syscall ? " <= " : " <- ";
      text_ += plan.name->function;
      break;
    case Flow::None:
      text_ += "| ";  // one column before the arrows, as dtrace has it
      text_ += plan.label;
      break;
  }
  const std::size_t used = text_.size() - start;
  text_.append(used < kFlowWidth ? kFlowWidth - used + 1 : 1, ' ');
}

void Output::statistics(std::size_t target, const nlohmann::ordered_json& figures) {
  if (!structured_) return;
  structured_->select(*sources_[target]->view);
  structured_->statistics(figures);
}

void Output::finish() {
  text_.clear();
  if (!structured_) text_ += '\n';
  finish_aggregations();
  if (structured_) {
    structured_->finish();
  } else {
    write_text();
  }
}

std::vector<std::string> Output::take_messages() {
  return std::exchange(messages_, {});
}

std::vector<std::string> Output::take_drops() {
  std::vector<std::string> lines;
  for (const auto& source : sources_) {
    source_ = source.get();
    append_drops(lines);
  }
  return lines;
}

std::uint64_t Output::drops(std::size_t target) const {
  std::uint64_t sum = 0;
  for (const auto& cpu : sources_[target]->all_drops) {
    sum = std::accumulate(cpu.begin(), cpu.end(), sum);
  }
  return sum;
}

void Output::append_drops(std::vector<std::string>& lines) {
  for (std::size_t index = 0; index < dif::kDropKinds; ++index) {
    const auto kind = static_cast<dif::DropKind>(index);
    std::uint64_t together = 0;
    for (std::size_t cpu = 0; cpu < source_->drops.size(); ++cpu) {
      const std::uint64_t count = std::exchange(source_->drops[cpu][index], 0);
      if (is_per_cpu(kind) && count > 0) {
        lines.push_back(
            told(drop_text(kind, count, static_cast<unsigned>(cpu), settings_->drop_tags)));
      }
      together += count;
    }
    if (!is_per_cpu(kind) && together > 0) {
      lines.push_back(told(drop_text(kind, together, 0, settings_->drop_tags)));
    }
  }
  for (std::size_t i = 0; i < source_->lost_orders.size(); ++i) {
    const std::uint64_t count = std::exchange(source_->lost_orders[i], 0);
    if (count == 0) continue;
    const dif::Clause& clause = view().program().clauses[i];
    lines.push_back(
        told(fmt::format("{} of these {} of {}: {} was not done", count, count == 1 ? "is" : "are",
                         clause_text(clause), orders_of(clause))));
  }
}

}  // namespace ringside::cli
