#include "vmm/linux/text/relocations.h"

#include <gtest/gtest.h>

#include <cstring>

#include "vmm/linux/discovery/file_kernel.h"
#include "vmm/linux/text/small_elf_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::kText;
using fakes::SmallElf;

constexpr std::int64_t kSlide = 0x1240'0000;

/// An ELF image and the lists that follow it, each after its 0.
std::vector<std::byte> payload(const std::vector<std::vector<std::uint64_t>>& lists,
                               std::string_view text = "") {
  SmallElf elf;
  elf.put_text(kText + 0x100, text);
  fakes::Bytes table;
  for (const auto& list : lists) {
    table.add(std::int32_t{0});
    for (const std::uint64_t place : list) table.add(static_cast<std::int32_t>(place));
  }
  std::vector<std::byte> bytes = elf.write({{"linux_banner", kText + 0x800, 0, 0x11}});
  bytes.insert(bytes.end(), table.bytes().begin(), table.bytes().end());
  return bytes;
}

class Moved {
 public:
  explicit Moved(std::vector<std::byte> bytes)
      : bytes_(std::move(bytes)),
        image_(*vmm::ElfFile::parse(bytes_)),
        relocations(Relocations::parse(bytes_, image_)) {}
  template <class T>
  T at(std::uint64_t address) const {
    T value;
    const auto out = std::as_writable_bytes(std::span(&value, 1));
    EXPECT_TRUE(image_.read(address, out));
    relocations.apply(image_, address, out, kSlide);
    return value;
  }

 private:
  std::vector<std::byte> bytes_;
  vmm::ElfFile image_;

 public:
  const Relocations relocations;
};

TEST(Relocations, MoveEachKindOfPlace) {
  const Moved moved(payload({{kText + 0x10}, {kText + 0x20}, {kText + 0x30}}));

  EXPECT_EQ(moved.relocations.size(), 3u);
  EXPECT_EQ(moved.at<std::uint64_t>(kText + 0x10), 0x1240'0000u) << "64 bits";
  EXPECT_EQ(moved.at<std::uint64_t>(kText + 0x20), 0xedc0'0000u) << "32 bits, the other way";
  EXPECT_EQ(moved.at<std::uint64_t>(kText + 0x30), 0x1240'0000u) << "32 bits";
  EXPECT_EQ(moved.at<std::uint64_t>(kText + 0x40), 0u);
}

TEST(Relocations, WithoutAnInverseListTheFirstIsOf64Bits) {
  const Moved moved(payload({{kText + 0x10}, {kText + 0x30}}));

  EXPECT_EQ(moved.relocations.size(), 2u);
  EXPECT_EQ(moved.at<std::uint64_t>(kText + 0x10), 0x1240'0000u);
  EXPECT_EQ(moved.at<std::uint32_t>(kText + 0x30), 0x1240'0000u);
}

TEST(Relocations, APartOfANumberCarriesWhatItsRestGives) {
  // 0x00e00000 at 0x100: adding 0x12400000 carries from the third byte into the fourth.
  const Moved moved(payload({{}, {}, {kText + 0x100}}, std::string_view("\0\0\xe0\0", 4)));

  EXPECT_EQ(moved.at<std::uint32_t>(kText + 0x100), 0x1320'0000u);
  EXPECT_EQ(moved.at<std::uint8_t>(kText + 0x103), 0x13u);
  EXPECT_EQ(moved.at<std::uint16_t>(kText + 0x0ff), 0u);
  EXPECT_EQ(moved.at<std::uint32_t>(kText + 0x0ff), 0x2000'0000u);
}

TEST(Relocations, AreNoneWhereAnyPlaceIsOutsideOfTheImage) {
  const Moved none(payload({{kText + 0x10}, {kText + 0x20}, {kText - 8, kText + 0x30}}));

  EXPECT_EQ(none.relocations.size(), 0u);
  EXPECT_EQ(none.at<std::uint64_t>(kText + 0x30), 0u);
  EXPECT_EQ(Moved(payload({})).relocations.size(), 0u);
}

TEST(FileKernel, ReadsItsTextAsItIsWhereItRuns) {
  const auto file = fakes::kernel_file(payload({{kText + 0x10}, {}, {kText + 0x30}}));
  const auto kernel = kernel_from_file(file, {kSlide, 0});
  ASSERT_TRUE(kernel) << kernel.error().message;

  const auto at = [&](std::uint64_t offset) {
    return load<std::uint64_t>((*kernel)->text(), GuestVirt(kText + kSlide + offset));
  };
  EXPECT_EQ(at(0x10), 0x1240'0000u);
  EXPECT_EQ(at(0x30), 0x1240'0000u);
  EXPECT_EQ(at(0x40), 0u);
}

}  // namespace
}  // namespace ringside::guest_linux
