// In this file, top to bottom: attributes, an entry's type, structures, other types.
#include "vmm/linux/processes/dwarf_type_reader.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "vmm/base/printable.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kLongestTypeName = 512;
constexpr unsigned kMostPointersInARow = 32, kMostDimensions = 32;

template <class Visit>
void for_each_child(Dwarf_Die& die, std::uint64_t& budget, Visit visit) {
  Dwarf_Die child;
  if (dwarf_child(&die, &child) != 0) return;
  do {
    if (budget == 0) return;
    --budget;
    visit(child);
  } while (dwarf_siblingof(&child, &child) == 0);
}

bool is_constant_form(unsigned form) {
  switch (form) {
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_udata:
    case DW_FORM_sdata:
    case DW_FORM_implicit_const: return true;
    default: return false;
  }
}

bool is_c_size(std::uint64_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8;
}

/// An enumerator's value. Compilers write negative ones with a sign, others as a number without.
std::optional<std::int64_t> enumerator_value(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  if (dwarf_attr(&die, DW_AT_const_value, &attribute) == nullptr) return std::nullopt;
  const unsigned form = dwarf_whatform(&attribute);
  if (form != DW_FORM_sdata && form != DW_FORM_implicit_const) {
    const auto number = dwarf_number(die, DW_AT_const_value);
    return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
  }
  Dwarf_Sword value = 0;
  if (dwarf_formsdata(&attribute, &value) != 0) return std::nullopt;
  return value;
}

/// The offset of a member in bits. DWARF 3 counts bit-fields from the highest bit of the unit that
/// has them.
std::optional<std::uint64_t> bit_offset_of(Dwarf_Die& die, std::uint64_t width) {
  if (const auto bits = dwarf_number(die, DW_AT_data_bit_offset)) return bits;
  const std::uint64_t bytes = dwarf_number(die, DW_AT_data_member_location).value_or(0);
  if (dwarf_hasattr(&die, DW_AT_data_member_location) != 0 &&
      !dwarf_number(die, DW_AT_data_member_location)) {
    return std::nullopt;  // an expression: of a virtual base class
  }
  if (bytes > std::numeric_limits<std::uint32_t>::max() / 8) return std::nullopt;
  if (dwarf_hasattr(&die, DW_AT_bit_offset) == 0) return bytes * 8;
  Dwarf_Attribute attribute;
  Dwarf_Sword from_top = 0;
  const auto unit = dwarf_number(die, DW_AT_byte_size);
  if (!unit || *unit > 16 || dwarf_attr(&die, DW_AT_bit_offset, &attribute) == nullptr ||
      dwarf_formsdata(&attribute, &from_top) != 0 || from_top < -128 || from_top > 128) {
    return std::nullopt;
  }
  return (bytes + *unit) * 8 - width - static_cast<std::uint64_t>(from_top);
}

/// The elements of one dimension; 0 where the program does not say, or computes it.
std::uint64_t count_of(Dwarf_Die& range) {
  if (const auto count = dwarf_number(range, DW_AT_count)) return *count;
  const auto last = dwarf_number(range, DW_AT_upper_bound);
  return last ? *last + 1 - dwarf_number(range, DW_AT_lower_bound).value_or(0) : 0;
}

/// A declaration may name its definition, in a type unit.
Dwarf_Die definition_of(Dwarf_Die die) {
  return dwarf_reference(die, DW_AT_signature).value_or(die);
}

}  // namespace

std::optional<Dwarf_Die> dwarf_reference(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute found;
  Dwarf_Die target;
  if (dwarf_attr(&die, attribute, &found) == nullptr ||
      dwarf_formref_die(&found, &target) == nullptr) {
    return std::nullopt;
  }
  return target;
}

std::optional<std::uint64_t> dwarf_number(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute found;
  Dwarf_Word value = 0;
  if (dwarf_attr(&die, attribute, &found) == nullptr || !is_constant_form(dwarf_whatform(&found)) ||
      dwarf_formudata(&found, &value) != 0) {
    return std::nullopt;
  }
  return value;
}

bool dwarf_flag(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute found;
  bool is_set = false;
  return dwarf_attr(&die, attribute, &found) != nullptr && dwarf_formflag(&found, &is_set) == 0 &&
         is_set;
}

