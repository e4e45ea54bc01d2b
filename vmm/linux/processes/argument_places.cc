// In this file, top to bottom: the classes of a type's eightbytes, Rust's types, the registers.
#include "vmm/linux/processes/argument_places.h"

#include <algorithm>
#include <array>

#include "vmm/base/numbers.h"

namespace ringside::guest_linux {
namespace {

constexpr unsigned kIntegerRegisters = 6, kSseRegisters = 8;
constexpr std::uint64_t kMostInRegisters = 16, kStackAlignment = 16;
constexpr unsigned kMostNestedParts = 32, kMostPartsOfArgument = 4096;

enum class ArgumentClass : std::uint8_t { None, Integer, Sse, X87, Memory };

/// The way in which a value of a type is passed.
struct PassedAs {
  std::uint64_t size = 0, alignment = 1;
  std::array<ArgumentClass, 2> classes{};  // of its eightbytes
  bool is_known = true, is_by_reference = false, is_aggregate = false;

  unsigned count(ArgumentClass wanted) const {
    return static_cast<unsigned>(std::ranges::count(classes, wanted));
  }
  bool is_in_memory() const { return size > kMostInRegisters || count(ArgumentClass::Memory) != 0; }
};

class ArgumentClassifier {
 public:
  ArgumentClassifier(const TypeGraph& graph, const TypeTraitsMap& traits)
      : graph_(graph), traits_(traits) {}

  PassedAs classify(TypeId id) {
    result_ = {};
    budget_ = kMostPartsOfArgument;
    is_decided_ = false;
    const TypeId resolved = graph_.resolve(id);
    const TypeKind kind = graph_[resolved].kind;
    result_.size = graph_.size_of(resolved);
    result_.is_aggregate = kind == TypeKind::Struct || kind == TypeKind::Union;
    if (is_vector(resolved)) {
      add_vector(resolved);
    } else {
      add(resolved, 0, 0);
    }
    return result_;
  }

 private:
  bool is_vector(TypeId id) const {
    const auto found = traits_.find(id.value);
    return found != traits_.end() && found->second.is_vector;
  }

  /// 16 bytes at most have one SSE register on every processor.
  void add_vector(TypeId id) {
    result_.size = graph_.size_of(id);
    result_.is_known &= result_.size == 8 || result_.size == 16;
    result_.alignment = std::max<std::uint64_t>(result_.size, 1);
    result_.classes[0] = ArgumentClass::Sse;
  }

  void add(TypeId id, std::uint64_t offset, unsigned depth) {
    if (budget_ == 0 || depth > kMostNestedParts) result_.is_known = false;
    if (!result_.is_known) return;
    --budget_;
    const TypeId resolved = graph_.resolve(id);
    const Type& type = graph_[resolved];
    switch (type.kind) {
      case TypeKind::Integer:
      case TypeKind::Enum:
      case TypeKind::Pointer: return add_scalar(ArgumentClass::Integer, type.size, offset);
      case TypeKind::Float:
        return add_scalar(type.size > 8 ? ArgumentClass::X87 : ArgumentClass::Sse, type.size,
                          offset);
      case TypeKind::Array: return add_array(resolved, offset, depth);
      case TypeKind::Struct:
      case TypeKind::Union: return add_fields(resolved, offset, depth);
      default: result_.is_known = false;
    }
  }

  void add_scalar(ArgumentClass wanted, std::uint64_t size, std::uint64_t offset) {
    if (size == 0) {
      result_.is_known = false;
      return;
    }
    result_.alignment = std::max(result_.alignment, size);
    if (offset % size != 0) wanted = ArgumentClass::Memory;
    merge(wanted, offset);
    if (size > 8) merge(wanted, offset + 8);
  }

