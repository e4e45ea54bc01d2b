#include "dif/evaluate/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace ringside::dif {

namespace {

/// By-reference keys longer than this are not worth hashing; storing one is out of scratch space.
constexpr std::size_t kLongestBytesKey = 4096;

bool is_by_reference(const ValueType& type) {
  return type.kind == ValueKind::String || type.kind == ValueKind::Bytes;
}

/// The others live in the dynamic table, or in a slot's own word.
bool has_storage(const Variable& variable) {
  return variable.scope != VariableScope::Thread && variable.kind == VariableKind::Scalar &&
         is_by_reference(variable.type);
}

std::uint64_t place_size(const ValueType& type, std::uint32_t string_size) {
  return (stored_size(type, string_size) + std::uint64_t{7}) & ~std::uint64_t{7};
}

}  // namespace

std::uint32_t stored_size(const ValueType& type, std::uint32_t string_size) {
  switch (type.kind) {
    case ValueKind::Void: return 0;
    case ValueKind::String: return type.size == 0 ? string_size : std::min(type.size, string_size);
    case ValueKind::Integer:
    case ValueKind::Bytes:
    case ValueKind::KernelStack:
    case ValueKind::UserStack:
    case ValueKind::KernelSymbol:
    case ValueKind::KernelModule:
    case ValueKind::UserSymbol:
    case ValueKind::UserModule:
    case ValueKind::UserAddress: return type.size;
  }
  return 0;
}

std::uint64_t narrow(const ValueType& type, std::uint64_t value) {
  const auto cut = [&]<class Signed, class Unsigned>(Signed, Unsigned) {
    return type.is_signed
               ? static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<Signed>(value)))
               : static_cast<std::uint64_t>(static_cast<Unsigned>(value));
  };
  switch (type.size) {
    case 1: return cut(std::int8_t{}, std::uint8_t{});
    case 2: return cut(std::int16_t{}, std::uint16_t{});
    case 4: return cut(std::int32_t{}, std::uint32_t{});
    default: return value;
  }
}

Result<void> check_storage(const Program& program, std::uint32_t string_size) {
  std::set<std::pair<VariableScope, std::uint16_t>> seen;
  std::uint64_t bytes = 0;
  for_each_difo(program, [&](const Difo& difo) {
    for (const Variable& variable : difo.variables) {
      if (!seen.emplace(variable.scope, variable.id).second) continue;
      if (has_storage(variable)) bytes += place_size(variable.type, string_size);
    }
  });
  if (bytes <= kMostStorage) return {};
  return fail(ErrorCode::Limit,
              fmt::format("the program's variables take {} bytes where strings have {}; at most {} "
                          "are possible",
                          bytes, string_size, kMostStorage));
}

Variables::Variables(const Program& program, const EngineOptions& options, Memory& memory)
    : memory_(memory),
      string_size_(options.string_size),
      dynamic_(options.dynamic_size),
      key_(16 + kTupleSlots * (8 + std::max<std::size_t>(options.string_size, kLongestBytesKey))) {
  for_each_difo(program, [this](const Difo& difo) { declare(difo); });
  place(slots(VariableScope::Global), globals_, Arena::Globals);
  place(slots(VariableScope::Clause), locals_, Arena::Locals);
  memory_.set_arena(Arena::Dynamic, dynamic_.arena());
}

void Variables::declare(const Difo& difo) {
  for (const Variable& variable : difo.variables) {
    Slots& table = slots(variable.scope);
    const std::size_t at = variable.id - kFirstUserVariable;
    if (table.size() <= at) table.resize(at + 1);
    table[at].type = variable.type;
    table[at].has_storage = has_storage(variable);
  }
}

void Variables::place(Slots& table, std::vector<std::byte>& storage, Arena arena) {
  std::uint64_t used = 0;
  for (Slot& slot : table) {
    if (!slot.has_storage) continue;
    slot.offset = used;
    slot.value = make_handle(arena, used);  // never stored: empty, not null
    used += place_size(slot.type, string_size_);
  }
  storage.resize(used);
  memory_.set_arena(arena, storage);
}

std::uint64_t Variables::load(VariableScope scope, std::uint16_t id) const {
  const Slot& slot = slots(scope)[id - kFirstUserVariable];
  return slot.value;
}

/// By-reference values are copied in, so that the source may change or go.
Result<void, Fault> Variables::copy_value(const ValueType& type, std::uint64_t from,
                                          std::span<std::byte> to) {
  if (type.kind == ValueKind::Bytes) return memory_.read(from, to);
  const std::string_view text = TRY(memory_.string(from, to.size()));
  if (!text.empty()) std::memmove(to.data(), text.data(), text.size());
  if (text.size() < to.size()) to[text.size()] = std::byte{0};
  return {};
}

