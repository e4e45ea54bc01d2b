#include "disasm/capstone_decoder.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <algorithm>

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

}  // namespace ringside::disasm
