#include "vmm/kvm/boot/boot_image.h"

#include <gtest/gtest.h>

#include "vmm/testing/sample_kernels.h"

namespace ringside::vmm::kvm {
namespace {

using namespace vmm::testing;

std::string refusal(const Bytes& file) {
  const auto image = read_boot_image(file, "k");
  return image ? std::string() : image.error().message;
}

TEST(BootImage, HasTheSegmentsOfTheFile) {
  SampleElf elf;
  elf.segments[0].memory_size = 0x5000;
  const Bytes file = sample_elf(elf);

  const auto image = read_boot_image(file, "k");

  ASSERT_TRUE(image.has_value()) << image.error().message;
  ASSERT_EQ(image->segments.size(), 1u);
  EXPECT_EQ(image->segments[0].paddr, 0x100000u);
  EXPECT_EQ(image->segments[0].memory_size, 0x5000u);
  EXPECT_EQ(image->segments[0].bytes.size(), 64u);
  EXPECT_EQ(image->segments[0].bytes[0], std::byte{0x90});
  EXPECT_EQ(image->entry, 0x100010u);
  EXPECT_FALSE(image->pvh_entry.has_value());
}

TEST(BootImage, FindsThePvhEntryInBothClasses) {
  for (const bool is_64 : {true, false}) {
    SampleElf elf;
    elf.is_64 = is_64;
    elf.machine = is_64 ? 62 : 3;
    elf.pvh_entry = 0x100020;

    EXPECT_EQ(read_boot_image(sample_elf(elf), "k")->pvh_entry, 0x100020u);
  }
}

TEST(BootImage, AnEntryPointLinkedHighIsTheSamePlaceInPhysicalMemory) {
  SampleElf elf;
  elf.segments[0].vaddr = 0xffff'ffff'8010'0000;
  elf.entry = 0xffff'ffff'8010'0008;

  EXPECT_EQ(read_boot_image(sample_elf(elf), "k")->entry, 0x100008u);
}

TEST(BootImage, AFileThatIsCutAnywhereIsRefused) {
  SampleElf elf;
  elf.pvh_entry = 0x100020;
  const Bytes whole = sample_elf(elf);

  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), "");
  EXPECT_EQ(refusal(whole), "");
}

TEST(BootImage, SegmentsMustHaveTheirBytesAndNotOverlap) {
  SampleElf elf;
  elf.segments[0].memory_size = 8;
  EXPECT_EQ(refusal(sample_elf(elf)), "k: a segment is larger in the file than in memory");

  SampleElf twice;
  twice.segments.push_back(twice.segments[0]);
  twice.segments[1].paddr += 63;
  EXPECT_EQ(refusal(sample_elf(twice)), "k: two segments overlap at 0x10003f");

  SampleElf none;
  none.segments.clear();
  EXPECT_EQ(refusal(sample_elf(none)), "k: no segment to load: is it a kernel?");
}

TEST(BootImage, ManyProgramHeadersAreALimit) {
  SampleElf elf;
  elf.segments.assign(256, {});
  for (std::size_t i = 0; i < elf.segments.size(); ++i) elf.segments[i].paddr += i * 64;
  EXPECT_EQ(refusal(sample_elf(elf)), "");

  elf.segments.push_back({});
  EXPECT_EQ(refusal(sample_elf(elf)), "k: 257 program headers are too many");
}

TEST(BootImage, NotesWithLyingSizesEndTheSearch) {
  SampleElf elf;
  elf.pvh_entry = 0x100020;
  Bytes file = sample_elf(elf);
  const std::size_t note = file.size() - 20;  // name size, value size, type, name, value

  for (const std::size_t field : {note, note + 4}) {
    for (const std::uint32_t size : {0u, 3u, 0x7fff'fff0u, 0xffff'ffffu}) {
      Bytes damaged = file;
      set(damaged, field, size);
      const auto image = read_boot_image(damaged, "k");
      ASSERT_TRUE(image.has_value());
      if (field == note) {
        EXPECT_FALSE(image->pvh_entry.has_value()) << size;
      }
    }
  }
}

TEST(BootImage, AnEntryPointOutsideAllSegmentsIsRefused) {
  const Bytes file = sample_elf({});
  const auto image = read_boot_image(file, "k");

  EXPECT_TRUE(check_entry(*image, 0x10003f, "k").has_value());
  EXPECT_EQ(check_entry(*image, 0x100040, "k").error().message,
            "k: its entry point 0x100040 lies in no segment");
}

}  // namespace
}  // namespace ringside::vmm::kvm