Result<void, Fault> Variables::store(VariableScope scope, std::uint16_t id, std::uint64_t value) {
  Slot& slot = slots(scope)[id - kFirstUserVariable];
  if (!is_by_reference(slot.type)) {
    slot.value = narrow(slot.type, value);
    return {};
  }
  if (value == 0) {
    slot.value = 0;
    return {};
  }
  const bool global = scope == VariableScope::Global;
  auto& storage = global ? globals_ : locals_;
  TRY(copy_value(slot.type, value,
                 std::span(storage).subspan(slot.offset, stored_size(slot.type, string_size_))));
  slot.value = make_handle(global ? Arena::Globals : Arena::Locals, slot.offset);
  return {};
}

/// Scope, id and owner, then each key with its length before it, so that no two tuples look alike.
Result<std::span<const std::byte>, Fault> Variables::make_key(VariableScope scope, std::uint16_t id,
                                                              std::uint64_t owner,
                                                              std::span<const TupleValue> tuple) {
  std::size_t used = 0;
  const auto append = [&](const void* data, std::size_t size) {
    if (size != 0) std::memcpy(key_.data() + used, data, size);
    used += size;
  };
  const std::uint64_t identity = std::uint64_t{id} << 8 | static_cast<std::uint8_t>(scope);
  append(&identity, sizeof identity);
  append(&owner, sizeof owner);
  for (const TupleValue& key : tuple) {
    switch (key.kind) {
      case ValueKind::Void:
      case ValueKind::Integer:
      case ValueKind::KernelStack:
      case ValueKind::UserStack:
      case ValueKind::KernelSymbol:
      case ValueKind::KernelModule:
      case ValueKind::UserSymbol:
      case ValueKind::UserModule:
      case ValueKind::UserAddress: append(&key.value, sizeof key.value); break;
      case ValueKind::String: {
        const std::string_view text = TRY(memory_.string(key.value, string_size_));
        const std::uint64_t length = text.size();
        append(&length, sizeof length);
        append(text.data(), text.size());
        break;
      }
      case ValueKind::Bytes:
        if (key.size > kLongestBytesKey) return raise(FaultKind::NoScratch);
        append(&key.size, sizeof key.size);
        TRY(memory_.read(key.value, std::span(key_).subspan(used, key.size)));
        used += key.size;
        break;
    }
  }
  return std::span<const std::byte>(key_).first(used);
}

Result<std::uint64_t, Fault> Variables::load_dynamic(VariableScope scope, std::uint16_t id,
                                                     std::uint64_t owner,
                                                     std::span<const TupleValue> tuple) {
  const auto key = TRY(make_key(scope, id, owner, tuple));
  const auto found = dynamic_.find(key);
  if (!found) return 0;
  const ValueType& type = slots(scope)[id - kFirstUserVariable].type;
  if (is_by_reference(type)) {
    const std::uint64_t handle = make_handle(Arena::Dynamic, *found);
    memory_.open(handle, stored_size(type, string_size_));
    return handle;
  }
  std::uint64_t value;
  std::memcpy(&value, dynamic_.arena().data() + *found, sizeof value);
  return value;
}

void Variables::count_drop() {
  switch (dynamic_.full_because()) {
    case DynamicTable::Full::Used: ++dynamic_drops_.plain; return;
    case DynamicTable::Full::Dirty: ++dynamic_drops_.dirty; return;
    case DynamicTable::Full::Rinsing: ++dynamic_drops_.rinsing; return;
  }
}

Result<void, Fault> Variables::store_dynamic(VariableScope scope, std::uint16_t id,
                                             std::uint64_t owner, std::span<const TupleValue> tuple,
                                             std::uint64_t value) {
  const auto key = TRY(make_key(scope, id, owner, tuple));
  const ValueType& type = slots(scope)[id - kFirstUserVariable].type;
  const bool by_reference = is_by_reference(type);
  if (!by_reference) value = narrow(type, value);
  if (value == 0) {
    dynamic_.erase(key);
    return {};
  }
  const std::size_t size = by_reference ? stored_size(type, string_size_) : sizeof value;
  const auto at = dynamic_.find_or_add(key, size);
  if (!at) {
    count_drop();
    return {};
  }
  const auto data = dynamic_.arena().subspan(*at, size);
  if (!by_reference) {
    std::memcpy(data.data(), &value, sizeof value);
    return {};
  }
  auto copied = copy_value(type, value, data);
  if (!copied) dynamic_.erase(key);  // half a value is none
  return copied;
}

}  // namespace ringside::dif