  void merge(ArgumentClass wanted, std::uint64_t offset) {
    if (offset >= kMostInRegisters) return;
    ArgumentClass& known = result_.classes[offset / 8];
    if (known == wanted) return;
    const auto either = [&](ArgumentClass one) { return known == one || wanted == one; };
    if (known == ArgumentClass::None) {
      known = wanted;
    } else if (either(ArgumentClass::Memory)) {
      known = ArgumentClass::Memory;
    } else if (either(ArgumentClass::Integer)) {
      known = ArgumentClass::Integer;
    } else {
      known = ArgumentClass::Memory;  // X87 beside SSE
    }
  }

  /// Elements that lie in no register only matter for the alignment: one tells it.
  void add_array(TypeId id, std::uint64_t offset, unsigned depth) {
    if (is_vector(id)) result_.is_known = false;
    const Type& type = graph_[id];
    const std::uint64_t size = graph_.size_of(type.target);
    const std::uint64_t most = size == 0 ? 1 : kMostInRegisters / size + 1;
    for (std::uint64_t n = 0; n < std::min<std::uint64_t>(type.count, most); ++n) {
      add(type.target, offset + n * size, depth + 1);
    }
  }

  void add_fields(TypeId id, std::uint64_t offset, unsigned depth) {
    using Passing = TypeTraits::Passing;
    const auto found = traits_.find(id.value);
    const TypeTraits facts = found == traits_.end() ? TypeTraits{} : found->second;
    result_.is_known &= !facts.is_opaque && (is_decided_ || facts.passing != Passing::Unknown);
    result_.is_by_reference |= !is_decided_ && facts.passing == Passing::ByReference;
    is_decided_ |= depth == 0 && facts.passing == Passing::ByValue;
    result_.alignment = std::max(result_.alignment, facts.alignment);
    for (const Member& member : graph_.members(id)) {
      if (member.bit_width == 0) {
        add(member.type, offset + member.bit_offset / 8, depth + 1);
      } else {
        merge(ArgumentClass::Integer, offset + member.bit_offset / 8);
        merge(ArgumentClass::Integer,
              offset + (std::uint64_t{member.bit_offset} + member.bit_width - 1) / 8);
        result_.alignment = std::max(result_.alignment, graph_.size_of(member.type));
      }
    }
  }

  const TypeGraph& graph_;
  const TypeTraitsMap& traits_;
  PassedAs result_;
  unsigned budget_ = 0;
  bool is_decided_ = false;  // the compiler has said that it is passed by value, whatever is in it
};

/// A type of Rust that is one scalar, however often it is wrapped; empty: it is none.
std::optional<TypeId> scalar_of_rust(const TypeGraph& graph, TypeId id) {
  const std::uint64_t size = graph.size_of(id);
  for (unsigned depth = 0; depth < kMostNestedParts; ++depth) {
    id = graph.resolve(id);
    if (graph[id].kind != TypeKind::Struct) break;
    const auto fields = graph.members(id);
    if (fields.size() != 1 || fields[0].bit_width != 0 || fields[0].bit_offset != 0) return {};
    id = fields[0].type;
  }
  const TypeKind kind = graph[id].kind;
  const bool is_scalar = kind == TypeKind::Integer || kind == TypeKind::Float ||
                         kind == TypeKind::Enum || kind == TypeKind::Pointer;
  if (!is_scalar || graph[id].size != size || size == 0 || size > 8) return {};
  return id;
}

/// A reference with a length or a table of functions: each word is passed for itself.
bool is_wide_pointer_of_rust(const TypeGraph& graph, TypeId id) {
  const auto fields = graph.members(graph.resolve(id));
  if (fields.size() != 2 || graph.size_of(id) != 16) return false;
  const bool is_slice = fields[0].name == "data_ptr" && fields[1].name == "length";
  const bool is_object = fields[0].name == "pointer" && fields[1].name == "vtable";
  return is_slice || is_object;
}

class RegisterCounter {
 public:
  RegisterCounter(const TypeGraph& graph, const TypeTraitsMap& traits, CallingRules rules)
      : graph_(graph), classifier_(graph, traits), rules_(rules) {}

