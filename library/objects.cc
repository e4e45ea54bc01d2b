// The kernel's variables and memory by its types: a place, its members and elements, its value.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "cli/output/shape_tree.h"
#include "dif/bind/shape_table.h"
#include "library/handles.h"
#include "vmm/linux/types/variable_types.h"

struct ringside_object {
  std::shared_ptr<ringside::library::Look> look;
  ringside::TypeId type;
  ringside::GuestVirt address{0};
  std::uint32_t bit_offset = 0, bit_width = 0;  // of a bit-field in the bytes at `address`
  std::string spelled;                          // the type
};

namespace ringside::library {
namespace {

/// The guest's types may be a lie, and nobody reads more at once.
constexpr std::uint64_t kLargest = 1 << 20;
constexpr std::uint32_t kStringSize = 256;  // of D strings, which no kernel has

using Made = Result<std::unique_ptr<ringside_object>>;

std::unique_ptr<ringside_object> make(std::shared_ptr<Look> look, TypeId type, GuestVirt address,
                                      FoundMember bits = {}) {
  std::string spelled = look->types.to_string(type);
  const auto bit_offset = static_cast<std::uint32_t>(bits.bit_width != 0 ? bits.bit_offset % 8 : 0);
  return std::unique_ptr<ringside_object>(new ringside_object{
      std::move(look), type, address, bit_offset, bits.bit_width, std::move(spelled)});
}

const Type& resolved(const ringside_object& object) {
  return object.look->types[object.look->types.resolve(object.type)];
}

Made variable(ringside_vm& vm, std::string_view name) {
  auto look = TRY(look_of(vm));
  const std::size_t tick = name.find('`');
  const std::string_view module = tick == name.npos ? "" : name.substr(0, tick);
  const std::string_view plain = tick == name.npos ? name : name.substr(tick + 1);
  const guest_linux::Symbol* const symbol = look->kernel().symbols().find(plain, module);
  if (symbol == nullptr) {
    return fail(ErrorCode::NotFound,
                fmt::format("the kernel of {} has no symbol '{}'", vm.name, name));
  }
  const auto type = guest_linux::variable_type(look->types, plain, look->machine->view().reader(),
                                               symbol->address);
  return make(std::move(look), type.value_or(TypeId{}), symbol->address);
}

Result<TypeId> type_named(Look& look, std::string_view name) {
  std::size_t stars = 0;
  while (name.ends_with('*') || name.ends_with(' ')) {
    stars += name.ends_with('*') ? 1 : 0;
    name.remove_suffix(1);
  }
  std::optional<TypeId> found;
  const auto of_kind = [&](std::string_view word, TypeKind kind) {
    if (name.starts_with(word)) found = look.types.find(kind, name.substr(word.size()));
  };
  of_kind("struct ", TypeKind::Struct);
  of_kind("union ", TypeKind::Union);
  of_kind("enum ", TypeKind::Enum);
  if (!found) found = look.types.find(name);
  if (!found) {
    return fail(ErrorCode::NotFound,
                fmt::format("the kernel of {} has no type '{}'", look.machine->name(), name));
  }
  while (stars-- > 0) found = look.types.pointer_to(*found);
  return *found;
}

Made object_at(ringside_vm& vm, std::string_view type, std::uint64_t address) {
  auto look = TRY(look_of(vm));
  const TypeId found = TRY(type_named(*look, type));
  return make(std::move(look), found, GuestVirt(address));
}

Result<std::vector<std::byte>> read_bytes(const Look& look, GuestVirt at, std::uint64_t size) {
  TRY(check_there(look));
  if (size > kLargest) {
    return fail(ErrorCode::Limit,
                fmt::format("{} bytes at once are too many: {} at most", size, kLargest));
  }
  std::vector<std::byte> bytes(size);
  look.machine->forget();
  if (look.machine->view().reader().read(at, bytes)) return bytes;
  return fail(ErrorCode::NotFound, fmt::format("{}: there is no memory at 0x{:x}, or not {} bytes",
                                               look.machine->name(), at.raw(), size));
}

Result<GuestVirt> pointed_at(const ringside_object& object) {
  const auto bytes = TRY(read_bytes(*object.look, object.address, sizeof(std::uint64_t)));
  return GuestVirt(cli::unsigned_value(bytes));
}

Made member(const ringside_object& object, std::string_view name) {
  const TypeGraph& types = object.look->types;
  const Type& own = resolved(object);
  const bool follows = own.kind == TypeKind::Pointer;
  const TypeId structure = follows ? own.target : object.type;
  const auto found = types.find_member(types.resolve(structure), name);
  if (!found) {
    return fail(ErrorCode::Usage,
                fmt::format("{} has no member '{}'", types.to_string(structure), name));
  }
  const GuestVirt base = follows ? TRY(pointed_at(object)) : object.address;
  if (follows && base.raw() == 0) {
    return fail(ErrorCode::NotFound,
                fmt::format("a null pointer ({}) has no member '{}'", object.spelled, name));
  }
  return make(object.look, found->type, base.wrapping_add(found->bit_offset / 8), *found);
}

Made element(const ringside_object& object, std::int64_t index) {
  const Type& own = resolved(object);
  const bool follows = own.kind == TypeKind::Pointer;
  if (!follows && own.kind != TypeKind::Array) {
    return fail(ErrorCode::Usage,
                fmt::format("{} is neither an array nor a pointer", object.spelled));
  }
  // A flexible array, whose length the type does not say, has 0.
  const bool outside = !follows && (index < 0 || (own.count != 0 && index >= own.count));
  if (outside) {
    return fail(ErrorCode::NotFound, fmt::format("{} has no element {}", object.spelled, index));
  }
  const GuestVirt base = follows ? TRY(pointed_at(object)) : object.address;
  const std::uint64_t size = object.look->types.size_of(own.target);
  return make(object.look, own.target, base.wrapping_add(static_cast<std::uint64_t>(index) * size));
}

Made on_cpu(const ringside_object& object, std::uint32_t cpu) {
  const auto bases = object.look->kernel().percpu_bases();
  if (cpu >= bases.size()) {
    return fail(ErrorCode::NotFound,
                fmt::format("there is no CPU {}; the guest has {}", cpu, bases.size()));
  }
  return make(object.look, object.type, object.address.wrapping_add(bases[cpu]));
}

Result<Tree> read_value(const ringside_object& object) {
  const TypeGraph& types = object.look->types;
  const Type& type = resolved(object);
  const std::uint64_t size = types.size_of(object.type);
  if (size == 0) {
    return fail(ErrorCode::Unsupported,
                fmt::format("the kernel does not say what is at 0x{:x}: its type is {}",
                            object.address.raw(), object.spelled));
  }
  // A bit-field of a type may end behind it where it does not begin at the place's first bit.
  const std::uint64_t wanted =
      object.bit_width != 0 ? (object.bit_offset + object.bit_width + 7) / 8 : size;
  auto bytes = TRY(read_bytes(*object.look, object.address, wanted));
  bytes.resize(std::max<std::uint64_t>(size, wanted));
  if (type.kind == TypeKind::Pointer) return Tree(cli::unsigned_value(bytes));
  std::vector<dif::TypeShape> shapes;
  const auto shape = dif::ShapeTable(types, kStringSize, shapes).add(object.type);
  if (!shape) {
    return fail(ErrorCode::Limit, fmt::format("{} has too many parts to be read at once: read its "
                                              "members",
                                              object.spelled));
  }
  return cli::shape_tree(shapes, *shape, bytes, object.bit_offset, object.bit_width);
}

void add_members(const TypeGraph& types, TypeId structure, Tree& names, unsigned depth) {
  constexpr unsigned kDeepest = 16;
  if (depth > kDeepest) return;
  for (const Member& each : types.members(types.resolve(structure))) {
    if (each.name.empty()) {
      add_members(types, each.type, names, depth + 1);
    } else {
      names.push_back(cli::valid_utf8(each.name));
    }
  }
}

ringside_object* give(Made made, ringside_error** error) {
  if (made) return made->release();
  tell_error(error, made.error());
  return nullptr;
}

/// Nothing is asked for long here, and nobody listens.
const HandleOrder& nobodys_order() {
  static const HandleOrder order;
  return order;
}
const cli::MessageReceiver kNoReceiver = [](std::string_view) {};

}  // namespace
}  // namespace ringside::library

