// The consumer. In this file, top to bottom: set-up, one harvest, one record, the start of a row
// and flowindent, the end, messages. What actions do: output_actions.cc.
#include "cli/output/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/messages.h"
#include "cli/output/structured_output.h"

namespace ringside::cli {
namespace {

constexpr std::size_t kFlowStep = 2;
constexpr std::size_t kDeepestFlow = 200;  // unmatched entries would indent for ever
constexpr std::size_t kNameWidth = 32, kFlowWidth = 41;
constexpr std::size_t kCpuWidth = 3, kIdWidth = 6;

bool has_format(const dif::Action& action) {
  return dif::action_info(action.kind).records == dif::RecordedData::Formatted &&
         !action.format.empty();
}

/// "entry", or a provider's own "method-entry".
bool names_end(std::string_view name, std::string_view word) {
  if (!name.ends_with(word)) return false;
  return name.size() == word.size() || name[name.size() - word.size() - 1] == '-';
}

}  // namespace

Output::Output(const ProgramView& view, Settings& settings, Sink& sink)
    : view_(&view),
      settings_(&settings),
      sink_(&sink),
      aggregations_(view.program().aggregations, &view),
      printed_(view.program().aggregations.size()) {
  if (settings.format != OutputFormat::Text) {
    structured_ = std::make_unique<StructuredOutput>(settings.format, view, sink);
  }
}

Output::~Output() = default;
Output::Output(Output&&) noexcept = default;

Result<Output> Output::create(const ProgramView& view, Settings& settings, Sink& sink) {
  Output output(view, settings, sink);
  TRY(output.parse_formats());
  return output;
}

Result<void> Output::parse_formats() {
  for (const dif::Clause& clause : view_->program().clauses) {
    auto& formats = formats_.emplace_back(clause.actions.size());
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

const Output::Plan& Output::plan(dif::EcbId id) {
  if (plans_.size() <= id.value) plans_.resize(std::size_t{id.value} + 1);
  std::unique_ptr<Plan>& plan = plans_[id.value];
  if (plan) return *plan;
  plan = std::make_unique<Plan>();
  const dif::EcbInfo& ecb = view_->ecb(id);
  plan->probe = ecb.probe;
  plan->name = &view_->probe_name(ecb.probe);
  plan->label = plan->name->function + ':' + plan->name->name;
  const auto& actions = view_->program().clauses[ecb.clause].actions;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    Step& step = plan->steps.emplace_back();
    step.action = &actions[i];
    const auto& format = formats_[ecb.clause][i];
    step.format = format ? &*format : nullptr;
    for (const dif::RecordField& field : ecb.fields) {
      if (field.action == i) step.fields.push_back(field);
    }
  }
  return *plan;
}

void Output::consume(const dif::Harvest& harvest) {
  aggregations_.merge(harvest.aggregates);
  for (std::size_t i = 0; i < harvest.records.size(); ++i) print_record(harvest, i);
  for (const dif::FaultReport& report : harvest.faults) {
    const Plan& failed = plan(report.ecb);
    messages_.push_back(fault_message(report, failed.probe, *failed.name));
    if (structured_) {
      structured_->fault({report.timestamp, report.vcpu, failed.probe.value, failed.name}, report,
                         messages_.back());
    }
  }
  write_drops(harvest);
}

void Output::write_drops(const dif::Harvest& harvest) {
  if (drops_.size() < harvest.drops.size()) drops_.resize(harvest.drops.size());
  if (all_drops_.size() < harvest.drops.size()) all_drops_.resize(harvest.drops.size());
  for (std::size_t cpu = 0; cpu < harvest.drops.size(); ++cpu) {
    for (std::size_t index = 0; index < dif::kDropKinds; ++index) {
      const std::uint64_t count = harvest.drops[cpu][index];
      if (count == 0) continue;
      drops_[cpu][index] += count;
      all_drops_[cpu][index] += count;
      const auto kind = static_cast<dif::DropKind>(index);
      const auto number = static_cast<unsigned>(cpu);
      if (structured_) {
        structured_->drop({number, kind, count, all_drops_[cpu][index],
                           drop_text(kind, count, number, settings_->drop_tags)});
      }
    }
  }
}

/// The bytes of an action's recorded arguments, in order. Fields are ours, sizes are not trusted.
std::span<const Value> Output::values_of(const Step& step, Bytes data) {
  values_.clear();
  for (const dif::RecordField& field : step.fields) {
    if (field.offset > data.size() || field.size > data.size() - field.offset) continue;
    values_.push_back({field.type, data.subspan(field.offset, field.size)});
  }
  return values_;
}

void Output::print_record(const dif::Harvest& harvest, std::size_t index) {
  const dif::Record& record = harvest.records[index];
  const Plan& enabled = plan(record.ecb);
  text_.clear();
  if (structured_) {
    structured_->begin({record.timestamp, record.vcpu, enabled.probe.value, enabled.name});
    for (const Step& step : enabled.steps) act(step, values_of(step, record.data));
    structured_->end();
    return;
  }
  start_row(harvest, index, enabled);
  line_ended_ = std::string::npos;
  for (const Step& step : enabled.steps) act(step, values_of(step, record.data));
  const bool ended = text_.size() == line_ended_;
  if (!settings_->quiet && !ended) text_ += '\n';  // setopt() in this very record counts
  sink_->write(text_);
}

void Output::start_row(const dif::Harvest& harvest, std::size_t index, const Plan& plan) {
  const Settings& settings = *settings_;
  const bool columns = !settings.testing;  // of CPU and ID
  if (!std::exchange(header_done_, true)) {
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
  const unsigned cpu = harvest.records[index].vcpu;
  if (!settings.flow_indent && settings.quiet) return;
  if (columns) {
    append_padded_number(text_, cpu, kCpuWidth);
    text_ += ' ';
  }
  if (settings.flow_indent) return append_flow_name(plan, flow_of(harvest, index, plan), cpu);
  if (columns) {
    append_padded_number(text_, plan.probe.value, kIdWidth);
    text_ += ' ';
  }
  append_right(text_, plan.label, kNameWidth);
  text_ += ' ';
}

/// A call's several clauses make one arrow: the first at its entry, the last at its return.
Output::Flow Output::flow_of(const dif::Harvest& harvest, std::size_t index, const Plan& plan) {
  const dif::Record& record = harvest.records[index];
  if (flows_.size() <= record.vcpu) flows_.resize(std::size_t{record.vcpu} + 1);
  const dif::EcbId last = std::exchange(flows_[record.vcpu].last, record.ecb);
  const auto same_probe = [&](dif::EcbId other) {
    return other != record.ecb && this->plan(other).probe == plan.probe;
  };
  if (names_end(plan.name->name, "entry")) {
    return last.value != 0 && same_probe(last) ? Flow::None : Flow::Entry;
  }
  if (!names_end(plan.name->name, "return")) return Flow::None;
  const auto next = std::find_if(harvest.records.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                                 harvest.records.end(),
                                 [&](const dif::Record& each) { return each.vcpu == record.vcpu; });
  return next != harvest.records.end() && same_probe(next->ecb) ? Flow::None : Flow::Return;
}

/// "-> f" on entry and "<- f" on return ("=>" and "<=" for system calls), indented by depth.
void Output::append_flow_name(const Plan& plan, Flow flow, unsigned cpu) {
  std::size_t& depth = flows_[cpu].depth;
  const bool is_syscall = plan.name->provider == "syscall";
  if (flow == Flow::Return && depth >= kFlowStep) depth -= kFlowStep;
  const std::size_t start = text_.size();
  text_.append(std::min(depth, kDeepestFlow), ' ');
  switch (flow) {
    case Flow::Entry:
      text_ += is_syscall ? " => " : " -> ";
      text_ += plan.name->function;
      depth += kFlowStep;
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

void Output::finish() {
  text_.clear();
  if (!structured_) text_ += '\n';
  finish_aggregations();
  if (structured_) {
    structured_->finish();
  } else {
    sink_->write(text_);
  }
}

std::vector<std::string> Output::take_messages() {
  return std::exchange(messages_, {});
}

std::vector<std::string> Output::take_drops() {
  std::vector<std::string> lines;
  for (std::size_t index = 0; index < dif::kDropKinds; ++index) {
    const auto kind = static_cast<dif::DropKind>(index);
    std::uint64_t together = 0;
    for (std::size_t cpu = 0; cpu < drops_.size(); ++cpu) {
      const std::uint64_t count = std::exchange(drops_[cpu][index], 0);
      if (is_per_cpu(kind) && count > 0) {
        lines.push_back(drop_text(kind, count, static_cast<unsigned>(cpu), settings_->drop_tags));
      }
      together += count;
    }
    if (!is_per_cpu(kind) && together > 0) {
      lines.push_back(drop_text(kind, together, 0, settings_->drop_tags));
    }
  }
  return lines;
}

}  // namespace ringside::cli
