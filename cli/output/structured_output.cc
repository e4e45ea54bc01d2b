// Structured records. In this file, top to bottom: values as trees, aggregations, the presenter.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/output/distribution.h"
#include "cli/output/output.h"
#include "cli/output/presenter.h"
#include "cli/output/pretty_print.h"
#include "cli/output/shape_tree.h"
#include "cli/output/structured_writer.h"
#include "dif/program/aggregate_function.h"

namespace ringside::cli {
namespace {

using dif::AggregateFunction;
using dif::ValueKind;

constexpr std::array<std::string_view, dif::kDropKinds> kDropNames{"principal",
                                                                   "aggregation",
                                                                   "dynamic",
                                                                   "dynamic-rinsing",
                                                                   "dynamic-dirty",
                                                                   "speculation",
                                                                   "speculation-unavailable",
                                                                   "stack-string",
                                                                   "double-error"};

using Members = Tree::object_t;
constexpr std::size_t kMostMembers = 12;  // of a record

/// For objects that are made for each record: the name is none of theirs yet, and there is room.
void put(Members& members, const char* name, Tree value) {
  static_cast<Members::Container&>(members).emplace_back(name, std::move(value));
}

std::string hexadecimal(Bytes bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

/// A number by its type's sign.
Tree number(std::uint64_t bits, bool is_signed) {
  if (is_signed) return static_cast<std::int64_t>(bits);
  return bits;
}

Tree frames(const Value& stack, const CodeNames& names) {
  const bool user = stack.type.kind == ValueKind::UserStack;
  const std::uint64_t pid = user ? word_at(stack.bytes, 0) : 0;
  Tree list = Tree::array();
  for (std::size_t i = user ? 1 : 0; i < stack.bytes.size() / 8; ++i) {
    const GuestVirt at(word_at(stack.bytes, i));
    if (at.raw() == 0) break;
    const std::string text = user ? names.describe_user(pid, at) : names.describe(at);
    const CodeName name = split_code_name(text);
    Tree frame = {{"address", fmt::format("0x{:x}", at.raw())}, {"name", valid_utf8(text)}};
    if (!name.module.empty()) frame["module"] = valid_utf8(name.module);
    if (!name.symbol.empty()) {
      frame["symbol"] = valid_utf8(name.symbol);
      frame["offset"] = name.offset;
    }
    list.push_back(std::move(frame));
  }
  return list;
}

constexpr const char* kPlainValue = "value";

/// The name of the field that holds a value of this kind.
const char* field_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::KernelStack: return "stack-frames";
    case ValueKind::UserStack: return "ustack-frames";
    case ValueKind::KernelSymbol: return "sym";
    case ValueKind::KernelModule: return "mod";
    case ValueKind::UserSymbol: return "usym";
    case ValueKind::UserModule: return "umod";
    case ValueKind::UserAddress: return "uaddr";
    case ValueKind::Integer:
    case ValueKind::String:
    case ValueKind::Bytes:
    case ValueKind::Void: break;
  }
  return kPlainValue;
}

Tree plain_value(const Value& value, const CodeNames& names) {
  switch (value.type.kind) {
    case ValueKind::Integer: {
      const auto bits = static_cast<std::uint64_t>(integer_value(value));
      return number(bits, value.type.is_signed);
    }
    case ValueKind::String: return valid_utf8(text_value(value.bytes));
    case ValueKind::Bytes: return hexadecimal(value.bytes);
    case ValueKind::Void: return nullptr;
    case ValueKind::KernelStack:
    case ValueKind::UserStack: return frames(value, names);
    case ValueKind::KernelSymbol:
    case ValueKind::KernelModule:
    case ValueKind::UserSymbol:
    case ValueKind::UserModule:
    case ValueKind::UserAddress: return valid_utf8(code_text(value, names));
  }
  return nullptr;
}

std::string_view function_name(AggregateFunction function) {
  return is_distribution(function) ? "buckets" : dif::aggregating_info(function).name;
}

std::string name_of(const dif::Aggregation& aggregation) {
  return aggregation.name.empty() ? "_" : aggregation.name;
}

/// The buckets that text shows. Open ends are labelled, their value is the nearest one inside.
Tree bucket_list(const AggregateValue& value) {
  Tree list = Tree::array();
  const std::vector<Bucket> buckets = buckets_of(*value.definition, value.words);
  if (buckets.empty()) return list;
  const auto [first, last] = shown_buckets(*value.definition, buckets);
  for (std::size_t i = first; i <= last; ++i) {
    Tree bucket = {{"value", buckets[i].lower}, {"count", divided(buckets[i].count, value.normal)}};
    if (buckets[i].label[0] == '<' || buckets[i].label[0] == '>')
      bucket["range"] = buckets[i].label;
    list.push_back(std::move(bucket));
  }
  return list;
}

Tree keys_tree(const Aggregations::Row& row, const CodeNames& names) {
  Tree keys = Tree::array();
  for (const Value& key : row.keys) keys.push_back(plain_value(key, names));
  return keys;
}

/// A percentile's value is between `low` and `high`; an open end is left out.
Tree percentile_list(const AggregateValue& value, std::string_view wanted) {
  Tree list = Tree::array();
  for (const std::uint32_t each : dif::parse_percentiles(wanted)) {
    const auto range = percentile_range(*value.definition, value.words, each);
    if (!range) continue;
    Tree item = {{"percentile", each / 1e4}};
    if (range->low) item["low"] = *range->low;
    if (range->high) item["high"] = *range->high;
    list.push_back(std::move(item));
  }
  return list;
}

Tree aggregation_tree(const dif::Aggregation& aggregation,
                      const std::vector<Aggregations::Row>& rows, const CodeNames& names) {
  Tree data = Tree::array();
  for (const auto& row : rows) {
    Tree entry = {{"keys", keys_tree(row, names)}};
    const AggregateValue& value = row.values[0];
    entry[std::string(function_name(aggregation.function))] =
        is_distribution(aggregation.function) ? bucket_list(value) : Tree(scalar_value(value));
    data.push_back(std::move(entry));
  }
  return {{"aggregation-data", std::move(data)},
          {"aggregation-name", name_of(aggregation)},
          {"aggregation-function", dif::aggregating_info(aggregation.function).name}};
}

Tree item_tree(PlainRecord::Item item) {
  using Kind = PlainRecord::Item::Kind;
  Members members;
  members.reserve(2);
  if (item.kind == Kind::Integer || item.kind == Kind::String) {
    put(members, "type", type_name(item.type));
  }
  switch (item.kind) {
    case Kind::Message: put(members, "message", std::move(item.text)); break;
    case Kind::Integer: put(members, kPlainValue, number(item.bits, item.type.is_signed)); break;
    case Kind::String: put(members, kPlainValue, std::move(item.text)); break;
    case Kind::Exit: put(members, "exit", number(item.bits, true)); break;
  }
  return members;
}

class StructuredOutput : public Presenter {
 public:
  StructuredOutput(const ProgramView& first, const Settings& settings, Sink& sink,
                   std::unique_ptr<RecordWriter> writer)
      : settings_(settings), sink_(sink), view_(&first), writer_(std::move(writer)) {}

