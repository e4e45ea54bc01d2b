// In this file, top to bottom: the members of records, values, aggregations, the picture.
#include "cli/pictures/perfetto_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "cli/pictures/perfetto_trace.h"
#include "cli/pictures/stack_counts.h"

namespace ringside::cli {
namespace {

constexpr std::string_view kMakeRecords =
    "what its clauses record, or aggregations: fbt::vfs_read:entry, fbt::vfs_read:return { "
    "trace(arg1); }";

/// Empty: there is none, or it is none of 0 to `most`.
std::optional<std::uint64_t> number_field(const Tree& tree, std::string_view name,
                                          std::uint64_t most) {
  const auto found = tree.find(name);
  if (found == tree.end() || !found->is_number_integer()) return {};
  if (!found->is_number_unsigned() && found->get<std::int64_t>() < 0) return {};
  const auto number = found->get<std::uint64_t>();
  return number <= most ? std::optional(number) : std::nullopt;
}

/// The firing's probe. Records have all four names; those of before had.
Result<dif::ProbeDescription> probe_of(const Tree& record) {
  dif::ProbeDescription probe;
  for (const auto& [field, part] : {std::pair{"provider", &probe.provider},
                                    {"module", &probe.module},
                                    {"function", &probe.function},
                                    {"name", &probe.name}}) {
    const std::string* const text = text_member(record, field);
    if (text == nullptr) return malformed_record(fmt::format("\"{}\" is no text", field));
    *part = *text;
  }
  return probe;
}

/// Of -x threads. Empty: the record does not tell its thread.
Result<std::optional<PerfettoTrace::Thread>> thread_of_record(const Tree& record) {
  if (!record.contains("tid")) return std::nullopt;
  const auto pid = number_field(record, "pid", UINT32_MAX);
  const auto tid = number_field(record, "tid", UINT32_MAX);
  const std::string* const name = text_member(record, "execname");
  if (!pid || !tid || name == nullptr) {
    return malformed_record("\"pid\", \"tid\" and \"execname\" are not of a thread");
  }
  return PerfettoTrace::Thread{static_cast<std::uint32_t>(*pid), static_cast<std::uint32_t>(*tid),
                               *name};
}

/// The names of its frames, the innermost first.
std::string frames_text(const Tree& stack, char separator) {
  std::string text;
  for (const Tree& frame : stack) {
    const std::string* const name = frame.is_object() ? text_member(frame, "name") : nullptr;
    if (!text.empty()) text += separator;
    text += name == nullptr ? "?" : *name;
  }
  return text;
}

/// "@reads[dd, 4096]"
std::string counter_name(const std::string& aggregation, const Tree& keys) {
  std::string text;
  for (const Tree& key : keys) {
    if (!text.empty()) text += ", ";
    text += key.is_array() ? frames_text(key, ';') : key_text(key);
  }
  return text.empty() ? aggregation : aggregation + '[' + text + ']';
}

class PerfettoPicture final : public Picture {
 public:
  Result<void> add(const Tree& record) override;
  bool add_plain(const PlainRecord& record) override;
  std::string take_text() override { return trace_.is_empty() ? std::string() : trace_.take(); }
  Result<Drawn> draw() override;

 private:
  Result<void> add_output(const Tree& record, const dif::ProbeDescription& probe);
  Result<void> note_items(const Tree& output, bool& told);
  std::string_view next_value_name();
  void note_value(const Tree& value);
  void note_number(std::uint64_t bits, bool is_signed);
  void note_message(std::string_view name, std::string_view text);
  PerfettoTrace::Probe& probe_at(const dif::ProbeDescription& name);
  Result<void> count_items(const Tree& record);
  Result<void> count_aggregation(const Tree& record, const Tree& item, const Tree& data);
  Result<void> count_entry(const std::string& aggregation, const Tree& entry);
  Result<PerfettoTrace::Machine*> machine_named(std::string_view name);
  Result<void> begin(const Tree& record, const dif::ProbeDescription& probe);
  Result<void> mark(const Tree& record, const dif::ProbeDescription& probe, std::string_view name,
                    const Tree& message);