using namespace ringside::library;

ringside_object* ringside_variable(ringside_vm* vm, const char* name, ringside_error** error) {
  const Call call(nobodys_order(), kNoReceiver);
  return give(variable(*vm, name), error);
}

ringside_object* ringside_object_at_address(ringside_vm* vm, const char* type, uint64_t address,
                                            ringside_error** error) {
  const Call call(nobodys_order(), kNoReceiver);
  return give(object_at(*vm, type, address), error);
}

ringside_object_kind ringside_object_get_kind(const ringside_object* object) {
  using ringside::TypeKind;
  switch (resolved(*object).kind) {
    case TypeKind::Integer:
    case TypeKind::Float:
    case TypeKind::Enum: return RINGSIDE_SCALAR;
    case TypeKind::Pointer: return RINGSIDE_POINTER;
    case TypeKind::Array: return RINGSIDE_ARRAY;
    case TypeKind::Struct:
    case TypeKind::Union: return RINGSIDE_STRUCT;
    default: return RINGSIDE_OPAQUE;
  }
}

const char* ringside_object_type(const ringside_object* object) {
  return object->spelled.c_str();
}

uint64_t ringside_object_address(const ringside_object* object) {
  return object->address.raw();
}

uint64_t ringside_object_size(const ringside_object* object) {
  return object->look->types.size_of(object->type);
}

