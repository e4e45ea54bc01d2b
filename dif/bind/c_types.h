// Questions about C types that compiling and binding share: sizes, characters, and the properties
// that two kernels' types must have in common for the same code to serve both. Used by dif/d and by
// this folder.
#pragma once

#include <cstdint>
#include <string>

#include "vmm/base/c_type.h"

namespace ringside::dif {

/// Bytes of a value; 0 when incomplete. A string, and each in an array of them, has `string_size`.
std::uint64_t value_size(const TypeGraph& graph, TypeId id, std::uint32_t string_size);
/// An integer of one byte that is a character: char, signed char, unsigned char.
bool is_character(const TypeGraph& graph, TypeId id);
/// As the definition with the same name, where `id` is a struct or union that is declared only:
/// modules declare what another part of the kernel defines.
TypeId defined(const TypeGraph& graph, TypeId id);
/// The properties that code relies on when it works with a value of this type, spelled as C,
/// without typedefs: kind, size and sign of numbers, and the names of what pointers point at.
/// Arrays have no length, as neither elements nor their addresses depend on it: "unsigned int",
/// "struct file *", "char []". Text is text, though Linux has had unsigned characters since 6.2: a
/// pointer or array of plain characters holds "char".
std::string type_text(const TypeGraph& graph, TypeId id);

}  // namespace ringside::dif
