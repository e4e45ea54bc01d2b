// Compiled programs as files: DOF, the container that DTrace publishes (docs/dof.md says what is in
// it). Written by `compile -o`, read before a program runs elsewhere. A file's bytes are hostile:
// read_dof() answers with a program whose every index was checked against its table and whose every
// enumerator exists; verify_program() checks what the program means.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::dif {

inline constexpr std::size_t kMostDofBytes = 8 << 20;  // DTrace's limit, and ours for reading

/// Everything of the program; read_dof() of the answer equals it. An empty answer: it would be
/// larger than kMostDofBytes.
std::vector<std::byte> write_dof(const Program& program);
/// The error says which rule the bytes break: "DOF: section 3 is truncated".
Result<Program> read_dof(std::span<const std::byte> bytes);

}  // namespace ringside::dif
