#include "disasm/cross_check.h"

#include "disasm/capstone_decoder.h"
#include "disasm/decoder.h"

namespace ringside::disasm {
namespace {

/// 0f b9, after any prefixes.
bool is_ud1(std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    if (bytes[i] == std::byte{0x0f}) return bytes[i + 1] == std::byte{0xb9};
  }
  return false;
}

}  // namespace

void CrossCheck::add(const CrossCheck& other) {
  instructions += other.instructions;
  neither += other.neither;
  zydis_only += other.zydis_only;
  capstone_only += other.capstone_only;
  ud1 += other.ud1;
  unexplained.insert(unexplained.end(), other.unexplained.begin(), other.unexplained.end());
}

CrossCheck cross_check(std::span<const std::byte> text, GuestVirt address) {
  CrossCheck result;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto rest = text.subspan(at);
    const GuestVirt here = address.wrapping_add(at);
    const auto ours = decode(rest, here);
    const auto theirs = capstone_length(rest, here);
    if (ours && theirs) {
      ++result.instructions;
      if (ours->length != *theirs) {
        if (is_ud1(rest.first(ours->length))) {
          ++result.ud1;
        } else {
          result.unexplained.push_back({here, ours->length, *theirs});
        }
      }
    } else if (ours) {
      ++result.zydis_only;
    } else if (theirs) {
      ++result.capstone_only;
    } else {
      ++result.neither;
    }
    at += ours ? ours->length : theirs.value_or(1);
  }
  return result;
}

}  // namespace ringside::disasm
