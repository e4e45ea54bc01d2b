// The actions of a record: each has something to show, or does something. In this file, top to
// bottom: the choice, values, formats, aggregations, options, files and commands.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/guest/host_program.h"
#include "cli/output/output.h"
#include "cli/output/pretty_print.h"

namespace ringside::cli {

using dif::ActionKind;

void Output::act(const Step& step, std::span<const Value> values) {
  if (acts_for_another(*step.action)) return;
  switch (step.action->kind) {
// clang-format off
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  case ActionKind::kind: return show(step, values);
#define DIF_ACTION_FORM(kind, number, changes, records, verify, fire, show) \
  case ActionKind::kind: return show(step, values);
#include "dif/program/actions.def"
    // clang-format on
  }
}

/// Nothing is recorded of it: it happened when the probe fired.
void Output::show_nothing(const Step&, std::span<const Value>) {}

void Output::tell_exit(const Step&, std::span<const Value> values) {
  if (!values.empty()) presenter_->exit(integer_value(values[0]));
}

void Output::tell_thread(const Step&, std::span<const Value> values) {
  if (values.size() < 3) return;
  presenter_->thread({static_cast<std::uint32_t>(integer_value(values[0])),
                      static_cast<std::uint32_t>(integer_value(values[1])),
                      text_value(values[2].bytes)});
}

void Output::print_value(const Step& step, std::span<const Value> values) {
  if (values.empty()) return;
  const auto& shapes = view().program().shapes;
  const auto& known = step.action->shapes;
  const bool shaped = !known.empty() && known[0] < shapes.size();
  Value value = values[0];
  if (step.action->kind == ActionKind::Print && value.type.kind != dif::ValueKind::Integer) {
    value.bytes =
        value.bytes.first(std::min<std::uint64_t>(value.bytes.size(), settings_->print_size));
  }
  presenter_->value(value, shaped ? std::optional(known[0]) : std::nullopt,
                    step.action->kind == ActionKind::Trace ? Presenter::ValueForm::Trace
                                                           : Presenter::ValueForm::Print);
}

void Output::print_memory(const Step& step, std::span<const Value> values) {
  if (values.empty()) return;
  Bytes bytes = values[0].bytes;
  // A size that does not fit (a negative one is huge) means as much as was asked for at most.
  if (step.action->kind == ActionKind::TracememDynamic && values.size() > 1) {
    bytes = bytes.first(std::min<std::uint64_t>(unsigned_value(values[1].bytes), bytes.size()));
  }
  presenter_->memory(bytes);
}

/// Times in a file are those of the firings, so that the host's delay is not in them, but for the
/// first one's.
void Output::print_packet(const Step&, std::span<const Value> values) {
  if (values.size() != 2) return;
  const auto packet = read_packet(values[0].bytes, integer_value(values[1]));
  if (!packet) return;
  const auto fired = static_cast<std::int64_t>(record_->timestamp);
  if (!wall_) wall_ = packet->header.walltimestamp - fired;
  const bool in_file = captures_.add(
      *packet, {view().machine(), plan_->name->to_string(), record_->vcpu, fired + *wall_});
  if (!in_file && settings_->format == OutputFormat::Text && !told_of_packets_) {
    told_of_packets_ = true;
    messages_.emplace_back(
        "pcap(): packets are printed as bytes, because there is no file for them; -x pcapfile=FILE "
        "writes one that wireshark and tshark read");
  }
  presenter_->packet(*packet, in_file);
}

/// The values as the action's format prints them; nothing without a format.
std::string Output::formatted(const Step& step, std::span<const Value> values) {
  std::string text;
  if (step.format != nullptr) step.format->print(text, values, {}, view());
  return text;
}

void Output::print_formatted(const Step& step, std::span<const Value> values) {
  presenter_->formatted(step.format, values, step.action->shapes);
}

/// BEGIN, END and tick- fire once for each target. Their actions on an aggregation that all targets
/// share are done once: for the first target that is still there.
bool Output::acts_for_another(const Action& action) const {
  if (!merged_aggregations_ || action.aggregations.empty()) return false;
  if (!is_merged(action.aggregations.front())) return false;
  const dif::ProbeDescription& probe = *plan_->name;
  const bool fires_on_each = (probe.provider == "dtrace" && probe.name != "ERROR") ||
                             (probe.provider == "profile" && probe.name.starts_with("tick-"));
  const auto first =
      std::ranges::find(sources_, false, [](const auto& each) { return each->left; });
  return fires_on_each && first != sources_.end() && first->get() != source_;
}

const Aggregations& Output::aggregations(std::uint32_t aggregation) const {
  return is_merged(aggregation) ? *merged_aggregations_ : source_->aggregations;
}

Aggregations& Output::aggregations(std::uint32_t aggregation) {
  aggregations_changed_ = true;
  return is_merged(aggregation) ? *merged_aggregations_ : source_->aggregations;
}

void Output::mark_printed(std::uint32_t aggregation) {
  auto& printed = is_merged(aggregation) ? sources_.front()->printed : source_->printed;
  if (aggregation < printed.size()) printed[aggregation] = true;
}

bool Output::shares(const Action& action) const {
  return !action.aggregations.empty() && is_merged(action.aggregations.front());
}

void Output::clear(const Step& step, std::span<const Value>) {
  for (const std::uint32_t each : step.action->aggregations) aggregations(each).clear(each);
  presenter_->emptied(*step.action, std::nullopt, shares(*step.action));
}

void Output::trunc(const Step& step, std::span<const Value> values) {
  std::optional<std::int64_t> keep;
  if (step.action->has_argument) keep = static_cast<std::int64_t>(step.action->argument);
  if (!values.empty()) keep = integer_value(values[0]);
  for (const std::uint32_t each : step.action->aggregations) aggregations(each).trunc(each, keep);
  presenter_->emptied(*step.action, keep, shares(*step.action));
}

void Output::denormalize(const Step& step, std::span<const Value>) {
  for (const std::uint32_t each : step.action->aggregations) aggregations(each).normalize(each, 1);
}

void Output::normalize(const Step& step, std::span<const Value> values) {
  const std::int64_t factor =
      values.empty() ? static_cast<std::int64_t>(step.action->argument) : integer_value(values[0]);
  if (factor == 0) {
    messages_.push_back(told("normalize(): the factor is 0, so it was ignored"));
    return;
  }
  for (const std::uint32_t each : step.action->aggregations) {
    aggregations(each).normalize(each, factor);
  }
}

Presenter::Aggregates Output::to_print(const Action& action) {
  const auto& wanted = action.aggregations;
  for (const std::uint32_t each : wanted) {
    // An aggregation that had nothing to print yet is still printed at the end.
    if (!std::as_const(*this).aggregations(each).empty(each)) mark_printed(each);
  }
  const auto& table = std::as_const(*this).aggregations(wanted.empty() ? 0 : wanted.front());
  return {table, wanted, shares(action)};
}

void Output::print_aggregations(const Step& step, std::span<const Value>) {
  presenter_->aggregations(to_print(*step.action), step.format);
}

void Output::print_percentiles(const Step& step, std::span<const Value>) {
  presenter_->percentiles(to_print(*step.action), step.action->text);
}

void Output::visit_aggregations(const std::function<void(std::uint32_t)>& show) {
  const auto count = static_cast<std::uint32_t>(source_->printed.size());
  const auto visit = [&](bool merged) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t each = settings_->sort_reversed ? count - 1 - i : i;
      if (is_merged(each) == merged) show(each);
    }
  };
  for (std::size_t target = 0; target < sources_.size(); ++target) {
    select(target);
    visit(false);
    presenter_->end_last();
  }
  select(0);
  if (!merged_aggregations_) return;
  presenter_->select_all();
  visit(true);
  presenter_->end_last();
}