  void select(std::size_t /*target*/, const ProgramView& view) override {
    view_ = &view;
    names_machine_ = true;
  }
  void begin(const Row& row) override {
    note_time(row.origin);
    origin_ = row.origin;
    thread_.reset();
  }
  void end() override;
  void value(const Value& value, std::optional<std::uint32_t> shape, ValueForm form) override;
  void memory(Bytes bytes) override { add({{"tracemem", hexadecimal(bytes)}}); }
  void packet(const Packet& packet, bool in_file) override;
  void formatted(const Format* format, std::span<const Value> values,
                 std::span<const std::uint32_t> shapes) override;
  void aggregations(const Aggregates& aggregates, const Format* format) override;
  void percentiles(const Aggregates& aggregates, std::string_view wanted) override;
  void emptied(const dif::Action& action, std::optional<std::int64_t> keep, bool merged) override;
  void exit(std::int64_t status) override {
    add({.kind = Kind::Exit, .bits = static_cast<std::uint64_t>(status)});
  }
  void thread(const Thread& thread) override {
    execname_ = valid_utf8(thread.execname);
    thread_ = PlainRecord::Thread{thread.pid, thread.tid, execname_};
  }
  // A document that lost its beginning would be none.
  void truncate() override { note(dif::ActionKind::Ftruncate, {}); }
  Result<void> reopen(const std::string& path) override {
    note(dif::ActionKind::Freopen, path);
    return {};
  }
  int begin_command(std::string_view command) override {
    note(dif::ActionKind::System, command);
    sink_.flush();
    return STDERR_FILENO;
  }
  void begin_snapshot(std::string_view path) override { note(dif::ActionKind::Snapshot, path); }
  void fault(const Origin& origin, const dif::FaultReport& report,
             std::string_view message) override;
  void drop(const Drop& drop) override;
  void statistics(const Tree& figures) override;
  void begin_last(Moment moment) override { moment_ = moment; }
  void select_all() override { names_machine_ = false; }
  void last_aggregation(const Aggregations& table, std::uint32_t index) override;
  void end_last() override;
  Result<std::vector<std::string>> finish() override { return writer_->finish(); }