uint64_t ringside_object_count(const ringside_object* object) {
  const ringside::Type& type = resolved(*object);
  return type.kind == ringside::TypeKind::Array ? type.count : 0;
}

ringside_value* ringside_object_members(const ringside_object* object) {
  const ringside::Type& own = resolved(*object);
  const bool follows = own.kind == ringside::TypeKind::Pointer;
  Tree names = Tree::array();
  add_members(object->look->types, follows ? own.target : object->type, names, 0);
  return give_value(std::move(names));
}

ringside_object* ringside_object_member(const ringside_object* object, const char* name,
                                        ringside_error** error) {
  const Call call(nobodys_order(), kNoReceiver);
  return give(member(*object, name), error);
}

ringside_object* ringside_object_element(const ringside_object* object, int64_t index,
                                         ringside_error** error) {
  const Call call(nobodys_order(), kNoReceiver);
  return give(element(*object, index), error);
}

ringside_object* ringside_object_on_cpu(const ringside_object* object, uint32_t cpu,
                                        ringside_error** error) {
  return give(on_cpu(*object, cpu), error);
}

ringside_value* ringside_object_read(const ringside_object* object, ringside_error** error) {
  const Call call(nobodys_order(), kNoReceiver);
  auto value = read_value(*object);
  if (value) return give_value(std::move(*value));
  tell_error(error, value.error());
  return nullptr;
}

int ringside_read_memory(ringside_vm* vm, uint64_t address, void* bytes, size_t size,
                         ringside_error** error) {
  const Call call(nobodys_order(), kNoReceiver);
  const auto look = look_of(*vm);
  auto read = look ? read_bytes(**look, ringside::GuestVirt(address), size)
                   : tl::make_unexpected(look.error());
  if (!read) {
    tell_error(error, read.error());
    return RINGSIDE_FAILED;
  }
  std::ranges::copy(*read, static_cast<std::byte*>(bytes));
  return 0;
}

void ringside_object_free(ringside_object* object) {
  const BlockedSignals blocked;
  delete object;
}