  /// A structure that is returned in memory: its address is the first argument.
  void take_result(TypeId id) {
    if (graph_[graph_.resolve(id)].kind == TypeKind::Void) return;
    const PassedAs passed = classifier_.classify(id);
    if (!passed.is_aggregate) return;
    if (rules_ == CallingRules::Rust) {
      is_known_ =
          passed.size == 0 || is_wide_pointer_of_rust(graph_, id) || scalar_of_rust(graph_, id);
      return;
    }
    is_known_ = passed.is_known || passed.is_by_reference;
    if (passed.is_by_reference || passed.is_in_memory()) integers_ = 1;
  }

  ArgumentPlace take(TypeId id) {
    if (rules_ == CallingRules::Rust) return take_rusts(id);
    return take(classifier_.classify(id));
  }

 private:
  ArgumentPlace take(const PassedAs& passed) {
    is_known_ &= passed.is_known || passed.is_by_reference;
    if (!is_known_) return {};
    if (passed.is_by_reference) return {take_word(), true};
    if (passed.size == 0 || passed.count(ArgumentClass::None) == 2) return {};
    const unsigned integers = passed.count(ArgumentClass::Integer);
    const unsigned sses = passed.count(ArgumentClass::Sse);
    const bool is_one_word = integers == 1 && sses == 0 && passed.size <= 8;
    const bool is_in_registers = !passed.is_in_memory() && passed.count(ArgumentClass::X87) == 0 &&
                                 integers_ + integers <= kIntegerRegisters &&
                                 sses_ + sses <= kSseRegisters;
    if (!is_in_registers) return take_stack(passed, is_one_word);
    const ArgumentPlace found{is_one_word ? std::optional(integers_) : std::nullopt};
    integers_ += integers;
    sses_ += sses;
    return found;
  }

  ArgumentPlace take_rusts(TypeId id) {
    const std::uint64_t size = graph_.size_of(id);
    const TypeKind kind = graph_[graph_.resolve(id)].kind;
    if (size == 0 && (kind == TypeKind::Struct || kind == TypeKind::Array)) return {};
    if (is_known_ && is_wide_pointer_of_rust(graph_, id)) {
      take_word();
      take_word();
      return {};
    }
    const auto scalar = scalar_of_rust(graph_, id);
    is_known_ &= scalar.has_value();
    return is_known_ ? take(classifier_.classify(*scalar)) : ArgumentPlace{};
  }

  ArgumentPlace take_stack(const PassedAs& passed, bool is_one_word) {
    is_known_ &= passed.alignment <= kStackAlignment;
    if (!is_known_) return {};
    if (passed.alignment == kStackAlignment) words_ = round_up(words_, 2);
    const unsigned place = kIntegerRegisters + words_;
    words_ += static_cast<unsigned>(std::min<std::uint64_t>(divide_up(passed.size, 8), kMostWords));
    // clang before 18 neither aligns an __int128 nor keeps it in one piece.
    const bool is_wide_integer = passed.count(ArgumentClass::Integer) == 2 && !passed.is_aggregate;
    is_known_ &= words_ < kMostWords && !is_wide_integer;
    return {is_one_word ? std::optional(place) : std::nullopt};
  }

  unsigned take_word() {
    return integers_ < kIntegerRegisters ? integers_++ : kIntegerRegisters + words_++;
  }

  static constexpr unsigned kMostWords = 1 << 20;

  const TypeGraph& graph_;
  ArgumentClassifier classifier_;
  const CallingRules rules_;
  unsigned integers_ = 0, sses_ = 0, words_ = 0;
  bool is_known_ = true;  // after a type of which nobody knows, no place is known
};

}  // namespace

std::vector<ArgumentPlace> argument_places(const TypeGraph& graph, const TypeTraitsMap& traits,
                                           CallingRules rules, TypeId result,
                                           std::span<const TypeId> arguments) {
  RegisterCounter counter(graph, traits, rules);
  counter.take_result(result);
  std::vector<ArgumentPlace> places;
  places.reserve(arguments.size());
  for (const TypeId each : arguments) places.push_back(counter.take(each));
  return places;
}

}  // namespace ringside::guest_linux
