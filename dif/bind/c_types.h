// Questions about C types that compiling and binding share: sizes, characters, and whether the
// types of two kernels are alike enough for the same code. Used by dif/d and by this folder.
#pragma once

#include <cstdint>
#include <string>

#include "vmm/base/c_type.h"

namespace ringside::dif {

/// Bytes of a value; 0 when incomplete. A string, and each in an array of them, has `string_size`.
std::uint64_t value_size(const TypeGraph& graph, TypeId id, std::uint32_t string_size);
/// An integer of one byte that is a character: char, signed char, unsigned char.
bool is_character(const TypeGraph& graph, TypeId id);
/// The definition with the same name, if `id` is a struct or union that is only declared: modules
/// declare types that another part of the kernel defines. Otherwise `id`.
TypeId defined(const TypeGraph& graph, TypeId id);
/// The properties that code relies on when it works with a value of this type, spelled as C,
/// without typedefs: kind, size and sign of numbers, and the names of what pointers point at.
/// Arrays have no length, because neither elements nor their addresses depend on it: "unsigned
/// int", "struct file *", "char []". A pointer to plain characters, or an array of them, is "char",
/// also since Linux 6.2 made them unsigned.
std::string type_text(const TypeGraph& graph, TypeId id);

}  // namespace ringside::dif
