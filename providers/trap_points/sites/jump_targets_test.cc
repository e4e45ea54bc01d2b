#include "providers/trap_points/sites/jump_targets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "disasm/code_for_tests.h"
#include "providers/trap_points/sites/text_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::providers {
namespace {

using disasm::code;
using guest_linux::Symbol;

constexpr GuestVirt at(std::uint64_t offset) {
  return GuestVirt(kBase + offset);
}

class TableKernel final : public guest_linux::InertKernel {
 public:
  TableKernel() : InertKernel(GuestPhys(0)) {}
  std::span<const PatchedSite> patched_sites() const override { return patched; }
  guest_linux::SymbolTable& symbols_to_fill() { return symbols_; }
  std::vector<PatchedSite> patched;
};

/// f: ftrace nop, a label that is off or what may fault, ret.
class JumpTargetsTest : public testing::Test {
 protected:
  JumpTargetsTest() {
    text_.put(0x000, code({0x0f, 0x1f, 0x44, 0, 0, 0x66, 0x90, 0x90, 0x90, 0xc3}));
  }
  using Names = std::initializer_list<std::pair<std::uint64_t, const char*>>;
  void name(Names names, char type = 't') {
    for (const auto& [offset, name] : names) symbols_.push_back({at(offset), 0, name, type, 0});
  }
  void add_label(std::uint64_t site, std::uint64_t target) {
    kernel_.patched.push_back({.address = at(site), .length = 2, .what = "jump label"});
    kernel_.patched.back().target = at(target);
  }
  void add_fixup(std::uint64_t site, std::uint64_t fixup) {
    kernel_.patched.push_back({.address = at(site), .length = 1, .what = "exception table"});
    kernel_.patched.back().fixup = at(fixup);
  }
  /// Of f. Empty: not known.
  std::optional<std::vector<GuestVirt>> targets() {
    auto& table = kernel_.symbols_to_fill();
    if (table.modules().empty()) {
      name({{0xff0, "end"}});
      std::ranges::stable_sort(symbols_, {}, &Symbol::address);
      table.add_module({"vmlinux", at(0), 0x1000, 0}, symbols_);
      table.seal();
    }
    std::ranges::sort(kernel_.patched, {}, &guest_linux::Kernel::PatchedSite::address);
    return JumpTargets(text_, kernel_).of(*table.find("f"));
  }
  bool leads_to(std::uint64_t offset) {
    const auto all = targets();
    return all && std::ranges::binary_search(*all, at(offset));
  }

