#include "dif/evaluate/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "vmm/base/numbers.h"

namespace ringside::dif {

namespace {

std::uint64_t place_size(const ValueType& type, std::uint32_t string_size) {
  return round_up(std::uint64_t{stored_size(type, string_size)}, 8);
}

}  // namespace

DeclaredVariables declare_variables(std::span<const Program* const> bound,
                                    const EngineOptions& options, VariableScope scope) {
  DeclaredVariables declared;
  const Arena arena = scope == VariableScope::Global ? Arena::Globals : Arena::Locals;
  for (const Program* const program : bound) {
    for_each_difo(*program, [&](const Difo& difo) {
      for (const Variable& variable : difo.variables) {
        if (variable.scope != scope) continue;
        const std::size_t at = variable.id - kFirstUserVariable;
        if (declared.slots.size() <= at) declared.slots.resize(at + 1);
        declared.slots[at].type = variable.type;
        declared.slots[at].has_storage = has_storage(variable);
      }
    });
  }
  for (VariableSlot& slot : declared.slots) {
    // On another machine something may fire while this one's BEGIN stores.
    slot.settled = bound.size() == 1 && !is_by_reference(slot.type);
    if (!slot.has_storage) continue;
    slot.offset = declared.storage;
    slot.value = make_handle(arena, declared.storage);  // never stored: empty, not null
    declared.storage += place_size(slot.type, options.string_size);
  }
  return declared;
}

SharedVariables::SharedVariables(std::span<const Program* const> bound,
                                 const EngineOptions& options, unsigned vcpus)
    : dynamic_(options.dynamic_size * bound.size(), vcpus) {
  DeclaredVariables declared = declare_variables(bound, options, VariableScope::Global);
  globals_ = std::move(declared.slots);
  storage_used_ = declared.storage;
  storage_ = LazyMemory(declared.storage);
}

void SharedVariables::unsettle(std::uint16_t id) {
  globals_[id - kFirstUserVariable].settled = false;
}

Variables::Variables(const Program& program, const EngineOptions& options, SharedVariables& shared,
                     SharedAccess& access, Memory& memory, unsigned vcpu)
    : shared_(shared),
      access_(access),
      memory_(memory),
      vcpu_(vcpu),
      string_size_(options.string_size),
      threads_(declare_variables(std::array{&program}, options, VariableScope::Thread).slots),
      key_(sizeof(std::uint64_t) + sizeof(Owner) +
           kTupleSlots * (8 + std::max<std::size_t>(options.string_size, kLongestBytesKey))) {
  DeclaredVariables declared =
      declare_variables(std::array{&program}, options, VariableScope::Clause);
  locals_ = std::move(declared.slots);
  storage_ = LazyMemory(declared.storage);
  memory_.set_arena(Arena::Locals, storage_.bytes().first(declared.storage));
  memory_.set_arena(Arena::Globals, shared_.storage_.bytes().first(shared_.storage_used_));
  memory_.set_arena(Arena::Dynamic, shared_.dynamic_.arena());
}

/// Global ones are this firing's from now on.
VariableSlot& Variables::slot_of(VariableScope scope, std::uint16_t id) {
  if (scope == VariableScope::Clause) return locals_[id - kFirstUserVariable];
  VariableSlot& slot = shared_.globals_[id - kFirstUserVariable];
  if (!slot.settled) access_.take_program();
  return slot;
}

const ValueType& Variables::type_of(VariableScope scope, std::uint16_t id) const {
  const bool thread = scope == VariableScope::Thread;
  return (thread ? threads_ : shared_.globals_)[id - kFirstUserVariable].type;
}

/// Where the elements of a thread or of an array lie, which are this firing's from now on.
DynamicTable::Place Variables::take_place(VariableScope scope, Owner owner) {
  DynamicTable::Place place{DynamicTable::kArrays, vcpu_};
  if (scope == VariableScope::Thread) {
    place.part = shared_.dynamic_.part_of(owner.thread);
    access_.take_shard(place.part);
  } else {
    access_.take_program();
  }
  return place;
}

std::uint64_t Variables::load(VariableScope scope, std::uint16_t id) {
  return slot_of(scope, id).value;
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
  VariableSlot& slot = slot_of(scope, id);
  if (!is_by_reference(slot.type)) {
    slot.value = value;
    return {};
  }
  if (value == 0) {
    slot.value = 0;
    return {};
  }
  const bool global = scope == VariableScope::Global;
  const auto storage = (global ? shared_.storage_ : storage_).bytes();
  TRY(copy_value(slot.type, value,
                 storage.subspan(slot.offset, stored_size(slot.type, string_size_))));
  slot.value = make_handle(global ? Arena::Globals : Arena::Locals, slot.offset);
  return {};
}

/// Scope, id and owner, then each key with its length before it, so that no two tuples look alike.
Result<std::span<const std::byte>, Fault> Variables::make_key(VariableScope scope, std::uint16_t id,
                                                              Owner owner,
                                                              std::span<const TupleValue> tuple) {
  std::size_t used = 0;
  const auto append = [&](const void* data, std::size_t size) {
    if (size != 0) std::memcpy(key_.bytes().data() + used, data, size);
    used += size;
  };
  const std::uint64_t identity = std::uint64_t{id} << 8 | static_cast<std::uint8_t>(scope);
  append(&identity, sizeof identity);
  append(&owner.thread, sizeof owner.thread);
  if (scope == VariableScope::Thread) append(&owner.born, sizeof owner.born);
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
        TRY(memory_.read(key.value, key_.bytes().subspan(used, key.size)));
        used += key.size;
        break;
    }
  }
  return std::span<const std::byte>(key_.bytes()).first(used);
}