std::string dwarf_name(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute found;
  if (dwarf_attr(&die, attribute, &found) == nullptr) return {};
  const char* const text = dwarf_formstring(&found);
  if (text == nullptr) return {};
  return printable(std::string_view(text, strnlen(text, kLongestTypeName)));
}

TypeId DwarfTypeReader::type_of(Dwarf_Die die) {
  return nested_type_of(die, 0);
}

TypeId DwarfTypeReader::type_at(Dwarf_Die& die) {
  const auto target = dwarf_reference(die, DW_AT_type);
  return target ? type_of(*target) : TypeId{};
}

TypeId DwarfTypeReader::nested_type_of(Dwarf_Die die, unsigned depth) {
  die = definition_of(die);
  if (const auto known = ids_.find(die.addr); known != ids_.end()) return known->second;
  is_full_ |= ids_.size() >= kMostTypes;
  if (is_full_ || depth > kMostPointersInARow) return {};
  ids_.emplace(die.addr, TypeId{});  // where entries refer to each other in a circle
  TypeId id;
  switch (dwarf_tag(&die)) {
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type: id = pointer(die, depth); break;
    case DW_TAG_atomic_type:
    case DW_TAG_immutable_type:
    case DW_TAG_packed_type:
    case DW_TAG_shared_type: {
      const auto target = dwarf_reference(die, DW_AT_type);
      if (target) id = nested_type_of(*target, depth + 1);
      break;
    }
    case DW_TAG_base_type: id = base_type(die); break;
    case DW_TAG_unspecified_type:
      if (dwarf_name(die, DW_AT_name).find("nullptr") != std::string::npos) {
        id = graph_.user_pointer_to({});
      }
      break;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_interface_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_array_type:
    case DW_TAG_typedef:
    case DW_TAG_template_alias:
    case DW_TAG_const_type:
    case DW_TAG_volatile_type:
    case DW_TAG_restrict_type:
    case DW_TAG_subroutine_type:
    case DW_TAG_ptr_to_member_type:
      id = graph_.append(Type{.kind = TypeKind::Forward});
      pending_.push_back({die, id});
      break;
    default: id = opaque(die);
  }
  ids_[die.addr] = id;
  return id;
}

TypeId DwarfTypeReader::pointer(Dwarf_Die& die, unsigned depth) {
  if (dwarf_number(die, DW_AT_byte_size).value_or(8) != 8) return opaque(die);
  const auto target = dwarf_reference(die, DW_AT_type);
  return graph_.user_pointer_to(target ? nested_type_of(*target, depth + 1) : TypeId{});
}

/// One that D has as well is D's own.
TypeId DwarfTypeReader::base_type(Dwarf_Die& die) {
  const std::uint64_t size = dwarf_number(die, DW_AT_byte_size).value_or(0);
  const std::uint64_t encoding = dwarf_number(die, DW_AT_encoding).value_or(0);
  const std::string name = dwarf_name(die, DW_AT_name);
  Type type{.kind = TypeKind::Integer, .name = name, .size = size};
  switch (encoding) {
    case DW_ATE_boolean: break;
    case DW_ATE_signed_char: type.is_char = size == 1; [[fallthrough]];
    case DW_ATE_signed: type.is_signed = true; break;
    case DW_ATE_unsigned_char: type.is_char = size == 1; break;
    case DW_ATE_UTF:
    case DW_ATE_address:
    case DW_ATE_unsigned: break;
    case DW_ATE_float:
      type.kind = TypeKind::Float;
      type.is_signed = true;
      if (size != 4 && size != 8 && name != "long double") return opaque(die);
      break;
    case DW_ATE_complex_float: return complex_type(die);
    default: return opaque(die);
  }
  if (!is_c_size(size) && size != 16) return opaque(die);
  const auto known = graph_.find(encoding == DW_ATE_boolean ? std::string_view("_Bool") : name);
  if (known) {
    const Type& other = graph_[*known];
    if (other.kind == type.kind && other.size == size && other.is_signed == type.is_signed) {
      return *known;
    }
  }
  return graph_.add(type);
}

TypeId DwarfTypeReader::complex_type(Dwarf_Die& die) {
  const std::uint64_t size = dwarf_number(die, DW_AT_byte_size).value_or(0);
  const auto part = graph_.find(size == 8 ? "float" : "double");
  if ((size != 8 && size != 16) || !part) return opaque(die);
  const std::array members = {Member{"real", *part, 0, 0},
                              Member{"imaginary", *part, static_cast<std::uint32_t>(size) * 4, 0}};
  return graph_.add_struct(TypeKind::Struct, dwarf_name(die, DW_AT_name), size, members);
}

