// Instructions as bytes, for tests of this folder and of what decodes with it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "vmm/base/address.h"

namespace ringside::disasm {

/// Where the instructions of tests lie, unless a test says where.
inline constexpr GuestVirt kHere{0xffff'ffff'8100'0000};

inline std::vector<std::byte> code(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

}  // namespace ringside::disasm
