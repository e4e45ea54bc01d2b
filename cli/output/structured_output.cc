// In this file, top to bottom: values with shapes as trees, other values, aggregations, records.
#include "cli/output/structured_output.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "cli/output/distribution.h"
#include "cli/output/output.h"
#include "cli/output/pretty_print.h"
#include "cli/output/structured_writer.h"

namespace ringside::cli {
namespace {

using dif::AggregateFunction;
using dif::TypeShape;
using dif::ValueKind;
using ShapeKind = TypeShape::Kind;

constexpr std::array<std::string_view, dif::kDropKinds> kDropNames{"principal",
                                                                   "aggregation",
                                                                   "dynamic",
                                                                   "dynamic-rinsing",
                                                                   "dynamic-dirty",
                                                                   "speculation",
                                                                   "speculation-unavailable",
                                                                   "stack-string",
                                                                   "double-error"};

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

/// Trees of values whose types have shapes. Values that were not recorded are null.
class ShapeTree {
 public:
  explicit ShapeTree(const std::vector<TypeShape>& shapes) : shapes_(shapes) {}

  Tree value(const TypeShape& shape, Bytes bytes, std::uint32_t bit_offset, std::uint32_t bit_width,
             unsigned depth) const {
    switch (shape.kind) {
      case ShapeKind::Struct:
      case ShapeKind::Union: return members(shape, bytes, depth);
      case ShapeKind::Array: return array(shape, bytes, depth);
      case ShapeKind::String: return valid_utf8(text_value(bytes));
      case ShapeKind::Float: return real(shape, bytes);
      case ShapeKind::Void:
      case ShapeKind::Function: return nullptr;
      case ShapeKind::Integer:
      case ShapeKind::Pointer:
      case ShapeKind::Enum: break;
    }
    if (const auto wide = read_wide(shape, bytes, bit_width)) {
      const auto [low, high] = *wide;
      const bool is_negative = shape.is_signed && low >> 63 != 0;
      if (high == (is_negative ? ~std::uint64_t{0} : 0)) return number(low, shape.is_signed);
      return int128_text(*wide);  // JSON's readers lose the digits of such numbers
    }
    std::uint64_t bits = 0;
    if (!read_scalar(shape, bytes, bit_offset, bit_width, bits)) return nullptr;
    if (shape.kind == ShapeKind::Pointer) return fmt::format("0x{:x}", bits);
    if (shape.kind == ShapeKind::Enum) {
      for (const auto& [name, known] : shape.enumerators) {
        if (static_cast<std::uint64_t>(known) == bits) return name;
      }
    }
    return number(bits, shape.is_signed);
  }

 private:
  static Tree real(const TypeShape& shape, Bytes bytes) {
    if (bytes.size() < shape.size) return nullptr;
    if (shape.size == 16) {
      constexpr std::size_t kExtendedBytes = 10;  // the rest is padding
      long double number = 0;
      std::memcpy(&number, bytes.data(), kExtendedBytes);
      return static_cast<double>(number);
    }
    if (shape.size == 8) return __builtin_bit_cast(double, unsigned_value(bytes.first(8)));
    if (shape.size != 4) return nullptr;
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(unsigned_value(bytes.first(4))));
  }

  Tree array(const TypeShape& shape, Bytes bytes, unsigned depth) const {
    if (shape.element >= shapes_.size() || depth >= kDeepestShape) return nullptr;
    const TypeShape& each = shapes_[shape.element];
    if (is_character(each)) {
      return valid_utf8(text_value(bytes.first(std::min<std::size_t>(bytes.size(), shape.count))));
    }
    Tree list = Tree::array();
    for (std::uint32_t i = 0; i < shape.count && each.size != 0; ++i) {
      const std::size_t at = std::size_t{i} * each.size;
      if (at >= bytes.size()) break;
      const std::size_t size = std::min<std::size_t>(each.size, bytes.size() - at);
      list.push_back(value(each, bytes.subspan(at, size), 0, 0, depth + 1));
    }
    return list;
  }

  Tree members(const TypeShape& shape, Bytes bytes, unsigned depth) const {
    if (depth >= kDeepestShape) return nullptr;
    Tree fields = Tree::object();
    for (const TypeShape::Member& member : shape.members) {
      if (member.shape >= shapes_.size()) continue;
      const std::size_t at = std::min<std::size_t>(member.bit_offset / 8, bytes.size());
      Tree field = value(shapes_[member.shape], bytes.subspan(at), member.bit_offset % 8,
                         member.bit_width, depth + 1);
      if (!member.name.empty()) {
        fields[member.name] = std::move(field);
      } else if (field.is_object()) {  // an anonymous member's names are the outer one's, as in C
        for (auto& [name, inner] : field.items()) fields[name] = inner;
      }
    }
    return fields;
  }

  const std::vector<TypeShape>& shapes_;
};

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

/// The name of the field that holds a value of this kind.
std::string_view field_name(ValueKind kind) {
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
  return "value";
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

Tree aggregation_tree(const dif::Aggregation& aggregation,
                      const std::vector<Aggregations::Row>& rows, const CodeNames& names) {
  Tree data = Tree::array();
  for (const auto& row : rows) {
    Tree keys = Tree::array();
    for (const Value& key : row.keys) keys.push_back(plain_value(key, names));
    Tree entry = {{"keys", std::move(keys)}};
    const AggregateValue& value = row.values[0];
    entry[std::string(function_name(aggregation.function))] =
        is_distribution(aggregation.function) ? bucket_list(value) : Tree(scalar_value(value));
    data.push_back(std::move(entry));
  }
  return {{"aggregation-data", std::move(data)},
          {"aggregation-name", aggregation.name.empty() ? "_" : aggregation.name}};
}

}  // namespace

struct StructuredOutput::State {
  const ProgramView* view;
  std::unique_ptr<RecordWriter> writer;
  bool names_machine = true;
  Tree record = nullptr;
  Tree last = Tree::array();  // aggregations of the end
  std::uint64_t latest = 0;   // the latest firing, for what has no time of its own

