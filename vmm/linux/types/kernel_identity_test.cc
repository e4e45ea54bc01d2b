#include "vmm/linux/types/kernel_identity.h"

#include <gtest/gtest.h>

#include <cstring>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::kText;

constexpr std::uint64_t kNotes = 0xffff'ffff'8200'0000, kTypes = 0xffff'ffff'8300'0000;

class FakeKernel final : public InertKernel {
 public:
  using InertKernel::symbols_;
};

std::vector<std::byte> note(std::uint32_t type, std::string_view name,
                            std::vector<std::uint8_t> text) {
  fakes::Bytes bytes;
  bytes.add(static_cast<std::uint32_t>(name.size() + 1));
  bytes.add(static_cast<std::uint32_t>(text.size())).add(type);
  std::string padded(name);
  padded.resize((name.size() + 4) / 4 * 4);
  bytes.add_bytes(std::as_bytes(std::span(padded)));
  text.resize((text.size() + 3) / 4 * 4);
  bytes.add_bytes(std::as_bytes(std::span(text)));
  return bytes.bytes();
}

class KernelIdentity : public ::testing::Test {
 protected:
  void notes(std::vector<std::byte> bytes) {
    notes_ = std::move(bytes);
    guest_.put_bytes(kNotes, notes_);
  }
  void types(std::string_view text) {
    types_ = text;
    guest_.put_bytes(kTypes, std::as_bytes(std::span(types_)));
  }
  std::optional<KernelPartIdentity> of(std::string_view module, std::uint64_t slide = 0) {
    FakeKernel kernel;
    const auto symbol = [&](std::string_view name, std::uint64_t at) {
      return Symbol{.address = GuestVirt(at), .name = name, .type = 'D'};
    };
    kernel.symbols_.add_module(
        {.name = "vmlinux", .text_base = GuestVirt(kText + slide)},
        {symbol("__start_notes", kNotes), symbol("__stop_notes", kNotes + notes_.size()),
         symbol("__start_BTF", kTypes), symbol("__stop_BTF", kTypes + types_.size())});
    kernel.symbols_.add_module({.name = "loop", .text_base = GuestVirt(0)},
                               {symbol("lo_open", 0xffff'ffff'c000'0000 + slide)});
    kernel.symbols_.seal();
    return identify(kernel, guest_, module);
  }

  fakes::SparseGuest guest_;
  std::vector<std::byte> notes_;
  std::string types_;
};

std::vector<std::byte> joined(std::vector<std::byte> a, const std::vector<std::byte>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(KernelIdentity, TheBuildIdIsTheNoteOfThatName) {
  notes(joined(joined(note(1, "Linux", {1, 2, 3, 4, 5}), note(3, "Xen", {9})),
               note(3, "GNU", {0xab, 0xcd, 0x01})));
  types("types");

  const auto identity = of("vmlinux");

  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->build, "abcd01");
  EXPECT_EQ(identity->types, 0xbb7a'cfef'aad7'b3baU) << "FNV-1a of \"types\"";
}

TEST_F(KernelIdentity, WithoutANoteItIsToldByItsNames) {
  const auto identity = of("vmlinux"), moved = of("vmlinux", 0x1000);
  ASSERT_TRUE(identity && moved);
  EXPECT_TRUE(identity->build.starts_with("names-")) << identity->build;
  EXPECT_EQ(identity->build, moved->build);
  EXPECT_EQ(identity->types, 0u);
}

TEST_F(KernelIdentity, AModuleIsToldByItsNames) {
  const auto here = of("loop"), there = of("loop", 0x1000);
  ASSERT_TRUE(here && there);
  EXPECT_EQ(here->build, there->build);
  EXPECT_FALSE(of("nosuch"));
}

TEST_F(KernelIdentity, NotesThatLieAreNone) {
  auto bytes = note(3, "GNU", {1, 2, 3, 4});
  for (const std::size_t field : {0u, 4u}) {
    for (const std::uint32_t lie : {0xffff'ffffu, 0x7fff'ffffu, 0x1000u}) {
      auto lying = bytes;
      std::memcpy(lying.data() + field, &lie, sizeof lie);
      notes(lying);
      EXPECT_TRUE(of("vmlinux")->build.starts_with("names-")) << field << ": " << lie;
    }
  }
  bytes.resize(7);
  notes(bytes);
  EXPECT_TRUE(of("vmlinux")->build.starts_with("names-"));
}

}  // namespace
}  // namespace ringside::guest_linux
