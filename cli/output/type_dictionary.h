// The types that a program declares, as text: what -x ctypes and -x dtypes write. docs/dtrace.md
// says what it looks like. Used by the session.
// Does not: list the types that were there before the program (built-in, or of the guest's BTF).
#pragma once

#include <cstddef>
#include <string>

#include "vmm/base/c_type.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// The structures, unions, enumerations and typedefs from type number `first` on, as C declarations
/// that a C compiler and D read: sizes and the members' offsets (in bytes, bit-fields' in bits)
/// stand in comments.
std::string c_dictionary(const TypeGraph& types, TypeId first);

/// The types that D made of them, a line each: "TYPE /* N bytes */", each spelling once. The first
/// line is `string`, whose size is `string_size` (strsize).
std::string d_dictionary(const TypeGraph& types, TypeId first, std::size_t string_size);

/// Writes the text to a file of this host, which is emptied first; errors name the file.
Result<void> write_dictionary(const std::string& path, const std::string& text);

}  // namespace ringside::cli
