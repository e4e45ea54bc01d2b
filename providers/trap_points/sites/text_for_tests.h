// A page of kernel text for tests: functions are put there as bytes and named.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

#include "disasm/code_for_tests.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

inline constexpr std::uint64_t kBase = 0xffffffff81000000;

/// One page of text at kBase, int3 where nothing was put; named functions on it.
class Text final : public GuestReader {
 public:
  Text() : bytes_(4096, std::byte{0xcc}) {}

  Text& put(std::uint64_t offset, const std::vector<std::byte>& what) {
    std::copy(what.begin(), what.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    return *this;
  }
  /// A rel32 at `offset` + `skip` that reaches `target` when the instruction ends after it.
  Text& put_branch(std::uint64_t offset, std::initializer_list<int> opcode, std::uint64_t target) {
    put(offset, disasm::code(opcode));
    const auto distance = static_cast<std::int32_t>(target - (offset + opcode.size() + 4));
    std::memcpy(bytes_.data() + offset + opcode.size(), &distance, 4);
    return *this;
  }
  /// A trampoline that ftrace has made: readable, and no symbol covers it.
  void map(std::uint64_t offset) { trampoline_ = kBase + offset; }
  Text& name(std::uint64_t offset, const char* name) {
    symbols_.push_back({GuestVirt(kBase + offset), 0, name, 't', 0});
    return *this;
  }
  guest_linux::SymbolTable& table() {
    if (table_.modules().empty()) {
      table_.add_module({"vmlinux", GuestVirt(kBase), 4096, 0}, symbols_);
      table_.seal();
    }
    return table_;
  }
  const guest_linux::Symbol& symbol(const char* name) { return *table().find(name); }

  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t address = at.raw() + i;
      if (address == trampoline_) {
        out[i] = std::byte{0x90};
        continue;
      }
      if (address < kBase || address - kBase >= bytes_.size()) {
        return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, address});
      }
      out[i] = bytes_[address - kBase];
    }
    return {};
  }

 private:
  std::vector<std::byte> bytes_;
  std::uint64_t trampoline_ = 0;
  std::vector<guest_linux::Symbol> symbols_;
  guest_linux::SymbolTable table_;
};

}  // namespace ringside::providers