/// Of it only the size is known.
TypeId DwarfTypeReader::opaque(Dwarf_Die& die) {
  const std::uint64_t size = dwarf_number(die, DW_AT_byte_size).value_or(0);
  if (size == 0) return {};
  const TypeId id = graph_.add_struct(TypeKind::Struct, dwarf_name(die, DW_AT_name), size, {});
  traits_[id.value].is_opaque = true;
  return id;
}

bool DwarfTypeReader::complete() {
  while (!pending_.empty()) {
    const Pending next = pending_.back();
    pending_.pop_back();
    fill(next);
  }
  for (Fields& each : std::exchange(fields_, {})) commit(std::move(each));
  return !is_full_;
}

bool DwarfTypeReader::take_part() {
  is_full_ |= parts_ >= kMostParts;
  if (!is_full_) ++parts_;
  return !is_full_;
}

void DwarfTypeReader::fill(const Pending& pending) {
  Dwarf_Die die = pending.die;
  const TypeId id = pending.id;
  const auto replace = [&](TypeKind kind) {
    const std::string_view name = graph_.intern(dwarf_name(die, DW_AT_name));
    const TypeId target = type_at(die);
    graph_.replace(id, Type{.kind = kind, .name = name, .target = target});
  };
  switch (dwarf_tag(&die)) {
    case DW_TAG_union_type: return fill_struct(die, id, TypeKind::Union);
    case DW_TAG_enumeration_type: return fill_enum(die, id);
    case DW_TAG_array_type: return fill_array(die, id);
    case DW_TAG_typedef:
    case DW_TAG_template_alias: return replace(TypeKind::Typedef);
    case DW_TAG_const_type: return replace(TypeKind::Const);
    case DW_TAG_volatile_type: return replace(TypeKind::Volatile);
    case DW_TAG_restrict_type: return replace(TypeKind::Restrict);
    case DW_TAG_subroutine_type: return fill_function(die, id);
    case DW_TAG_ptr_to_member_type: {
      auto target = dwarf_reference(die, DW_AT_type);
      const TypeId word = graph_.find("long").value_or(TypeId{});
      if (!target || dwarf_tag(&*target) != DW_TAG_subroutine_type) {
        return graph_.replace(id, Type{.kind = TypeKind::Typedef, .target = word});
      }
      return commit({id,
                     Type{.kind = TypeKind::Struct, .size = 16},
                     {Member{"function", word, 0, 0}, Member{"adjustment", word, 64, 0}}});
    }
    default: return fill_struct(die, id, TypeKind::Struct);
  }
}

void DwarfTypeReader::fill_struct(Dwarf_Die& die, TypeId id, TypeKind kind) {
  Fields fields{.id = id, .type = {}, .members = {}};
  const std::string_view name = graph_.intern(dwarf_name(die, DW_AT_name));
  const auto size = dwarf_number(die, DW_AT_byte_size);
  if (dwarf_flag(die, DW_AT_declaration) || !size) {
    return graph_.replace(
        id, Type{.kind = TypeKind::Forward, .is_union = kind == TypeKind::Union, .name = name});
  }
  fields.type = Type{.kind = kind, .name = name, .size = *size};
  graph_.replace(id, fields.type);
  TypeTraits facts;
  facts.alignment = dwarf_number(die, DW_AT_alignment).value_or(0);
  if (dwarf_hasattr(&die, DW_AT_containing_type) != 0) {
    facts.passing = TypeTraits::Passing::ByReference;
  }
  const auto convention = dwarf_number(die, DW_AT_calling_convention);
  if (convention == DW_CC_pass_by_value) facts.passing = TypeTraits::Passing::ByValue;
  if (convention == DW_CC_pass_by_reference) facts.passing = TypeTraits::Passing::ByReference;
  if (facts.alignment != 0 || facts.passing != TypeTraits::Passing::ByShape) {
    traits_[id.value] = facts;
  }
  for_each_child(die, children_, [&](Dwarf_Die& part) { add_part_of_struct(part, die, fields); });
  is_full_ |= children_ == 0;
  fields_.push_back(std::move(fields));
}