Result<std::uint64_t, Fault> Variables::load_dynamic(VariableScope scope, std::uint16_t id,
                                                     Owner owner,
                                                     std::span<const TupleValue> tuple) {
  const DynamicTable::Place place = take_place(scope, owner);
  const auto key = TRY(make_key(scope, id, owner, tuple));
  const DynamicTable& table = shared_.dynamic_;
  const auto found = table.find(key, place.part);
  if (!found) return 0;
  const ValueType& type = type_of(scope, id);
  if (is_by_reference(type)) {
    const std::uint64_t handle = make_handle(Arena::Dynamic, *found);
    memory_.open(handle, stored_size(type, string_size_));
    return handle;
  }
  std::uint64_t value;
  std::memcpy(&value, table.arena().data() + *found, sizeof value);
  return value;
}

void Variables::count_drop() {
  switch (shared_.dynamic_.full_because()) {
    case DynamicTable::Full::Used: ++dynamic_drops_.plain; return;
    case DynamicTable::Full::Dirty: ++dynamic_drops_.dirty; return;
    case DynamicTable::Full::Rinsing: ++dynamic_drops_.rinsing; return;
  }
}

Result<void, Fault> Variables::store_dynamic(VariableScope scope, std::uint16_t id, Owner owner,
                                             std::span<const TupleValue> tuple,
                                             std::uint64_t value) {
  if (is_handle(value)) memory_.take(value);  // no lock may be waited for once the place is known
  const DynamicTable::Place place = take_place(scope, owner);
  const auto key = TRY(make_key(scope, id, owner, tuple));
  DynamicTable& table = shared_.dynamic_;
  const ValueType& type = type_of(scope, id);
  const bool by_reference = is_by_reference(type);
  if (value == 0) {
    table.erase(key, place);
    return {};
  }
  const std::size_t size = by_reference ? stored_size(type, string_size_) : sizeof value;
  const auto at = table.find_or_add(key, size, place);
  if (!at) {
    count_drop();
    return {};
  }
  const auto data = table.arena().subspan(*at, size);
  if (!by_reference) {
    std::memcpy(data.data(), &value, sizeof value);
    return {};
  }
  auto copied = copy_value(type, value, data);
  if (!copied) table.erase(key, place);  // half a value is none
  return copied;
}

Result<std::shared_ptr<SharedGlobals>> share_globals(std::span<const Program* const> bound,
                                                     const EngineOptions& options, unsigned vcpus) {
  std::map<std::uint16_t, const Variable*> known;
  const Variable* differs = nullptr;
  for (const Program* const program : bound) {
    for_each_difo(*program, [&](const Difo& difo) {
      for (const Variable& variable : difo.variables) {
        if (variable.scope != VariableScope::Global) continue;
        const Variable& first = *known.emplace(variable.id, &variable).first->second;
        if (first.type != variable.type || first.kind != variable.kind) differs = &variable;
      }
    });
  }
  if (differs == nullptr) {
    EngineOptions used = options;
    used.string_size = usable_string_size(options.string_size);
    return std::make_shared<SharedGlobals>(bound, used, vcpus);
  }
  return fail(ErrorCode::Unsupported,
              fmt::format("the machines share the global variable {}, and it is of a type that is "
                          "not as large in each one's kernel: use self->{} or a pointer",
                          differs->name, differs->name));
}

}  // namespace ringside::dif