 private:
  using Item = PlainRecord::Item;
  using Kind = Item::Kind;

  void note_time(const Origin& origin) { latest_ = std::max(latest_, origin.timestamp); }
  std::string machine() const { return names_machine_ ? view_->machine() : std::string(); }
  static Members head(const Origin& origin, const std::string& machine) {
    Members members;
    members.reserve(kMostMembers);
    put(members, "timestamp", origin.timestamp);
    if (!machine.empty()) put(members, "machine", valid_utf8(machine));
    put(members, "cpu", origin.vcpu);
    put(members, "id", origin.probe);
    put(members, "provider", valid_utf8(origin.name->provider));
    put(members, "module", valid_utf8(origin.name->module));
    put(members, "function", valid_utf8(origin.name->function));
    put(members, "name", valid_utf8(origin.name->name));
    return members;
  }
  /// The head of a record that no probe made.
  Members internal(std::string_view name, unsigned vcpu) {
    const dif::ProbeDescription probe{"dtrace", "INTERNAL", "INTERNAL", std::string(name)};
    return head({latest_, vcpu, 0, &probe}, machine());
  }
  /// Plain items wait, as long as nothing else has come: then the record needs no tree.
  void add(Item item) {
    if (output_.empty()) {
      plain_.push_back(std::move(item));
    } else {
      output_.push_back(item_tree(std::move(item)));
    }
  }
  void add(Tree item) {
    make_trees();
    output_.push_back(std::move(item));
  }
  void make_trees() {
    for (Item& each : plain_) output_.push_back(item_tree(std::move(each)));
    plain_.clear();
  }
  void message(std::string_view text) { add({.kind = Kind::Message, .text = valid_utf8(text)}); }
  /// An action on the output or the host, by its name, with its command or file.
  void note(dif::ActionKind action, std::string_view text) {
    add({{std::string(dif::action_info(action).name), valid_utf8(text)}});
  }
  Tree tree_of(const Aggregations& table, std::uint32_t index, bool merged) const {
    const auto& definitions = view_->program().aggregations;
    auto rows = table.rows(std::span(&index, 1), order());
    const std::size_t left_out = leave_out(rows);
    Tree tree = aggregation_tree(definitions[index], rows, *view_);
    if (left_out != 0) tree["left-out"] = left_out;
    if (merged) tree["merged"] = true;
    return tree;
  }

  /// Meanwhile the largest values are last, however the end is sorted.
  Settings order() const {
    if (moment_ == Moment::End) return settings_;
    Settings by_value = settings_;
    by_value.sort_by_key = by_value.sort_reversed = false;
    return by_value;
  }
  /// Meanwhile, leaves those of the keys that a reader can take in; the number of the others.
  std::size_t leave_out(std::vector<Aggregations::Row>& rows) const {
    constexpr std::size_t kMostMeanwhile = 1000;
    if (moment_ == Moment::End || rows.size() <= kMostMeanwhile) return 0;
    const std::size_t left_out = rows.size() - kMostMeanwhile;
    rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(left_out));
    return left_out;
  }