  PerfettoTrace trace_;
  struct KnownProbe {
    dif::ProbeDescription name;
    PerfettoTrace::Probe* probe = nullptr;
  };
  std::unordered_map<const dif::ProbeDescription*, KnownProbe> known_;  // of plain records
  std::vector<std::string> value_names_;                                // "value", "value 2"...
  unsigned values_ = 0;                        // of the record that is told now
  PerfettoTrace::Machine* counted_ = nullptr;  // whose aggregation is told now
  std::uint64_t time_ = 0;                     // of that record
};

Result<PerfettoTrace::Machine*> PerfettoPicture::machine_named(std::string_view name) {
  if (auto* const machine = trace_.machine(name)) return machine;
  return fail(ErrorCode::Limit,
              fmt::format("there are more than {} machines", PerfettoTrace::kMostMachines));
}

Result<void> PerfettoPicture::begin(const Tree& record, const dif::ProbeDescription& probe) {
  const auto time = number_field(record, "timestamp", INT64_MAX);
  const auto vcpu = number_field(record, "cpu", UINT32_MAX);
  if (!time) return malformed_record("\"timestamp\" is no time in nanoseconds");
  if (!vcpu) return malformed_record("\"cpu\" is no number of a vCPU");
  const std::string* const name = text_member(record, "machine");
  auto* const machine = TRY(machine_named(name == nullptr ? std::string_view() : *name));
  const auto thread = TRY(thread_of_record(record));
  trace_.begin({*machine, trace_.probe(probe), static_cast<std::uint32_t>(*vcpu), *time, thread});
  values_ = 0;
  time_ = *time;
  return {};
}

std::string_view PerfettoPicture::next_value_name() {
  if (values_ == value_names_.size()) {
    value_names_.push_back(values_ == 0 ? "value" : fmt::format("value {}", values_ + 1));
  }
  return value_names_[values_++];
}

void PerfettoPicture::note_message(std::string_view name, std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (!text.empty()) trace_.note(name, text);
}

/// A name that stands where another one stood is not taken for that one.
PerfettoTrace::Probe& PerfettoPicture::probe_at(const dif::ProbeDescription& name) {
  KnownProbe& known = known_[&name];
  if (known.probe == nullptr || known.name != name) known = {name, &trace_.probe(name)};
  return *known.probe;
}

bool PerfettoPicture::add_plain(const PlainRecord& record) {
  auto* const machine = trace_.machine(record.machine);
  if (machine == nullptr || record.timestamp > INT64_MAX) return false;
  std::optional<PerfettoTrace::Thread> thread;
  if (record.thread) {
    thread = {record.thread->pid, record.thread->tid, record.thread->execname};
  }
  trace_.begin({*machine, probe_at(record.probe), record.vcpu, record.timestamp, thread});
  values_ = 0;
  for (const PlainRecord::Item& item : record.items) {
    using Kind = PlainRecord::Item::Kind;
    switch (item.kind) {
      case Kind::Message: note_message("message", item.text); break;
      case Kind::String: trace_.note(next_value_name(), std::string_view(item.text)); break;
      case Kind::Exit: trace_.note("exit", static_cast<std::int64_t>(item.bits)); break;
      case Kind::Integer: note_number(item.bits, item.type.is_signed); break;
    }
  }
  trace_.end();
  return true;
}

/// All that fits is signed, so that a value has one type wherever it was recorded.
void PerfettoPicture::note_number(std::uint64_t bits, bool is_signed) {
  const std::string_view name = next_value_name();
  if (!is_signed && bits > INT64_MAX) {
    trace_.note(name, bits);
  } else {
    trace_.note(name, static_cast<std::int64_t>(bits));
  }
}

void PerfettoPicture::note_value(const Tree& value) {
  if (value.is_number_integer()) {
    const auto bits = static_cast<std::uint64_t>(value.get<std::int64_t>());
    return note_number(bits, !value.is_number_unsigned());
  }
  const std::string_view name = next_value_name();
  if (value.is_number_float()) {
    trace_.note(name, value.get<double>());
  } else if (const auto* const text = value.get_ptr<const Tree::string_t*>()) {
    trace_.note(name, std::string_view(*text));
  } else {
    const std::string all = value.dump(-1, ' ', false, Tree::error_handler_t::replace);
    trace_.note(name, std::string_view(all));
  }
}

/// Everything but aggregations. `told`: there was something, or there are no items at all.
Result<void> PerfettoPicture::note_items(const Tree& output, bool& told) {
  told = output.empty();
  for (const Tree& item : output) {
    if (!item.is_object()) return malformed_record("an item of \"output\" is no object");
    if (item.contains("aggregation-name") || item.contains("clear") || item.contains("trunc")) {
      continue;
    }
    told = true;
    for (const auto& [name, value] : item.items()) {
      if (name == "type" || name == "pid") continue;
      if (name == "value") {
        note_value(value);
      } else if (value.is_array()) {
        const std::string frames = frames_text(value, '\n');
        trace_.note(name == "stack-frames" ? "stack" : "ustack", std::string_view(frames));
      } else if (value.is_number_integer()) {
        trace_.note(name, value.get<std::int64_t>());
      } else if (const auto* const text = value.get_ptr<const Tree::string_t*>()) {
        note_message(name, *text);
      }
    }
  }
  return {};
}

/// A counter for each key: of distributions how many values there are, of percentiles one for each.
Result<void> PerfettoPicture::count_entry(const std::string& aggregation, const Tree& entry) {
  const auto keys = entry.is_object() ? entry.find("keys") : entry.end();
  if (!entry.is_object() || keys == entry.end() || !keys->is_array()) {
    return malformed_record("a key of an aggregation lacks its parts");
  }
  const std::string name = counter_name(aggregation, *keys);
  const auto count = [&](const std::string& counter, const Tree& value) {
    if (value.is_number_integer()) {
      trace_.count(*counted_, counter, time_, value.get<std::int64_t>());
    }
  };
  for (const auto& [member, value] : entry.items()) {
    if (member == "keys") continue;
    if (!value.is_array()) {
      count(name, value);
    } else if (member == "buckets") {
      std::int64_t total = 0;
      for (const Tree& bucket : value) {
        const auto some =
            bucket.is_object() ? number_field(bucket, "count", INT64_MAX) : std::nullopt;
        if (some && __builtin_add_overflow(total, *some, &total)) total = INT64_MAX;
      }
      count(name, total);
    } else if (member == "percentiles") {
      for (const Tree& each : value) {
        if (!each.is_object() || !each.contains("percentile")) {
          return malformed_record("a percentile is no object");
        }
        const auto high = each.find("high"), low = each.find("low");
        const auto shown = high != each.end() ? high : low;
        if (shown == each.end()) continue;
        count(fmt::format("{} p{}", name, each["percentile"].dump()), *shown);
      }
    }
  }
  return {};
}

Result<void> PerfettoPicture::count_aggregation(const Tree& record, const Tree& item,
                                                const Tree& data) {
  if (!data.is_array()) return malformed_record("the data of an aggregation are no array");
  const std::string name = TRY(aggregation_name(item));
  counted_ = TRY(machine_named(machine_of(record, item)));
  for (const Tree& entry : data) TRY(count_entry(name, entry));
  return {};
}

Result<void> PerfettoPicture::count_items(const Tree& record) {
  const auto time = number_field(record, "timestamp", INT64_MAX);
  if (!time) return malformed_record("\"timestamp\" is no time in nanoseconds");
  time_ = *time;
  const Tree& output = record["output"];
  if (!output.is_array()) return malformed_record("\"output\" is no array");
  for (const Tree& item : output) {
    if (!item.is_object()) return malformed_record("an item of \"output\" is no object");
    for (const std::string_view member : {"aggregation-data", "aggregation-percentiles"}) {
      const auto data = item.find(member);
      if (data != item.end()) TRY(count_aggregation(record, item, *data));
    }
  }
  return {};
}

Result<void> PerfettoPicture::add_output(const Tree& record, const dif::ProbeDescription& probe) {
  const Tree& output = record["output"];
  if (!output.is_array()) return malformed_record("\"output\" is no array");
  TRY(begin(record, probe));
  bool told = false;
  TRY(note_items(output, told));
  if (told) trace_.end();
  return count_items(record);
}

/// An instant of a record that is no firing's: a fault, or drops.
Result<void> PerfettoPicture::mark(const Tree& record, const dif::ProbeDescription& probe,
                                   std::string_view name, const Tree& message) {
  TRY(begin(record, probe));
  const auto* const text = message.get_ptr<const Tree::string_t*>();
  if (text == nullptr) return malformed_record("\"msg\" is no text");
  trace_.note("message", std::string_view(*text));
  trace_.end_as_mark(name);
  return {};
}

Result<void> PerfettoPicture::add(const Tree& record) {
  const dif::ProbeDescription probe = TRY(probe_of(record));
  const bool internal = probe.provider == "dtrace" && probe.function == "INTERNAL";
  if (const auto error = record.find("error"); error != record.end()) {
    if (!error->is_object() || !error->contains("msg")) {
      return malformed_record("\"error\" has no message");
    }
    return mark(record, probe, "error", (*error)["msg"]);
  }
  if (internal && record.contains("msg")) return mark(record, probe, "drops", record["msg"]);
  if (!record.contains("output")) return {};
  return internal ? count_items(record) : add_output(record, probe);
}

Result<Picture::Drawn> PerfettoPicture::draw() {
  trace_.finish();
  if (trace_.is_empty()) {
    return fail(ErrorCode::NotFound,
                fmt::format("there is nothing to draw; a picture needs {}", kMakeRecords));
  }
  Drawn drawn{trace_.take(), {}};
  if (trace_.without_thread() != 0) {
    drawn.notes.push_back(
        fmt::format("records that do not tell their thread, so that they are no slices: {}; save "
                    "them with -x threads",
                    trace_.without_thread()));
  }
  if (trace_.values_left_out() != 0) {
    drawn.notes.push_back(
        fmt::format("{} values of aggregations are not in the picture: they have more than {} keys",
                    trace_.values_left_out(), PerfettoTrace::kMostCounters));
  }
  return drawn;
}

}  // namespace

std::unique_ptr<Picture> make_perfetto_picture() {
  return std::make_unique<PerfettoPicture>();
}

Result<void> check_perfetto(const dif::Program& program) {
  if (!program.aggregations.empty() || std::ranges::any_of(program.clauses, dif::makes_records)) {
    return {};
  }
  return fail(ErrorCode::NotFound,
              fmt::format("the program has nothing to draw; a picture needs {}", kMakeRecords));
}

}  // namespace ringside::cli
