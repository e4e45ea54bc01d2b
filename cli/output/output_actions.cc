// What each action of a record prints or does. In this file, top to bottom: the choice, values,
// formats, aggregations, options, files and commands.
#include <fmt/format.h>
#include <unistd.h>

#include "cli/guest/shell.h"
#include "cli/output/aggregation_text.h"
#include "cli/output/output.h"
#include "cli/output/pretty_print.h"
#include "cli/output/structured_output.h"

namespace ringside::cli {

using dif::ActionKind;

void Output::act(const Step& step, std::span<const Value> values) {
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
  if (structured_ && !values.empty()) structured_->exit(integer_value(values[0]));
}

void Output::print_value(const Step& step, std::span<const Value> values) {
  if (values.empty()) return;
  const auto& shapes = view_->program().shapes;
  const auto& known = step.action->shapes;
  const bool shaped = !known.empty() && known[0] < shapes.size();
  Value value = values[0];
  if (step.action->kind == ActionKind::Print && value.type.kind != dif::ValueKind::Integer) {
    value.bytes =
        value.bytes.first(std::min<std::uint64_t>(value.bytes.size(), settings_->print_size));
  }
  if (structured_) {
    return structured_->value(value, shaped ? std::optional(known[0]) : std::nullopt);
  }
  if (step.action->kind == ActionKind::Trace) {
    const ColumnStyle style{settings_->quiet, settings_->raw_bytes, 33, settings_->stack_indent};
    return append_column(text_, value, style, *view_);
  }
  if (shaped) {
    append_print(text_, shapes, known[0], value.bytes, *view_);
  } else {
    append_print(text_, value, *view_);
  }
  text_ += '\n';
  line_ended_ = text_.size();
}

void Output::print_memory(const Step& step, std::span<const Value> values) {
  if (values.empty()) return;
  Bytes bytes = values[0].bytes;
  // A size that does not fit (a negative one is huge) means as much as was asked for at most.
  if (step.action->kind == ActionKind::TracememDynamic && values.size() > 1) {
    bytes = bytes.first(std::min<std::uint64_t>(unsigned_value(values[1].bytes), bytes.size()));
  }
  if (structured_) return structured_->memory(bytes);
  append_hex_dump(text_, bytes);
}

/// What the action's format makes of the values; nothing without a format.
void Output::append_formatted(std::string& out, const Step& step, std::span<const Value> values) {
  if (step.format != nullptr) step.format->print(out, values, {}, *view_);
}

void Output::print_formatted(const Step& step, std::span<const Value> values) {
  const std::size_t before = text_.size();
  append_formatted(text_, step, values);
  if (!structured_) return;
  structured_->message(std::string_view(text_).substr(before));
  const auto& known = step.action->shapes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool shaped = i < known.size() && known[i] < view_->program().shapes.size();
    structured_->value(values[i], shaped ? std::optional(known[i]) : std::nullopt);
  }
}

void Output::clear(const Step& step, std::span<const Value>) {
  for (const std::uint32_t each : step.action->aggregations) aggregations_.clear(each);
}

void Output::trunc(const Step& step, std::span<const Value> values) {
  std::optional<std::int64_t> keep;
  if (step.action->has_argument) keep = static_cast<std::int64_t>(step.action->argument);
  if (!values.empty()) keep = integer_value(values[0]);
  for (const std::uint32_t each : step.action->aggregations) aggregations_.trunc(each, keep);
}

void Output::denormalize(const Step& step, std::span<const Value>) {
  for (const std::uint32_t each : step.action->aggregations) aggregations_.normalize(each, 1);
}

void Output::normalize(const Step& step, std::span<const Value> values) {
  const std::int64_t factor =
      values.empty() ? static_cast<std::int64_t>(step.action->argument) : integer_value(values[0]);
  if (factor == 0) {
    messages_.emplace_back("normalize(): the factor is 0, so it was ignored");
    return;
  }
  for (const std::uint32_t each : step.action->aggregations) {
    aggregations_.normalize(each, factor);
  }
}

void Output::print_aggregations(const Step& step, std::span<const Value>) {
  const auto& wanted = step.action->aggregations;
  for (const std::uint32_t each : wanted) {
    // What had nothing to print yet is still printed at the end.
    if (each < printed_.size() && !aggregations_.empty(each)) printed_[each] = true;
  }
  const std::size_t before = text_.size();
  if (step.format == nullptr) {
    if (!structured_) {
      text_ += '\n';
      append_aggregations(text_, aggregations_, wanted, *settings_, *view_);
    }
  } else {
    for (const auto& row : aggregations_.rows(wanted, *settings_)) {
      step.format->print(text_, row.keys, row.values, *view_, bar_style(*settings_));
    }
  }
  if (!structured_) return;
  if (step.format != nullptr) structured_->message(std::string_view(text_).substr(before));
  for (const std::uint32_t each : wanted) {
    structured_->aggregation(each, aggregations_.rows(std::span(&each, 1), *settings_));
  }
}

void Output::finish_aggregations() {
  const auto count = static_cast<std::uint32_t>(printed_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t each = settings_->sort_reversed ? count - 1 - i : i;
    if (printed_[each] && !settings_->print_all_aggregations) continue;
    if (!structured_) {
      append_aggregations(text_, aggregations_, std::span(&each, 1), *settings_, *view_);
    } else if (!aggregations_.empty(each)) {
      structured_->last_aggregation(each, aggregations_.rows(std::span(&each, 1), *settings_));
    }
  }
}

/// What is no constant was computed when the probe fired: the name, the value, or both.
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
  messages_.push_back(fmt::format("couldn't set option \"{}\" to \"{}\": {}", quoted(name),
                                  quoted(value), done.error().message));
}

void Output::truncate_output(const Step&, std::span<const Value>) {
  // A document that lost its beginning would be none.
  if (structured_) return structured_->note("ftruncate", {});
  sink_->write(std::exchange(text_, {}));
  sink_->truncate();
}

void Output::reopen(const Step& step, std::span<const Value> values) {
  std::string path;
  append_formatted(path, step, values);
  if (structured_) return structured_->note("freopen", path);
  sink_->write(std::exchange(text_, {}));
  if (path.empty()) return sink_->restore();
  const auto done = sink_->redirect(path);
  if (!done) messages_.push_back("freopen(): " + done.error().message);
}

/// The command's output stands where the record stands, so ours goes out first.
void Output::run_command(const Step& step, std::span<const Value> values) {
  std::string command;
  append_formatted(command, step, values);
  int output_fd = sink_->redirected() ? sink_->fd() : STDOUT_FILENO;
  if (structured_) {
    structured_->note("system", command);
    output_fd = STDERR_FILENO;
  } else {
    sink_->write(std::exchange(text_, {}));
  }
  sink_->flush();
  const auto done = run_in_shell(command, output_fd);
  if (!done) messages_.push_back("system(): " + done.error().message);
}

}  // namespace ringside::cli
