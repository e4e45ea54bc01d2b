// The consumer. In this file, top to bottom: set-up, one harvest, the start of a row, actions,
// aggregations, messages.
#include "cli/output.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/messages.h"

namespace ringside::cli {
namespace {

using dif::ActionKind;

constexpr int kKeyWidth = 50;
constexpr std::size_t kFlowStep = 2;
constexpr std::size_t kDeepestFlow = 200;  // unmatched entries would indent for ever

/// The bytes of an action's recorded arguments, in order. Fields are ours, sizes are not trusted.
std::vector<Value> action_values(const dif::EcbInfo& ecb, std::uint32_t action, Bytes data) {
  std::vector<Value> values;
  for (const dif::RecordField& field : ecb.fields) {
    if (field.action != action) continue;
    if (field.offset > data.size() || field.size > data.size() - field.offset) continue;
    values.push_back({field.type, data.subspan(field.offset, field.size)});
  }
  return values;
}

}  // namespace

Output::Output(const ProgramView& view, Settings& settings, Sink& sink)
    : view_(&view),
      settings_(&settings),
      sink_(&sink),
      aggregations_(view.program().aggregations),
      printed_(view.program().aggregations.size()) {}

Result<Output> Output::create(const ProgramView& view, Settings& settings, Sink& sink) {
  Output output(view, settings, sink);
  const auto& clauses = view.program().clauses;
  for (std::uint32_t clause = 0; clause < clauses.size(); ++clause) {
    const auto& actions = clauses[clause].actions;
    for (std::uint32_t i = 0; i < actions.size(); ++i) {
      const bool formatted = actions[i].kind == ActionKind::Printf ||
                             (actions[i].kind == ActionKind::Printa && !actions[i].format.empty());
      if (!formatted) continue;
      auto format = Format::parse(actions[i].format);
      if (!format) {
        return fail(format.error().code,
                    fmt::format("line {}: {}", clauses[clause].line, format.error().message));
      }
      output.formats_.emplace(ActionPlace{clause, i}, std::move(*format));
    }
  }
  return output;
}

void Output::consume(const dif::Harvest& harvest) {
  aggregations_.merge(harvest.aggregates);
  for (const dif::Record& record : harvest.records) print_record(record);
  for (const dif::FaultReport& report : harvest.faults) {
    const dif::ProbeId probe = view_->ecb(report.ecb).probe;
    messages_.push_back(fault_message(report, probe, view_->probe_name(probe)));
  }
  if (drops_.size() < harvest.drops.size()) drops_.resize(harvest.drops.size());
  for (std::size_t cpu = 0; cpu < harvest.drops.size(); ++cpu) {
    for (std::size_t kind = 0; kind < dif::kDropKinds; ++kind) {
      drops_[cpu][kind] += harvest.drops[cpu][kind];
    }
  }
}

void Output::print_record(const dif::Record& record) {
  const dif::EcbInfo& ecb = view_->ecb(record.ecb);
  const auto& actions = view_->program().clauses[ecb.clause].actions;
  std::string text = row_start(record, ecb);
  const bool with_row = !settings_->quiet;  // setopt() in this record counts from the next one
  for (std::uint32_t i = 0; i < actions.size(); ++i) {
    text += act({ecb.clause, i}, actions[i], action_values(ecb, i, record.data));
  }
  if (with_row) text += '\n';
  sink_->write(text);
}

std::string Output::row_start(const dif::Record& record, const dif::EcbInfo& ecb) {
  if (settings_->quiet) return {};
  const dif::ProbeDescription& name = view_->probe_name(ecb.probe);
  std::string text;
  if (!std::exchange(header_printed_, true)) {
    text = settings_->flow_indent
               ? fmt::format("{:>3} {:<41}\n", "CPU", "FUNCTION")
               : fmt::format("{:>3} {:>6} {:>32}\n", "CPU", "ID", "FUNCTION:NAME");
  }
  if (settings_->flow_indent) {
    return text + fmt::format("{:>3} {:<41} ", record.vcpu, flow_name(name, record.vcpu));
  }
  return text + fmt::format("{:>3} {:>6} {:>32} ", record.vcpu, ecb.probe.value,
                            name.function + ':' + name.name);
}

/// "-> f" on entry and "<- f" on return ("=>" and "<=" for system calls), indented by depth.
std::string Output::flow_name(const dif::ProbeDescription& name, unsigned cpu) {
  if (depths_.size() <= cpu) depths_.resize(std::size_t{cpu} + 1);
  std::size_t& depth = depths_[cpu];
  const bool is_syscall = name.provider == "syscall";
  if (name.name == "return" && depth >= kFlowStep) depth -= kFlowStep;
  const std::string indent(std::min(depth, kDeepestFlow), ' ');
  if (name.name == "entry") {
    depth += kFlowStep;
    return fmt::format("{}{} {}", indent, is_syscall ? "=>" : "->", name.function);
  }
  if (name.name == "return") {
    return fmt::format("{}{} {}", indent, is_syscall ? "<=" : "<-", name.function);
  }
  return fmt::format("{} | {}:{}", indent, name.function, name.name);
}

std::string Output::act(ActionPlace place, const Action& action, const std::vector<Value>& values) {
  const Settings& settings = *settings_;
  switch (action.kind) {
    case ActionKind::Trace:
      if (values.empty()) return {};
      return column(values[0].type, values[0].bytes,
                    ColumnStyle{settings.quiet, settings.raw_bytes});
    case ActionKind::Tracemem: return values.empty() ? std::string() : hex_dump(values[0].bytes);
    case ActionKind::Printf:
      return formats_.at(place).print(values, {},
                                      [&](GuestVirt at) { return view_->describe(at); });
    case ActionKind::Printa: return print_aggregations(place, action);
    case ActionKind::Clear:
      for (const std::uint32_t each : action.aggregations) aggregations_.clear(each);
      return {};
    case ActionKind::Trunc:
      for (const std::uint32_t each : action.aggregations) {
        aggregations_.trunc(each, action.has_argument
                                      ? std::optional(static_cast<std::int64_t>(action.argument))
                                      : std::nullopt);
      }
      return {};
    case ActionKind::Normalize: normalize(action, values); return {};
    case ActionKind::Denormalize:
      for (const std::uint32_t each : action.aggregations) aggregations_.normalize(each, 1);
      return {};
    case ActionKind::Setopt: set_option(action); return {};
    case ActionKind::Exit:
    case ActionKind::Aggregate:
    case ActionKind::Evaluate: return {};
  }
  return {};
}

std::string Output::print_aggregations(ActionPlace place, const Action& action) {
  for (const std::uint32_t each : action.aggregations) {
    if (each < printed_.size()) printed_[each] = true;
  }
  const auto format = formats_.find(place);
  if (format == formats_.end()) return '\n' + aggregation_lines(action.aggregations);
  std::string text;
  for (const auto& row : aggregations_.rows(action.aggregations, *settings_)) {
    text += format->second.print(row.keys, row.values,
                                 [&](GuestVirt at) { return view_->describe(at); });
  }
  return text;
}

std::string Output::aggregation_lines(std::span<const std::uint32_t> aggregations) const {
  std::string text;
  for (const auto& row : aggregations_.rows(aggregations, *settings_)) {
    for (const Value& key : row.keys) {
      text += column(key.type, key.bytes, ColumnStyle{false, settings_->raw_bytes, kKeyWidth});
    }
    for (const AggregateValue& value : row.values) {
      text += is_distribution(value.definition->function)
                  ? distribution_text(value)
                  : fmt::format(" {:>16}", scalar_value(value));
    }
    text += '\n';
  }
  return text;
}

void Output::normalize(const Action& action, const std::vector<Value>& values) {
  const std::int64_t factor =
      values.empty() ? static_cast<std::int64_t>(action.argument) : signed_value(values[0].bytes);
  if (factor == 0) {
    messages_.emplace_back("normalize(): the factor is 0, so it was ignored");
    return;
  }
  for (const std::uint32_t each : action.aggregations) aggregations_.normalize(each, factor);
}

void Output::set_option(const Action& action) {
  const auto done = apply_option(*settings_, action.format, action.text, SettingPhase::Running);
  if (!done) messages_.push_back("setopt(): " + done.error().message);
}

void Output::finish() {
  std::string text = "\n";
  for (std::uint32_t each = 0; each < printed_.size(); ++each) {
    if (!printed_[each]) text += aggregation_lines(std::span(&each, 1));
  }
  sink_->write(text);
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
