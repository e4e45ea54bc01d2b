#include "vmm/base/bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace ringside {
namespace {

/// A row of notes; the description of the last one may end without padding.
class Notes {
 public:
  Notes& add(std::uint32_t type, std::string_view name, std::size_t description) {
    put(static_cast<std::uint32_t>(name.size()));
    put(static_cast<std::uint32_t>(description));
    put(type);
    for (const char c : name) bytes_.push_back(static_cast<std::byte>(c));
    pad();
    for (std::size_t i = 0; i < description; ++i) bytes_.push_back(static_cast<std::byte>(i + 1));
    return *this;
  }
  Notes& pad() {
    while (bytes_.size() % 4 != 0) bytes_.push_back(std::byte{0});
    return *this;
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void put(std::uint32_t word) {
    const auto bytes = std::as_bytes(std::span(&word, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  std::vector<std::byte> bytes_;
};

constexpr std::string_view kCore("CORE\0", 5), kGnu("GNU\0", 4);

TEST(ElfNotes, AreTakenInOrder) {
  const Notes notes = Notes().add(1, kCore, 3).pad().add(3, kGnu, 2);
  auto rest = notes.bytes();

  const auto first = take_elf_note(rest);
  const auto second = take_elf_note(rest);

  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->type, 1u);
  EXPECT_EQ(first->name, "CORE");
  EXPECT_EQ(first->description.size(), 3u);
  EXPECT_EQ(first->description[2], std::byte{3});
  EXPECT_EQ(second->name, "GNU");
  EXPECT_EQ(second->description.size(), 2u);
  EXPECT_TRUE(rest.empty());
  EXPECT_FALSE(take_elf_note(rest));
}

TEST(ElfNotes, ThatAreCutOffAreNone) {
  const Notes notes = Notes().add(1, kCore, 8);
  for (std::size_t size = 0; size < notes.bytes().size(); ++size) {
    auto rest = notes.bytes().first(size);
    EXPECT_FALSE(take_elf_note(rest)) << size;
    EXPECT_EQ(rest.size(), size) << "nothing was taken";
  }
}

TEST(ElfNotes, MayClaimAnyLength) {
  const std::uint32_t words[] = {UINT32_MAX, UINT32_MAX, 1, 0};
  std::span<const std::byte> rest = std::as_bytes(std::span(words));
  EXPECT_FALSE(take_elf_note(rest));

  const std::uint32_t other[] = {0, UINT32_MAX, 1, 0};
  rest = std::as_bytes(std::span(other));
  EXPECT_FALSE(take_elf_note(rest));
}

TEST(Bytes, AreNotReadPastTheirEnd) {
  const std::byte bytes[5] = {};
  EXPECT_TRUE(load_within<std::uint32_t>(bytes, 1));
  EXPECT_FALSE(load_within<std::uint32_t>(bytes, 2));
  EXPECT_FALSE(load_within<std::uint32_t>(bytes, UINT64_MAX));
}

}  // namespace
}  // namespace ringside
