// Reading BTF. In this file, top to bottom: the blob's sections, the outline (where every type
// starts), ids, conversion by kind, functions, variables.
// Guarantees: linear in the blob's size; the graph is touched only once the outline is sound, so
// every conversion reads inside the type section.
#include "vmm/linux/types/btf.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "vmm/base/c_type.h"
#include "vmm/base/check.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/image_view.h"

namespace ringside::guest_linux {

namespace {

constexpr std::uint16_t kMagic = 0xeb9f;
constexpr std::size_t kHeaderBytes = 24;  // the least; hdr_len may say more
constexpr std::size_t kTypeBytes = 12;    // struct btf_type
constexpr unsigned kMaxTagChain = 64;
constexpr std::string_view kPercpuSection = ".data..percpu";

enum BtfKind : std::uint32_t {
  Int = 1,
  Ptr,
  Array,
  Struct,
  Union,
  Enum,
  Fwd,
  Typedef,
  Volatile,
  Const,
  Restrict,
  Func,
  FuncProto,
  Var,
  Datasec,
  Float,
  DeclTag,
  TypeTag,
  Enum64,
};

/// struct btf_type: name_off, info (vlen 0-15, kind 24-28, kind_flag 31), size or type.
struct Record {
  std::uint32_t name = 0;
  std::uint32_t info = 0;
  std::uint32_t size_or_type = 0;

  std::uint32_t kind() const { return (info >> 24) & 0x1f; }
  std::uint32_t length() const { return info & 0xffff; }
  bool flag() const { return (info >> 31) != 0; }
};

/// Bytes after the record; empty for a kind that we do not know, and so cannot step over.
std::optional<std::size_t> tail_bytes(const Record& record) {
  const std::size_t length = record.length();
  switch (record.kind()) {
    case Int:
    case Var:
    case DeclTag: return 4;
    case Array: return 12;
    case Struct:
    case Union:
    case Datasec:
    case Enum64: return length * 12;
    case Enum:
    case FuncProto: return length * 8;
    case Ptr:
    case Fwd:
    case Typedef:
    case Volatile:
    case Const:
    case Restrict:
    case Func:
    case Float:
    case TypeTag: return 0;
    default: return std::nullopt;
  }
}

}  // namespace

class BtfReader {
 public:
  BtfReader(std::span<const std::byte> blob, const Btf* base, TypeGraph& graph)
      : blob_(blob), base_(base), graph_(graph) {}

  Result<Btf> read() {
    TRY(find_sections());
    TRY(outline());
    reserve();
    assign_ids();
    result_.first_ = first_new_;
    result_.count_ = converted_.size();
    for (const std::size_t i : converted_) convert(i);
    for (const std::size_t i : converted_) graph_.index(result_.ids_[i]);
    index_functions();
    if (base_ == nullptr) index_variables();
    return std::move(result_);
  }

 private:
  Result<void> find_sections() {
    if (blob_.size() < kHeaderBytes || load_at<std::uint16_t>(blob_, 0) != kMagic ||
        load_at<std::uint8_t>(blob_, 2) != 1) {
      return fail(ErrorCode::Invalid, "BTF: no header of version 1");
    }
    const std::uint64_t header = load_at<std::uint32_t>(blob_, 4);
    const auto section = [&](std::size_t field) -> std::optional<std::span<const std::byte>> {
      const std::uint64_t start = header + load_at<std::uint32_t>(blob_, field);
      const std::uint64_t size = load_at<std::uint32_t>(blob_, field + 4);
      if (header < kHeaderBytes || start > blob_.size() || size > blob_.size() - start) {
        return std::nullopt;
      }
      return blob_.subspan(start, size);
    };
    const auto types = section(8);
    const auto strings = section(16);
    // As the kernel checks it.
    const bool strings_end = strings && (strings->empty() || strings->back() == std::byte{0});
    if (!types || !strings_end) return fail(ErrorCode::Invalid, "BTF: sections leave the blob");
    types_ = *types;
    result_.strings_ = *strings;
    return {};
  }

  Result<void> outline() {
    std::size_t at = 0;
    while (at < types_.size()) {
      if (types_.size() - at < kTypeBytes) return fail(ErrorCode::Invalid, "BTF: cut short");
      const auto record = load_at<Record>(types_, at);
      const auto tail = tail_bytes(record);
      if (!tail) {
        return fail(ErrorCode::Invalid, fmt::format("BTF: kind {} is unknown", record.kind()));
      }
      if (*tail > types_.size() - at - kTypeBytes) {
        return fail(ErrorCode::Invalid, "BTF: a type leaves the type section");
      }
      starts_.push_back(static_cast<std::uint32_t>(at));
      count(record);
      at += kTypeBytes + *tail;
    }
    return {};
  }

