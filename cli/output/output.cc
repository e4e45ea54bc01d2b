// The consumer. In this file, top to bottom: set-up, what was taken at once, one record, the end,
// messages. The actions: output_actions.cc.
#include "cli/output/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "cli/messages/messages.h"
#include "cli/output/structured_writer.h"
#include "cli/pictures/pictures.h"
#include "dif/verify/stack_use.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

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

Output::Output(std::span<const ProgramView* const> views, Settings& settings, Sink& sink,
               std::unique_ptr<RecordWriter> writer)
    : settings_(&settings), tells_in_records_(writer != nullptr), merge_(views.size()) {
  for (const ProgramView* view : views) sources_.push_back(std::make_unique<Source>(*view));
  source_ = sources_.front().get();
  presenter_ = settings.format == OutputFormat::Text && writer == nullptr
                   ? make_text_output(views, settings, sink)
                   : make_structured_output(*views.front(), settings, sink, std::move(writer));
}

Output::~Output() = default;
Output::Output(Output&&) noexcept = default;

Result<Output> Output::create(const ProgramView& view, Settings& settings, Sink& sink) {
  const ProgramView* const only = &view;
  return create(std::span(&only, 1), settings, sink);
}

Result<Output> Output::create(std::span<const ProgramView* const> views, Settings& settings,
                              Sink& sink, std::unique_ptr<RecordWriter> writer) {
  TRY(check_drawable(settings.format, views.front()->program()));
  if (settings.format == OutputFormat::Perfetto) TRY(sink.check_takes_bytes());
  Output output(views, settings, sink, std::move(writer));
  for (const auto& source : output.sources_) TRY(output.parse_formats(*source));
  if (settings.merge_aggregations && output.several()) TRY(output.merge_aggregations());
  if (!settings.packet_file.empty()) TRY(output.captures_.open(settings.packet_file));
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

void Output::select(std::size_t target) {
  source_ = sources_[target].get();
  presenter_->select(target, view());
}

void Output::consume(const dif::TraceData& trace_data) {
  aggregations_changed_ |= !trace_data.aggregates.empty();
  source_->aggregations.merge(trace_data.aggregates);
  for (std::size_t i = 0; i < trace_data.records.size(); ++i) print_record(trace_data, i);
  write_packets();
  write_faults(trace_data);
  write_drops(trace_data);
}

void Output::add(std::size_t target, dif::TraceData trace_data) {
  select(target);
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
        select(target);
        print_record(trace_data, index);
      });
  write_packets();
}

void Output::leave(std::size_t target) {
  sources_[target]->left = true;
}

void Output::write_faults(const dif::TraceData& trace_data) {
  for (const dif::FaultReport& report : trace_data.faults) {
    const Plan& failed = plan(report.ecb);
    const dif::Program& program = view().program();
    const dif::Clause& clause = program.clauses[view().ecb(report.ecb).clause];
    std::string line =
        told(fault_message(report, failed.probe, *failed.name) +
             fault_cause(report, program, clause, place_, settings_->engine.string_size));
    presenter_->fault({report.timestamp, report.vcpu, failed.probe.value, failed.name}, report,
                      line);
    if (!tells_in_records_) messages_.push_back(std::move(line));
  }
}

void Output::write_drops(const dif::TraceData& trace_data) {
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
      Presenter::Drop drop{number,
                           kind,
                           count,
                           all_drops[cpu][index],
                           told(drop_text(kind, count, number, settings_->drop_tags)),
                           {}};
      for (const dif::ClauseDrops& each : trace_data.clause_drops) {
        if (each.vcpu == cpu && each.kind == kind) drop.clauses.push_back(each);
      }
      presenter_->drop(drop);
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
  record_ = &record;
  presenter_->begin({{record.timestamp, record.vcpu, enabled.probe.value, enabled.name},
                     enabled.label,
                     trace_data,
                     index});
  for (const Step& step : enabled.steps) act(step, values_of(step, record.data));
  presenter_->end();
}

/// A file that cannot be written is told once.
void Output::write_packets() {
  const auto written = captures_.flush();
  if (!written) messages_.push_back(terminal_text(written.error().message, Breaks::Escaped));
}

void Output::statistics(std::size_t target, const nlohmann::ordered_json& figures) {
  select(target);
  presenter_->statistics(figures);
}

void Output::show_aggregations() {
  presenter_->begin_last(Presenter::Moment::End);
  visit_aggregations([this](std::uint32_t each) {
    presenter_->last_aggregation(std::as_const(*this).aggregations(each), each);
  });
}

bool Output::show_aggregations_meanwhile() {
  if (!std::exchange(aggregations_changed_, false)) return false;
  presenter_->begin_last(Presenter::Moment::Meanwhile);
  visit_aggregations([this](std::uint32_t each) {
    presenter_->last_aggregation(std::as_const(*this).aggregations(each), each);
  });
  return true;
}

Result<void> Output::finish() {
  presenter_->begin_last(Presenter::Moment::End);
  visit_aggregations([this](std::uint32_t each) { finish_aggregation(each); });
  for (const std::string& note : TRY(presenter_->finish())) messages_.push_back(note);
  return {};
}

std::vector<std::string> Output::take_messages() {
  return std::exchange(messages_, {});
}

std::vector<std::string> Output::take_drops() {
  std::vector<std::string> lines;
  for (const auto& source : sources_) {
    source_ = source.get();
    if (!tells_in_records_) append_drops(lines);
    append_lost_orders(lines);
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
}

void Output::append_lost_orders(std::vector<std::string>& lines) {
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