void DwarfTypeReader::add_part_of_struct(Dwarf_Die& part, Dwarf_Die& owner, Fields& fields) {
  switch (dwarf_tag(&part)) {
    case DW_TAG_member:
      if (dwarf_flag(part, DW_AT_external) || dwarf_flag(part, DW_AT_declaration)) return;
      if (const auto alignment = dwarf_number(part, DW_AT_alignment)) {
        std::uint64_t& known = traits_[fields.id.value].alignment;
        known = std::max(known, *alignment);
      }
      return add_member(part, dwarf_name(part, DW_AT_name), fields.members);
    case DW_TAG_inheritance: {
      if (dwarf_number(part, DW_AT_virtuality).value_or(0) != 0) {
        return decide_passing(fields.id, TypeTraits::Passing::ByReference);
      }
      auto base = dwarf_reference(part, DW_AT_type);
      if (base) base = definition_of(*base);
      return add_member(part, base ? dwarf_name(*base, DW_AT_name) : "", fields.members);
    }
    case DW_TAG_variant_part: return add_variants(part, fields);
    case DW_TAG_subprogram: return note_special_function(part, owner, fields.id);
    default: return;
  }
}

void DwarfTypeReader::add_member(Dwarf_Die& die, const std::string& name,
                                 std::vector<Member>& members) {
  const std::uint64_t width = dwarf_number(die, DW_AT_bit_size).value_or(0);
  const auto offset = bit_offset_of(die, width);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (!offset || *offset > kMost || width > 64 || !take_part()) return;
  const TypeId type = type_at(die);
  members.push_back({graph_.intern(name), type, static_cast<std::uint32_t>(*offset),
                     static_cast<std::uint32_t>(width)});
}

/// Which of the variants is there, the program knows by the discriminant.
void DwarfTypeReader::add_variants(Dwarf_Die& die, Fields& fields) {
  Fields variants{.id = {}, .type = fields.type, .members = {}};
  variants.type.kind = TypeKind::Union;
  variants.type.name = {};
  for_each_child(die, children_, [&](Dwarf_Die& part) {
    if (dwarf_tag(&part) == DW_TAG_member) {
      const std::string name = dwarf_name(part, DW_AT_name);
      add_member(part, name.empty() ? "discriminant" : name, fields.members);
    }
    if (dwarf_tag(&part) != DW_TAG_variant) return;
    for_each_child(part, children_, [&](Dwarf_Die& one) {
      if (dwarf_tag(&one) != DW_TAG_member) return;
      add_member(one, dwarf_name(one, DW_AT_name), variants.members);
    });
  });
  if (variants.members.empty() || !take_part()) return;
  variants.id = graph_.append(variants.type);
  fields.members.push_back({{}, variants.id, 0, 0});
  fields_.push_back(std::move(variants));
}

void DwarfTypeReader::decide_passing(TypeId id, TypeTraits::Passing passing) {
  TypeTraits::Passing& known = traits_[id.value].passing;
  if (known == TypeTraits::Passing::ByShape || known == TypeTraits::Passing::Unknown) {
    known = passing;
  }
}

/// A class with a copy or move constructor or a destructor of its own is passed by reference, and
/// so is one with virtual functions. The compiler's own functions may do nothing: GCC does not say.
void DwarfTypeReader::note_special_function(Dwarf_Die& function, Dwarf_Die& owner, TypeId id) {
  using Passing = TypeTraits::Passing;
  const std::string name = dwarf_name(function, DW_AT_name);
  const std::string of_class = dwarf_name(owner, DW_AT_name);
  bool is_special = name.starts_with('~');
  if (!name.empty() && name == of_class.substr(0, of_class.find('<'))) {
    for_each_child(function, children_, [&](Dwarf_Die& parameter) {
      if (dwarf_flag(parameter, DW_AT_artificial)) return;
      auto type = dwarf_reference(parameter, DW_AT_type);
      const int tag = type ? dwarf_tag(&*type) : 0;
      if (tag != DW_TAG_reference_type && tag != DW_TAG_rvalue_reference_type) return;
      type = dwarf_reference(*type, DW_AT_type);
      if (type && dwarf_tag(&*type) == DW_TAG_const_type) type = dwarf_reference(*type, DW_AT_type);
      is_special |= type && definition_of(*type).addr == owner.addr;
    });
  }
  if (dwarf_number(function, DW_AT_virtuality).value_or(0) != 0) {
    decide_passing(id, Passing::ByReference);
  }
  if (!is_special) return;
  const bool is_own = !dwarf_flag(function, DW_AT_artificial) &&
                      !dwarf_flag(function, DW_AT_deleted) &&
                      dwarf_hasattr(&function, DW_AT_defaulted) == 0;
  decide_passing(id, is_own ? Passing::ByReference : Passing::Unknown);
}