  void count(const Record& record) {
    switch (record.kind()) {
      case Struct:
      case Union: members_ += record.length(); break;
      case Enum64: enum_flag_seen_ = true; [[fallthrough]];
      case Enum:
        enumerators_ += record.length();
        enum_flag_seen_ = enum_flag_seen_ || record.flag();
        break;
      case FuncProto: parameters_ += record.length(); break;
      case Func: ++functions_; break;
      default: break;
    }
  }

  void reserve() {
    const std::size_t types = starts_.size() - functions_;
    graph_.reserve(types, members_, enumerators_, parameters_, types / 2);
    // Names are views, and the larger part of the blob has none.
    const auto strings = std::exchange(result_.strings_, {});
    auto copy = std::make_shared<std::vector<std::byte>>(strings.begin(), strings.end());
    // Names are printed: they must not steer a terminal.
    for (std::byte& c : *copy) {
      const bool plain = c == std::byte{0} || (c >= std::byte{0x20} && c < std::byte{0x7f});
      c = plain ? c : std::byte{'?'};
    }
    result_.strings_ = graph_.adopt(std::move(copy));
    result_.functions_.reserve(functions_);
  }

  /// Gives every type its place in the graph before any is converted, since they refer forwards.
  void assign_ids() {
    first_new_ = TypeId{static_cast<std::uint32_t>(graph_.size())};
    std::uint32_t next = first_new_.value;
    result_.ids_.resize(starts_.size());
    converted_.reserve(starts_.size() - functions_);
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      const auto record = load_at<Record>(types_, starts_[i]);
      switch (record.kind()) {
        case Func:
        case Var:
        case Datasec:
        case DeclTag:
        case TypeTag: break;  // void; a tag gets its target's id below
        case Int:
          if (const auto built_in = built_in_integer(record, i)) {
            result_.ids_[i] = *built_in;
            break;
          }
          [[fallthrough]];
        default:
          result_.ids_[i] = TypeId{next++};
          converted_.push_back(static_cast<std::uint32_t>(i));
          break;
      }
    }
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      if (load_at<Record>(types_, starts_[i]).kind() == TypeTag) result_.ids_[i] = untagged(i);
    }
  }

  /// D's `int` and the kernel's are one type.
  std::optional<TypeId> built_in_integer(const Record& record, std::size_t i) const {
    const auto found = graph_.find(string(record.name));
    if (!found) return std::nullopt;
    const Type& type = graph_[*found];
    const Integer integer = integer_at(i);
    const bool same = type.kind == TypeKind::Integer && type.size == record.size_or_type &&
                      type.is_signed == integer.is_signed && integer.bits == type.size * 8;
    return same ? found : std::nullopt;
  }

  /// The type that a type tag (__user, __rcu) refers to; the tag itself is of no use to D.
  TypeId untagged(std::size_t i) const {
    const std::uint32_t base = base_count();
    for (unsigned step = 0; step < kMaxTagChain; ++step) {
      const auto record = load_at<Record>(types_, starts_[i]);
      if (record.kind() != TypeTag) return result_.ids_[i];
      const std::uint32_t target = record.size_or_type;
      if (target <= base || target - base > starts_.size()) return map(target);
      i = target - base - 1;
    }
    return TypeId{};
  }

  struct Integer {
    bool is_signed = false;
    bool is_char = false;
    std::uint32_t offset = 0;  // bits
    std::uint32_t bits = 0;
  };

  /// The word after an INT: encoding 24-27 (1 signed, 2 char, 4 bool), offset 16-23, bits 0-7.
  Integer integer_at(std::size_t i) const {
    const auto word = load_at<std::uint32_t>(types_, starts_[i] + kTypeBytes);
    const std::uint32_t encoding = (word >> 24) & 0xf;
    return {(encoding & 1) != 0, (encoding & 2) != 0, (word >> 16) & 0xff, word & 0xff};
  }

  std::uint32_t base_count() const {
    return base_ == nullptr ? 0 : static_cast<std::uint32_t>(base_->ids_.size());
  }

  /// BTF's id to the graph's; an id that does not exist is void.
  TypeId map(std::uint32_t id) const {
    const std::uint32_t base = base_count();
    if (id == 0) return TypeId{};
    if (id <= base) return base_->ids_[id - 1];
    return id - base <= result_.ids_.size() ? result_.ids_[id - base - 1] : TypeId{};
  }

  std::string_view string(std::uint32_t offset) const {
    std::span<const std::byte> strings = result_.strings_;
    std::uint64_t at = offset;
    if (base_ != nullptr) {
      if (offset < base_->strings_.size()) {
        strings = base_->strings_;
      } else {
        at -= base_->strings_.size();
      }
    }
    if (at >= strings.size()) return {};
    // SAFETY: char may alias any bytes.
    const std::string_view all(reinterpret_cast<const char*>(strings.data()), strings.size());
    // A million types may all be named by one text of a million characters.
    const std::string_view rest = all.substr(at, kMostSymbolName);
    return rest.substr(0, rest.find('\0'));
  }

  void convert(std::size_t i) {
    CHECK(result_.ids_[i].value == graph_.size());  // else every later type has another's id
    const auto record = load_at<Record>(types_, starts_[i]);
    const std::size_t tail = starts_[i] + kTypeBytes;
    const std::string_view name = string(record.name);
    Type type{.name = name};
    switch (record.kind()) {
      case Int: convert_integer(record, i, type); break;
      case Ptr:
        type = {.kind = TypeKind::Pointer, .size = 8, .target = map(record.size_or_type)};
        break;
      case Array:
        type.kind = TypeKind::Array;
        type.target = map(load_at<std::uint32_t>(types_, tail));
        type.count = load_at<std::uint32_t>(types_, tail + 8);
        break;
      case Struct:
      case Union: convert_struct(record, tail, type); break;
      case Enum: convert_enum(record, tail, type); break;
      case Enum64: convert_enum64(record, tail, type); break;
      case Fwd:
        type.kind = TypeKind::Forward;
        type.is_union = record.flag();
        break;
      case Typedef: type.kind = TypeKind::Typedef; break;
      case Volatile: type.kind = TypeKind::Volatile; break;
      case Const: type.kind = TypeKind::Const; break;
      case Restrict: type.kind = TypeKind::Restrict; break;
      case FuncProto: convert_prototype(record, tail, type); break;
      case Float:
        type.kind = TypeKind::Float;
        type.is_signed = true;
        type.size = record.size_or_type;
        break;
      default: break;
    }
    const bool refers = type.kind == TypeKind::Typedef || type.kind == TypeKind::Volatile ||
                        type.kind == TypeKind::Const || type.kind == TypeKind::Restrict;
    if (refers) type.target = map(record.size_or_type);
    graph_.append(type);
  }

  void convert_integer(const Record& record, std::size_t i, Type& type) const {
    const Integer integer = integer_at(i);
    type.kind = TypeKind::Integer;
    type.is_signed = integer.is_signed;
    type.is_char = integer.is_char || type.name == "char" || type.name.ends_with(" char");
    type.size = std::min<std::uint32_t>(record.size_or_type, 16);
  }

  void convert_struct(const Record& record, std::size_t at, Type& type) {
    type.kind = record.kind() == Struct ? TypeKind::Struct : TypeKind::Union;
    type.size = record.size_or_type;
    type.first = graph_.member_count();
    type.length = record.length();
    for (std::uint32_t i = 0; i < record.length(); ++i, at += 12) {
      const auto id = load_at<std::uint32_t>(types_, at + 4);
      const auto offset = load_at<std::uint32_t>(types_, at + 8);
      Member member{string(load_at<std::uint32_t>(types_, at)), map(id), offset, 0};
      if (record.flag()) {
        member.bit_offset = offset & 0xff'ffff;
        member.bit_width = offset >> 24;
      } else {
        narrow_to_integer(id, member);
      }
      graph_.append_member(member);
    }
  }

  /// Before kind_flag, a bit-field's type was an INT with fewer bits than its size.
  void narrow_to_integer(std::uint32_t id, Member& member) const {
    const std::uint32_t base = base_count();
    if (id <= base || id - base > starts_.size()) return;
    const std::size_t i = id - base - 1;
    const auto record = load_at<Record>(types_, starts_[i]);
    if (record.kind() != Int) return;
    const Integer integer = integer_at(i);
    if (integer.bits == 0 || integer.bits == std::uint64_t{record.size_or_type} * 8) return;
    member.bit_offset += integer.offset;
    member.bit_width = integer.bits;
  }

  /// kind_flag says signed since 6.0; writers that never set it meant all of them to be.
  void convert_enum(const Record& record, std::size_t at, Type& type) {
    type.is_signed = record.flag() || !enum_flag_seen_;
    begin_enum(record, type);
    for (std::uint32_t i = 0; i < record.length(); ++i, at += 8) {
      const auto value = load_at<std::uint32_t>(types_, at + 4);
      const auto extended =
          type.is_signed ? std::int64_t{static_cast<std::int32_t>(value)} : std::int64_t{value};
      graph_.append_enumerator({string(load_at<std::uint32_t>(types_, at)), extended});
    }
  }

  void convert_enum64(const Record& record, std::size_t at, Type& type) {
    type.is_signed = record.flag();
    begin_enum(record, type);
    for (std::uint32_t i = 0; i < record.length(); ++i, at += 12) {
      const auto value = load_at<std::int64_t>(types_, at + 4);
      graph_.append_enumerator({string(load_at<std::uint32_t>(types_, at)), value});
    }
  }

  void begin_enum(const Record& record, Type& type) const {
    type.kind = TypeKind::Enum;
    type.size = std::min<std::uint32_t>(record.size_or_type, 8);
    type.first = graph_.enumerator_count();
    type.length = record.length();
  }

  void convert_prototype(const Record& record, std::size_t at, Type& type) {
    type.kind = TypeKind::Function;
    type.target = map(record.size_or_type);
    type.first = graph_.parameter_count();
    for (std::uint32_t i = 0; i < record.length(); ++i, at += 8) {
      const auto name = load_at<std::uint32_t>(types_, at);
      const auto id = load_at<std::uint32_t>(types_, at + 4);
      if (i + 1 == record.length() && name == 0 && id == 0) {
        type.is_variadic = true;
      } else {
        graph_.append_parameter({string(name), map(id)});
      }
    }
    type.length = graph_.parameter_count() - type.first;
  }

  void index_functions() {
    result_.by_name_.reset(functions_);
    auto& functions = result_.functions_;
    const auto name_at = [&](std::uint32_t i) { return functions[i].name; };
    for (const std::uint32_t start : starts_) {
      const auto record = load_at<Record>(types_, start);
      if (record.kind() != Func) continue;
      const TypeId prototype = map(record.size_or_type);
      const std::string_view name = string(record.name);
      if (name.empty() || graph_[prototype].kind != TypeKind::Function) continue;
      std::uint32_t& position = result_.by_name_(name, name_at);
      if (position != NameIndex::kNone) continue;
      position = static_cast<std::uint32_t>(functions.size());
      functions.push_back({name, prototype});
    }
  }

  /// By the index of their types.
  std::vector<bool> percpu_variables() {
    std::vector<bool> percpu(starts_.size());
    for (const std::uint32_t start : starts_) {
      const auto record = load_at<Record>(types_, start);
      if (record.kind() != Datasec || string(record.name) != kPercpuSection) continue;
      for (std::uint32_t i = 0; i < record.length(); ++i) {  // type, offset, size
        const auto id = load_at<std::uint32_t>(types_, start + kTypeBytes + std::size_t{i} * 12);
        if (id == 0 || id > percpu.size()) continue;
        percpu[id - 1] = true;
        const auto variable = load_at<Record>(types_, starts_[id - 1]);
        const auto offset =
            load_at<std::uint32_t>(types_, start + kTypeBytes + std::size_t{i} * 12 + 4);
        result_.percpu_.push_back({string(variable.name), offset});
      }
    }
    return percpu;
  }

  /// Static variables of several files may share a name: those of different types have none.
  void index_variables() {
    const std::vector<bool> percpu = percpu_variables();
    std::map<std::string, TypeId> found;
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      const auto record = load_at<Record>(types_, starts_[i]);
      const std::string_view name = string(record.name);
      if (record.kind() != Var || name.empty()) continue;
      const TypeId type = map(record.size_or_type);
      const auto [known, is_new] =
          found.emplace(percpu[i] ? percpu_variable_key(name) : variable_key(name), type);
      if (!is_new && known->second != type) known->second = TypeId{};
    }
    for (const auto& [key, type] : found) {
      if (type != TypeId{}) graph_.index_as(type, graph_.intern(key));
    }
  }

  std::span<const std::byte> blob_;
  std::span<const std::byte> types_;
  const Btf* base_;
  TypeGraph& graph_;
  Btf result_;
  std::vector<std::uint32_t> starts_;     // of every type, in types_
  std::vector<std::uint32_t> converted_;  // types that have a place of their own in the graph
  TypeId first_new_;
  std::size_t members_ = 0, enumerators_ = 0, parameters_ = 0, functions_ = 0;
  bool enum_flag_seen_ = false;
};

Result<Btf> Btf::read(std::span<const std::byte> blob, const Btf* base, TypeGraph& graph) {
  if (blob.size() > kMaxBtfBytes) return fail(ErrorCode::Invalid, "BTF: too large");
  return BtfReader(blob, base, graph).read();
}

std::optional<TypeId> Btf::prototype(std::string_view function) const {
  const auto name_at = [this](std::uint32_t i) { return functions_[i].name; };
  const std::uint32_t position = by_name_.find(function, name_at);
  if (position == NameIndex::kNone) return std::nullopt;
  return functions_[position].prototype;
}

Btf::FunctionCount Btf::count_functions(
    const std::function<bool(std::string_view)>& is_known) const {
  const auto known = std::ranges::count_if(
      functions_, [&](const Function& function) { return is_known(function.name); });
  return {static_cast<std::size_t>(known), functions_.size()};
}

}  // namespace ringside::guest_linux