  const Settings& settings_;
  Sink& sink_;
  const ProgramView* view_;
  std::unique_ptr<RecordWriter> writer_;
  bool names_machine_ = true;
  Moment moment_ = Moment::End;
  // Of the record that is told now: what is plain, until something is not.
  Origin origin_;
  std::optional<PlainRecord::Thread> thread_;
  std::string execname_;  // its
  std::vector<Item> plain_;
  Tree::array_t output_;
  Tree last_ = Tree::array();  // aggregations of the end
  std::uint64_t latest_ = 0;   // the latest firing, for what has no time of its own
};

void StructuredOutput::end() {
  const std::string machine = this->machine();
  const PlainRecord plain{origin_.timestamp, origin_.vcpu, *origin_.name, machine, thread_, plain_};
  if (output_.empty() && writer_->plain_record(plain)) return plain_.clear();
  make_trees();
  Members record = head(origin_, machine);
  if (thread_) {
    put(record, "pid", thread_->pid);
    put(record, "tid", thread_->tid);
    put(record, "execname", execname_);
  }
  put(record, "output", std::exchange(output_, {}));
  writer_->record(std::move(record));
}

void StructuredOutput::value(const Value& value, std::optional<std::uint32_t> shape,
                             ValueForm /*form*/) {
  const auto& shapes = view_->program().shapes;
  const bool shaped = shape && *shape < shapes.size();
  if (shaped && field_name(value.type.kind) == kPlainValue) {
    const TypeShape& type = shapes[*shape];
    return add(
        {{"type", valid_utf8(type.name)}, {"value", shape_tree(shapes, *shape, value.bytes)}});
  }
  if (value.type.kind == ValueKind::Integer) {
    const auto bits = static_cast<std::uint64_t>(integer_value(value));
    return add({.kind = Kind::Integer, .type = value.type, .bits = bits});
  }
  if (value.type.kind == ValueKind::String) {
    return add(
        {.kind = Kind::String, .type = value.type, .text = valid_utf8(text_value(value.bytes))});
  }
  const char* const name = field_name(value.type.kind);
  Members item;
  item.reserve(2);
  if (name == kPlainValue) put(item, "type", type_name(value.type));
  put(item, name, plain_value(value, *view_));
  if (is_user_code(value.type.kind)) put(item, "pid", word_at(value.bytes, 0));
  add(std::move(item));
}

void StructuredOutput::packet(const Packet& packet, bool /*in_file*/) {
  const dif::PacketHeader& header = packet.header;
  Tree item = {{"packet", hexadecimal(packet.bytes)}, {"length", header.length}};
  item["link-type"] = packet.link_type;
  item["walltimestamp"] = header.walltimestamp;
  item["process"] = valid_utf8(packet.process());
  item["pid"] = header.pid;
  if (!packet.device().empty()) item["device"] = valid_utf8(packet.device());
  add(std::move(item));
}

void StructuredOutput::formatted(const Format* format, std::span<const Value> values,
                                 std::span<const std::uint32_t> shapes) {
  std::string text;
  if (format != nullptr) format->print(text, values, {}, *view_);
  message(text);
  for (std::size_t i = 0; i < values.size(); ++i) {
    value(values[i], i < shapes.size() ? std::optional(shapes[i]) : std::nullopt, ValueForm::Trace);
  }
}

void StructuredOutput::aggregations(const Aggregates& aggregates, const Format* format) {
  const auto& [table, wanted, merged] = aggregates;
  if (format != nullptr) {
    std::string text;
    for (const auto& row : table.rows(wanted, settings_)) {
      format->print(text, row.keys, row.values, *view_, bar_style(settings_));
    }
    message(text);
  }
  for (const std::uint32_t each : wanted) {
    if (each < view_->program().aggregations.size()) add(tree_of(table, each, merged));
  }
}

