// A value of a C type as a tree: structures by their members' names. Structured output and
// libringside show values so. Does not: read the guest.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/output/structured_writer.h"
#include "cli/output/values.h"
#include "dif/program/program.h"

namespace ringside::cli {

/// The value of shape number `shape`, which is one of `shapes`. Pointers are texts in hexadecimal,
/// enumerators are names. Parts that `bytes` does not hold are null. `bit_offset` and `bit_width`
/// are those of a bit-field in the bytes; width 0: it is none.
Tree shape_tree(const std::vector<dif::TypeShape>& shapes, std::uint32_t shape, Bytes bytes,
                std::uint32_t bit_offset = 0, std::uint32_t bit_width = 0);

}  // namespace ringside::cli
