// In this file, top to bottom: Capstone, the comparison.
#include "disasm/cross_check.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <algorithm>

#include "disasm/decoder.h"
#include "vmm/arch/arch.h"

namespace ringside::disasm {
namespace {

/// One Capstone handle and instruction buffer a thread: opening costs more than decoding.
class Capstone {
 public:
  Capstone() {
    if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle_) == CS_ERR_OK) insn_ = cs_malloc(handle_);
  }
  Capstone(const Capstone&) = delete;
  Capstone& operator=(const Capstone&) = delete;
  ~Capstone() {
    if (insn_ != nullptr) cs_free(insn_, 1);
    if (handle_ != 0) cs_close(&handle_);
  }

  /// Null when it does not decode; else valid until the next call.
  const cs_insn* decode(std::span<const std::byte> bytes, GuestVirt address) {
    if (insn_ == nullptr) return nullptr;
    // SAFETY: bytes are bytes; Capstone only names them differently.
    const auto* code = reinterpret_cast<const std::uint8_t*>(bytes.data());
    std::size_t size = std::min(bytes.size(), arch::kLongestInstruction);
    std::uint64_t at = address.raw();
    return cs_disasm_iter(handle_, &code, &size, &at, insn_) ? insn_ : nullptr;
  }

 private:
  csh handle_ = 0;
  cs_insn* insn_ = nullptr;
};

Capstone& capstone_of_this_thread() {
  thread_local Capstone capstone;
  return capstone;
}

/// 0f b9, after any prefixes.
bool is_ud1(std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    if (bytes[i] == std::byte{0x0f}) return bytes[i + 1] == std::byte{0xb9};
  }
  return false;
}

}  // namespace

std::string to_text(std::span<const std::byte> bytes, GuestVirt address) {
  const cs_insn* in = capstone_of_this_thread().decode(bytes, address);
  if (in == nullptr) return {};
  if (in->op_str[0] == '\0') return in->mnemonic;
  return fmt::format("{} {}", in->mnemonic, in->op_str);
}

std::optional<std::uint8_t> capstone_length(std::span<const std::byte> bytes, GuestVirt address) {
  const cs_insn* in = capstone_of_this_thread().decode(bytes, address);
  if (in == nullptr) return std::nullopt;
  return static_cast<std::uint8_t>(in->size);
}

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
