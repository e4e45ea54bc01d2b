// A guest for the tests of health reports: sparse kernel memory and a kernel whose types, symbols
// and CPUs the test makes. Structures are declared as they are used, with the members that a real
// kernel has. Not linked into the product.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::guest_linux::fakes {

class HealthKernel final : public InertKernel {
 public:
  struct Member {
    std::string_view name;
    std::string_view type;    // "unsigned long", or the name of a structure that is declared
    std::uint32_t offset;     // bytes
    std::uint32_t count = 0;  // of an array
  };

  TypeId structure(std::string_view name, std::uint64_t size,
                   std::initializer_list<Member> members) {
    std::vector<ringside::Member> all;
    for (const Member& member : members) {
      const auto named = types_.find(TypeKind::Struct, member.type);
      TypeId type = named ? *named : types_.find(member.type).value_or(TypeId());
      if (member.count != 0) type = types_.array_of(type, member.count);
      all.push_back({types_.intern(member.name), type, member.offset * 8, 0});
    }
    const TypeId id = types_.add_struct(TypeKind::Struct, types_.intern(name), size, all);
    types_.index(id);
    return id;
  }
  void symbol(std::string_view name, std::uint64_t address, char type = 'd') {
    Symbol symbol;
    symbol.address = GuestVirt(address);
    symbol.name = kept_.emplace_back(name);
    symbol.type = type;
    wanted_.push_back(symbol);
  }
  /// After the last symbol.
  void seal() {
    symbols_.add_module({.name = "vmlinux", .text_base = GuestVirt(kText), .text_size = 1 << 20},
                        wanted_);
    symbols_.seal();
  }
  std::span<const std::uint64_t> percpu_bases() const override { return bases; }

  static constexpr std::uint64_t kText = 0xffff'ffff'8100'0000;
  std::vector<std::uint64_t> bases{0xffff'8880'1000'0000, 0xffff'8880'2000'0000};

 private:
  std::deque<std::string> kept_;
  std::vector<Symbol> wanted_;
};

}  // namespace ringside::guest_linux::fakes