/// A member that does not fit into the structure is left out.
void DwarfTypeReader::commit(Fields fields) {
  fields.type.first = graph_.member_count();
  for (const Member& member : fields.members) {
    const std::uint64_t bits =
        member.bit_width != 0 ? member.bit_width : graph_.size_of(member.type) * 8;
    const bool fits =
        bits / 8 <= fields.type.size && member.bit_offset + bits <= fields.type.size * 8;
    if (fits) {
      graph_.append_member(member);
    } else {
      traits_[fields.id.value].is_opaque = true;
    }
  }
  fields.type.length = graph_.member_count() - fields.type.first;
  graph_.replace(fields.id, fields.type);
}

void DwarfTypeReader::fill_enum(Dwarf_Die& die, TypeId id) {
  const std::uint64_t size = dwarf_number(die, DW_AT_byte_size).value_or(0);
  Type type{.kind = TypeKind::Enum,
            .name = graph_.intern(dwarf_name(die, DW_AT_name)),
            .size = is_c_size(size) ? size : 0,
            .first = graph_.enumerator_count()};
  for_each_child(die, children_, [&](Dwarf_Die& each) {
    const auto value =
        dwarf_tag(&each) == DW_TAG_enumerator ? enumerator_value(each) : std::nullopt;
    if (!value || !take_part()) return;
    type.is_signed |= *value < 0;
    graph_.append_enumerator({graph_.intern(dwarf_name(each, DW_AT_name)), *value});
  });
  type.length = graph_.enumerator_count() - type.first;
  if (const auto integer = dwarf_reference(die, DW_AT_type)) {
    const Type& underlying = graph_[graph_.resolve(type_of(*integer))];
    if (underlying.kind == TypeKind::Integer) type.is_signed = underlying.is_signed;
  }
  graph_.replace(id, type);
}

void DwarfTypeReader::fill_array(Dwarf_Die& die, TypeId id) {
  std::vector<std::uint32_t> counts;
  bool is_told = dwarf_hasattr(&die, DW_AT_byte_stride) == 0 &&
                 dwarf_hasattr(&die, DW_AT_bit_stride) == 0 &&
                 dwarf_hasattr(&die, DW_AT_data_location) == 0;
  for_each_child(die, children_, [&](Dwarf_Die& range) {
    if (dwarf_tag(&range) != DW_TAG_subrange_type) return;
    const std::uint64_t count = count_of(range);
    is_told &= count <= std::numeric_limits<std::uint32_t>::max();
    if (counts.size() < kMostDimensions) counts.push_back(static_cast<std::uint32_t>(count));
  });
  if (counts.empty()) counts.push_back(0);
  traits_[id.value] = {.is_opaque = !is_told, .is_vector = dwarf_flag(die, DW_AT_GNU_vector)};
  TypeId element = type_at(die);
  for (std::size_t n = counts.size() - 1; n > 0; --n) element = graph_.array_of(element, counts[n]);
  graph_.replace(
      id, Type{.kind = TypeKind::Array, .target = element, .count = is_told ? counts.front() : 0});
}

void DwarfTypeReader::fill_function(Dwarf_Die& die, TypeId id) {
  Type type{.kind = TypeKind::Function, .target = type_at(die)};
  std::vector<Parameter> parameters;
  for_each_child(die, children_, [&](Dwarf_Die& each) {
    type.is_variadic |= dwarf_tag(&each) == DW_TAG_unspecified_parameters;
    if (dwarf_tag(&each) != DW_TAG_formal_parameter || !take_part()) return;
    parameters.push_back({graph_.intern(dwarf_name(each, DW_AT_name)), type_at(each)});
  });
  type.first = graph_.parameter_count();
  type.length = static_cast<std::uint32_t>(parameters.size());
  for (const Parameter& each : parameters) graph_.append_parameter(each);
  graph_.replace(id, type);
}

}  // namespace ringside::guest_linux