  Text text_;
  TableKernel kernel_;
  std::vector<Symbol> symbols_;
};

TEST_F(JumpTargetsTest, AreSortedAndNotOnlyInside) {
  text_.put(0x005, code({0x75, 0x01, 0x90})).put_branch(0x008, {0xe9}, 0x200);
  text_.put_branch(0x00d, {0x0f, 0x84}, 0x006).put(0x013, code({0xc3}));
  name({{0x000, "f"}, {0x100, "g"}, {0x200, "h"}});

  EXPECT_EQ(targets(), (std::vector{at(0x006), at(0x008), at(0x200)}));
}

TEST_F(JumpTargetsTest, AreThoseOfAColdPartThatAJumpLeadsTo) {
  text_.put_branch(0x005, {0x0f, 0x85}, 0x800).put(0x00b, code({0x90, 0xc3}));
  text_.put_branch(0x800, {0xe9}, 0x00c);
  name({{0x000, "f"}, {0x100, "g"}, {0x800, "f.cold"}, {0x900, "h"}});

  EXPECT_TRUE(leads_to(0x00c));
}

TEST_F(JumpTargetsTest, AreThoseOfAColdPartThatOnlyALabelLeadsTo) {
  text_.put_branch(0x802, {0xe9}, 0x008);
  text_.put(0x800, code({0x66, 0x90}));
  name({{0x000, "f"}, {0x100, "g"}, {0x700, "other.cold"}, {0x900, "h"}});
  ASSERT_FALSE(leads_to(0x008)) << "whoever has the text, f does not lead there";
  add_label(0x005, 0x800);
  EXPECT_FALSE(targets()) << "it does not decode from its beginning";
  text_.put(0x700, std::vector(0x100, std::byte{0x90}));

  EXPECT_TRUE(leads_to(0x008));
  EXPECT_TRUE(leads_to(0x800));
}

TEST_F(JumpTargetsTest, AreThoseOfColdPartsByName) {
  text_.put_branch(0x700, {0xe9}, 0x007).put_branch(0x800, {0xe9}, 0x008);
  text_.put_branch(0x900, {0xe9}, 0x009);
  name({{0x000, "f"}, {0x000, "alias"}, {0x100, "g"}});
  name({{0x700, "f.cold"}, {0x800, "alias.cold.7"}, {0x900, "g.cold"}, {0xa00, "h"}});

  EXPECT_TRUE(leads_to(0x007));
  EXPECT_TRUE(leads_to(0x008));
  EXPECT_FALSE(leads_to(0x009)) << "another one's";
}

TEST_F(JumpTargetsTest, AreThoseOfWhateverALabelOfAPartLeadsTo) {
  text_.put(0x700, code({0x66, 0x90, 0xc3})).put_branch(0x800, {0xe9}, 0x008);
  name({{0x000, "f"}, {0x100, "g"}, {0x700, "f.cold"}, {0x710, "h"}});
  name({{0x800, "further"}, {0x900, "i"}});
  ASSERT_FALSE(leads_to(0x008));
  add_label(0x700, 0x800);

  EXPECT_TRUE(leads_to(0x008));
}

TEST_F(JumpTargetsTest, AreThoseOfAColdPartThatOnlyAFaultLeadsTo) {
  text_.put(0x700, code({0x90, 0x75, 0x05})).put_branch(0x703, {0xe9}, 0x007);
  text_.put_branch(0x708, {0xe9}, 0x008);
  name({{0x000, "f"}, {0x100, "g"}, {0x700, "named.cold"}, {0x800, "h"}});
  add_fixup(0x005, 0x701);

  EXPECT_TRUE(leads_to(0x007));
  EXPECT_TRUE(leads_to(0x008));
}

/// .fixup, before 5.17: mov $-14, %eax; jmp back; and then other functions' own.
TEST_F(JumpTargetsTest, AreWhereTheCodeAfterAFaultComesBack) {
  text_.put(0x700, code({0xb8, 0xf2, 0xff, 0xff, 0xff})).put_branch(0x705, {0xe9}, 0x008);
  text_.put(0x70a, code({0x06}));
  name({{0x000, "f"}, {0x100, "g"}, {0x600, "before"}, {0x800, "h"}});
  ASSERT_FALSE(leads_to(0x008));
  add_fixup(0x005, 0x700);

  EXPECT_TRUE(leads_to(0x008));
}

TEST_F(JumpTargetsTest, AreAlsoThoseBehindTheCodeAfterAFault) {
  text_.put(0x700, code({0x90, 0xc3})).put_branch(0x702, {0xe9}, 0x008);
  name({{0x000, "f"}, {0x100, "g"}, {0x700, "both"}, {0x707, "h"}});
  add_fixup(0x005, 0x700);
  ASSERT_FALSE(leads_to(0x008));
  add_label(0x007, 0x702);

  EXPECT_TRUE(leads_to(0x008));
}

TEST_F(JumpTargetsTest, AreWhereAFaultGoesOnInsideOfIt) {
  name({{0x000, "f"}, {0x100, "g"}});
  add_fixup(0x005, 0x008);
  add_label(0x005, 0x007);

  EXPECT_EQ(targets(), (std::vector{at(0x007), at(0x008)}));
}

TEST_F(JumpTargetsTest, AreUnknownWhereALabelLeadsWhereNoTextIs) {
  name({{0x000, "f"}, {0x100, "g"}, {0x900, "h"}});
  name({{0x800, "data"}}, 'd');
  for (const std::uint64_t target : {0x800u, 0x5000u}) {
    kernel_.patched.clear();
    add_label(0x005, target);
    EXPECT_FALSE(targets()) << target;
  }
}

TEST_F(JumpTargetsTest, AreUnknownWhereTheCodeAfterAFaultCannotBeFollowed) {
  text_.put(0x740, code({0xff, 0xe0})).put(0x750, code({0x0f, 0x0b})).put(0x760, code({0x06}));
  name({{0x000, "f"}, {0x100, "g"}, {0x800, "h"}});
  // A jump by a register; an end; no code; nothing that can be read.
  for (const std::uint64_t fixup : {0x740u, 0x750u, 0x760u, 0x5000u}) {
    kernel_.patched.clear();
    add_fixup(0x005, fixup);
    EXPECT_FALSE(targets()) << fixup;
  }
}

TEST_F(JumpTargetsTest, CodeAfterAFaultMayHaveSixteenInstructions) {
  text_.put(0x700, std::vector(16, std::byte{0x90})).put_branch(0x710, {0xe9}, 0x008);
  name({{0x000, "f"}, {0x100, "g"}, {0x800, "h"}});
  add_fixup(0x005, 0x701);
  EXPECT_TRUE(leads_to(0x008));

  kernel_.patched.back().fixup = at(0x700);

  EXPECT_FALSE(targets());
}

TEST_F(JumpTargetsTest, AreUnknownWithMoreThanAFunctionHas) {
  constexpr std::size_t kMost = 1 << 16;
  name({{0x000, "f"}, {0x100, "g"}});
  for (std::size_t n = 0; n < kMost; ++n) add_fixup(0x005, 0x008);
  EXPECT_TRUE(targets());

  add_fixup(0x005, 0x008);

  EXPECT_FALSE(targets());
}

TEST_F(JumpTargetsTest, AreUnknownWithMorePartsThanAFunctionHas) {
  constexpr std::uint64_t kMost = 255;  // beside the function
  text_.put(0x100, std::vector(kMost + 1, std::byte{0xc3}));
  name({{0x000, "f"}, {0x080, "g"}});
  for (std::uint64_t n = 0; n < kMost; ++n) add_fixup(0x005, 0x100 + n);
  EXPECT_TRUE(targets());

  add_fixup(0x005, 0x100 + kMost);

  EXPECT_FALSE(targets());
}

TEST_F(JumpTargetsTest, AreUnknownBesideJumpsByRegistersInAnyPart) {
  text_.put(0x700, code({0xff, 0xe0}));
  name({{0x000, "f"}, {0x100, "g"}, {0x700, "f.cold"}, {0x800, "h"}});

  EXPECT_FALSE(targets());
}

}  // namespace
}  // namespace ringside::providers