void Output::finish_aggregation(std::uint32_t aggregation) {
  if (source_->printed[aggregation] && !settings_->print_all_aggregations) return;
  presenter_->last_aggregation(std::as_const(*this).aggregations(aggregation), aggregation);
}

/// `computed` has the parts that are no constants, as of the firing: the name, the value, or both.
void Output::set_option(const Step& step, std::span<const Value> computed) {
  std::string name = step.action->format, value = step.action->text;
  for (std::string* part : {&name, &value}) {
    if (!part->empty() || computed.empty()) continue;
    *part = text_value(computed.front().bytes);
    computed = computed.subspan(1);
  }
  if (value.empty()) value = "1";
  const auto done = apply_option(*settings_, name, value, OptionSource::Setopt);
  if (done) return;
  messages_.push_back(
      told(fmt::format("couldn't set option \"{}\" to \"{}\": {}", cli::quoted(name),
                       cli::quoted(value), done.error().message)));
}

void Output::truncate_output(const Step&, std::span<const Value>) {
  presenter_->truncate();
  captures_.truncated();
}

void Output::reopen(const Step& step, std::span<const Value> values) {
  const std::string path = formatted(step, values);
  const auto done = presenter_->reopen(path);
  if (!done) return messages_.push_back(told("freopen(): " + done.error().message));
  if (settings_->format == OutputFormat::Text) captures_.redirect(path);
}

/// The command's output stands where the record stands, so ours goes out first.
void Output::run_command(const Step& step, std::span<const Value> values) {
  const std::string command = formatted(step, values);
  const auto done = run_in_shell(command, presenter_->begin_command(command));
  if (!done) messages_.push_back(told("system(): " + done.error().message));
}

/// It may take a while, so what was printed before can be seen meanwhile.
void Output::write_snapshot(const Step& step, std::span<const Value> values) {
  const std::string path = formatted(step, values);
  presenter_->begin_snapshot(path);
  const auto done = view().snapshot(path);
  if (!done) {
    messages_.push_back(told("snapshot(): " + done.error().message));
  } else if (!settings_->quiet) {
    messages_.push_back(told(*done));
  }
}

}  // namespace ringside::cli
