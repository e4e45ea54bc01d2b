// The bytes to write for one instruction, which must be written together, and a check whether they
// are there.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/check.h"
#include "vmm/base/guest_reader.h"
#include "vmm/code_writer.h"
#include "vmm/shim/jump_record.h"

namespace ringside::providers {

inline void append_code(std::vector<vmm::VirtualCodeWrite>& writes, GuestVirt at,
                        std::span<const std::byte> code) {
  for (std::size_t n = 0; n < code.size(); ++n) {
    writes.push_back({at.wrapping_add(n), std::to_integer<std::uint8_t>(code[n]), n != 0});
  }
}

/// Whether these bytes stand at `at`; at most as many as a jump displaces.
inline bool has_bytes(const GuestReader& reader, GuestVirt at,
                      std::span<const std::byte> expected) {
  std::array<std::byte, arch::kLongestInstruction + SHIM_JUMP_BYTES> now;
  CHECK(expected.size() <= now.size());
  const auto bytes = std::span(now).first(expected.size());
  return reader.read(at, bytes) && std::ranges::equal(bytes, expected);
}

}  // namespace ringside::providers