  Tree head(const Origin& origin) {
    latest = std::max(latest, origin.timestamp);
    Tree tree = {{"timestamp", origin.timestamp}};
    const std::string machine = names_machine ? view->machine() : std::string();
    if (!machine.empty()) tree["machine"] = valid_utf8(machine);
    tree["cpu"] = origin.vcpu;
    tree["id"] = origin.probe;
    tree["provider"] = valid_utf8(origin.name->provider);
    tree["module"] = valid_utf8(origin.name->module);
    tree["function"] = valid_utf8(origin.name->function);
    tree["name"] = valid_utf8(origin.name->name);
    return tree;
  }
  /// The head of a record that no probe made.
  Tree internal(std::string_view name, unsigned vcpu) {
    const dif::ProbeDescription probe{"dtrace", "INTERNAL", "INTERNAL", std::string(name)};
    return head({latest, vcpu, 0, &probe});
  }
  void add(Tree item) { record["output"].push_back(std::move(item)); }
};

StructuredOutput::StructuredOutput(OutputFormat format, const ProgramView& view, Sink& sink)
    : state_(new State{&view, make_record_writer(format, sink)}) {}

StructuredOutput::~StructuredOutput() = default;

void StructuredOutput::select(const ProgramView& view) {
  state_->view = &view;
  state_->names_machine = true;
}

void StructuredOutput::select_all() {
  state_->names_machine = false;
}

void StructuredOutput::begin(const Origin& origin) {
  state_->record = state_->head(origin);
  state_->record["output"] = Tree::array();
}

void StructuredOutput::end() {
  state_->writer->record(state_->record);
}

void StructuredOutput::value(const Value& value, std::optional<std::uint32_t> shape) {
  const auto& shapes = state_->view->program().shapes;
  const bool shaped = shape && *shape < shapes.size();
  if (shaped && field_name(value.type.kind) == "value") {
    const TypeShape& type = shapes[*shape];
    return state_->add({{"type", valid_utf8(type.name)},
                        {"value", ShapeTree(shapes).value(type, value.bytes, 0, 0, 0)}});
  }
  Tree item = Tree::object();
  if (field_name(value.type.kind) == "value") item["type"] = type_name(value.type);
  item[std::string(field_name(value.type.kind))] = plain_value(value, *state_->view);
  if (is_user_code(value.type.kind)) item["pid"] = word_at(value.bytes, 0);
  state_->add(std::move(item));
}

void StructuredOutput::message(std::string_view text) {
  state_->add({{"message", valid_utf8(text)}});
}

void StructuredOutput::memory(Bytes bytes) {
  state_->add({{"tracemem", hexadecimal(bytes)}});
}

void StructuredOutput::aggregation(std::uint32_t index,
                                   const std::vector<Aggregations::Row>& rows) {
  const auto& aggregations = state_->view->program().aggregations;
  if (index < aggregations.size()) {
    state_->add(aggregation_tree(aggregations[index], rows, *state_->view));
  }
}

void StructuredOutput::exit(std::int64_t status) {
  state_->add({{"exit", status}});
}

void StructuredOutput::note(std::string_view action, std::string_view text) {
  state_->add({{std::string(action), valid_utf8(text)}});
}

void StructuredOutput::fault(const Origin& origin, const dif::FaultReport& report,
                             std::string_view message) {
  Tree tree = state_->head(origin);
  Tree& error = tree["error"];
  error["epid"] = report.ecb.value;
  error["action"] = report.action;
  if (report.fault.pc != dif::kNoPc) error["offset"] = report.fault.pc;
  error["fault"] = static_cast<int>(report.fault.kind);
  error["address"] = fmt::format("0x{:x}", report.fault.address);
  error["msg"] = valid_utf8(message);
  state_->writer->record(tree);
}

void StructuredOutput::drop(const Drop& drop) {
  Tree tree = state_->internal("DROP", drop.vcpu);
  tree["count"] = drop.count;
  tree["total"] = drop.total;
  tree["kind"] = std::string(kDropNames[static_cast<std::size_t>(drop.kind)]);
  tree["msg"] = drop.message;
  const auto& clauses = state_->view->program().clauses;
  for (const dif::ClauseDrops& each : drop.clauses) {
    if (each.clause >= clauses.size()) continue;
    const dif::Clause& clause = clauses[each.clause];
    Tree item{{"line", clause.line}, {"count", each.count}};
    if (!clause.probes.empty()) item["probe"] = valid_utf8(clause.probes[0].to_string());
    tree["clauses"].push_back(std::move(item));
  }
  state_->writer->record(tree);
}

void StructuredOutput::statistics(const Tree& figures) {
  Tree tree = state_->internal("STATISTICS", 0);
  tree["statistics"] = figures;
  state_->writer->record(tree);
}

void StructuredOutput::last_aggregation(std::uint32_t index,
                                        const std::vector<Aggregations::Row>& rows) {
  const auto& aggregations = state_->view->program().aggregations;
  if (index >= aggregations.size()) return;
  state_->last.push_back(aggregation_tree(aggregations[index], rows, *state_->view));
}

void StructuredOutput::write_last_aggregations() {
  if (state_->last.empty()) return;
  Tree tree = state_->internal("AGGREGATIONS", 0);
  tree["output"] = std::exchange(state_->last, Tree::array());
  state_->writer->record(tree);
}

void StructuredOutput::finish() {
  state_->writer->finish();
}

}  // namespace ringside::cli