void StructuredOutput::percentiles(const Aggregates& aggregates, std::string_view wanted) {
  const auto& definitions = view_->program().aggregations;
  if (aggregates.wanted.empty() || aggregates.wanted[0] >= definitions.size()) return;
  const dif::Aggregation& aggregation = definitions[aggregates.wanted[0]];
  Tree data = Tree::array();
  for (const auto& row : aggregates.table.rows(aggregates.wanted, settings_)) {
    data.push_back({{"keys", keys_tree(row, *view_)},
                    {"percentiles", percentile_list(row.values[0], wanted)}});
  }
  Tree item = {{"aggregation-percentiles", std::move(data)},
               {"aggregation-name", name_of(aggregation)},
               {"aggregation-function", dif::aggregating_info(aggregation.function).name}};
  if (aggregates.merged) item["merged"] = true;
  add(std::move(item));
}

void StructuredOutput::emptied(const dif::Action& action, std::optional<std::int64_t> keep,
                               bool merged) {
  const auto& definitions = view_->program().aggregations;
  for (const std::uint32_t each : action.aggregations) {
    if (each >= definitions.size()) continue;
    Tree item{{std::string(dif::action_info(action.kind).name), name_of(definitions[each])}};
    if (keep.value_or(0) != 0) item["keep"] = *keep;
    if (merged) item["merged"] = true;
    add(std::move(item));
  }
}

void StructuredOutput::fault(const Origin& origin, const dif::FaultReport& report,
                             std::string_view message) {
  note_time(origin);
  Tree tree = head(origin, machine());
  Tree& error = tree["error"];
  error["epid"] = report.ecb.value;
  error["action"] = report.action;
  if (report.fault.pc != dif::kNoPc) error["offset"] = report.fault.pc;
  error["fault"] = static_cast<int>(report.fault.kind);
  error["address"] = fmt::format("0x{:x}", report.fault.address);
  error["msg"] = valid_utf8(message);
  writer_->record(std::move(tree));
}

void StructuredOutput::drop(const Drop& drop) {
  Tree tree = internal("DROP", drop.vcpu);
  tree["count"] = drop.count;
  tree["total"] = drop.total;
  tree["kind"] = std::string(kDropNames[static_cast<std::size_t>(drop.kind)]);
  tree["msg"] = drop.message;
  const auto& clauses = view_->program().clauses;
  for (const dif::ClauseDrops& each : drop.clauses) {
    if (each.clause >= clauses.size()) continue;
    const dif::Clause& clause = clauses[each.clause];
    Tree item{{"line", clause.line}, {"count", each.count}};
    if (!clause.probes.empty()) item["probe"] = valid_utf8(clause.probes[0].to_string());
    tree["clauses"].push_back(std::move(item));
  }
  writer_->record(std::move(tree));
}

void StructuredOutput::statistics(const Tree& figures) {
  Tree tree = internal("STATISTICS", 0);
  tree["statistics"] = figures;
  writer_->record(std::move(tree));
}

void StructuredOutput::last_aggregation(const Aggregations& table, std::uint32_t index) {
  const bool known = index < view_->program().aggregations.size();
  if (known && !table.empty(index)) last_.push_back(tree_of(table, index, !names_machine_));
}

void StructuredOutput::end_last() {
  if (last_.empty() && moment_ == Moment::End) return;
  Tree tree = internal(moment_ == Moment::End ? "AGGREGATIONS" : "MEANWHILE", 0);
  tree["output"] = std::exchange(last_, Tree::array());
  writer_->record(std::move(tree));
}

}  // namespace

std::unique_ptr<Presenter> make_structured_output(const ProgramView& first,
                                                  const Settings& settings, Sink& sink,
                                                  std::unique_ptr<RecordWriter> writer) {
  if (writer == nullptr) writer = make_record_writer(settings.format, sink);
  return std::make_unique<StructuredOutput>(first, settings, sink, std::move(writer));
}

}  // namespace ringside::cli
