#include "vmm/linux/discovery/file_kernel.h"

#include <gtest/gtest.h>

#include <cstring>

#include "vmm/kernel_file/elf_file.h"
#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/text/boot_patches.h"
#include "vmm/linux/text/small_elf_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::kernel_file;
using fakes::kText;
using fakes::kTextBytes;
using fakes::kTextOffset;
using fakes::SmallElf;

TEST(ElfFile, GivesWhatTheFilePutsIntoMemory) {
  SmallElf elf;
  elf.put_text(kText + 0x10, "text");
  const auto bytes = elf.write({});
  const auto image = vmm::ElfFile::parse(bytes);
  ASSERT_TRUE(image) << image.error().message;
  std::array<char, 6> read{};

  ASSERT_TRUE(image->read(kText + 0x10, std::as_writable_bytes(std::span(read))));
  EXPECT_EQ(std::string_view(read.data()), "text");
  std::array<char, 4> bss{1, 1, 1, 1};
  ASSERT_TRUE(image->read(kText + kTextBytes - 2, std::as_writable_bytes(std::span(bss))));
  EXPECT_EQ(bss, (std::array<char, 4>{})) << "beyond the file's bytes, zeroes";
  EXPECT_EQ(image->physical(kText + 0x10), 0x100'0010u);
  const auto outside = image->read(kText - 1, std::as_writable_bytes(std::span(bss)));
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().address, kText - 1);
}

TEST(ElfFile, RefusesEveryFileThatIsCutShort) {
  SmallElf elf;
  const auto whole = elf.write({{"f", kText, 4}});

  for (std::size_t size = 0; size < kTextOffset + kTextBytes; size += 61) {
    EXPECT_FALSE(vmm::ElfFile::parse(std::span(whole).first(size))) << size;
  }
  for (std::size_t size = kTextOffset + kTextBytes; size < whole.size(); ++size) {
    const auto image = vmm::ElfFile::parse(std::span(whole).first(size));
    ASSERT_TRUE(image);
    EXPECT_TRUE(image->symbols().empty()) << "section headers come last";
  }
}

TEST(ElfFile, SurvivesAnyByteOfItsHeaders) {
  SmallElf elf;
  const auto whole = elf.write({{"f", kText, 4}});
  for (std::size_t at = 0; at < 120; ++at) {
    for (const unsigned value : {0x00U, 0x7fU, 0x80U, 0xffU}) {
      auto bytes = whole;
      bytes[at] = static_cast<std::byte>(value);
      const auto image = vmm::ElfFile::parse(bytes);
      if (!image) continue;
      std::array<std::byte, 64> read;
      EXPECT_LE(image->symbols().size(), 1u);
      (void)image->read(kText, read);
    }
  }
}

TEST(FileKernel, OfAnotherSystemIsKnownByItsSymbols) {
  constexpr std::uint64_t kLow = 0x10'0000;
  SmallElf elf(kLow);
  const auto file = kernel_file(elf.write({{"main", kLow + 0x20, 0x10}, {"halt", kLow + 0x40, 0}}));

  const auto kernel = kernel_from_file(file);

  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_FALSE((*kernel)->is_linux());
  const Symbol* main = (*kernel)->symbols().find("main", "kernel");
  ASSERT_NE(main, nullptr);
  EXPECT_TRUE(main->is_text());
  EXPECT_EQ((*kernel)->symbols().describe(GuestVirt(kLow + 0x24)), "kernel`main+0x4");
  EXPECT_EQ((*kernel)->symbols().find("halt")->size, kTextBytes + 0x1000 - 0x40);
  fakes::SparseGuest nothing;
  EXPECT_FALSE((*kernel)->current_task(nothing, GuestVirt(0)));
  EXPECT_FALSE((*kernel)->learn_cpus(nothing));
}

TEST(FileKernel, OfALinuxIsNamedByItsBannerAndMovesAsAWhole) {
  SmallElf elf;
  elf.put_text(kText + 0x800, "Linux version 6.1.0-small (someone@somewhere)");
  const auto file = kernel_file(elf.write({{"_stext", kText, 0},
                                           {"f", kText + 0x10, 0x10},
                                           {"init_top_pgt", kText + 0x400, 0},
                                           {"linux_banner", kText + 0x800, 0, 0x11}}));

  const auto kernel = kernel_from_file(file, {0x200'0000, 0x10'0000});

  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_TRUE((*kernel)->is_linux());
  EXPECT_EQ((*kernel)->release(), "6.1.0-small");
  EXPECT_EQ((*kernel)->symbols().find("f", "vmlinux")->address.raw(), kText + 0x200'0010);
  EXPECT_EQ((*kernel)->table().root.raw(), 0x100'0400u + 0x10'0000u);
  std::array<char, 5> read{};
  const auto bytes = std::as_writable_bytes(std::span(read));
  ASSERT_TRUE((*kernel)->text().read(GuestVirt(kText + 0x200'0800), bytes));
  EXPECT_EQ(std::string_view(read.data(), 5), "Linux");
  EXPECT_FALSE((*kernel)->text().read(GuestVirt(kText + 0x800), bytes));
  EXPECT_FALSE((*kernel)->patched_at_boot()) << "without section names it may be any text";
}

TEST(FileKernel, LearnsFromTheGuestHowManyLevelsItsPageTableHas) {
  constexpr std::uint64_t kLoaded = 0x100'0000, kTop = 0, kFourth = 0x1000, kThird = 0x2000;
  SmallElf elf;
  elf.put_text(kText + 0x800, "Linux version 6.1.0-small (someone@somewhere)");
  const auto file = kernel_file(elf.write({{"linux_banner", kText + 0x800, 0, 0x11},
                                           {"init_top_pgt", kText + kTop, 0, 0x11},
                                           {"level4_kernel_pgt", kText + kFourth, 0, 0x11}}));
  const auto kernel = kernel_from_file(file);
  ASSERT_TRUE(kernel) << kernel.error().message;
  std::vector<std::byte> ram(0x4000);
  const vmm::GuestMemory memory({{GuestPhys(kLoaded), ram}});
  const auto last_entry = [&](std::uint64_t table) {
    const std::uint64_t entry = (kLoaded + table) | 0x67;
    std::memcpy(&ram[kTop + 511 * 8], &entry, sizeof entry);
    return (*kernel)->table_in(memory);
  };

  EXPECT_EQ(last_entry(kThird).levels, 4u);
  EXPECT_EQ(last_entry(kFourth).levels, 5u);
  EXPECT_EQ(last_entry(kFourth).root, GuestPhys(kLoaded + kTop));
}

TEST(FileKernel, KeepsItsSymbolsWhenItLetsGoOfTheFile) {
  SmallElf elf;
  elf.put_text(kText, "text");
  std::unique_ptr<FileKernel> kernel;
  {
    auto made = kernel_from_file(kernel_file(elf.write({{"f", kText, 4}, {"g", kText + 4, 4}})));
    ASSERT_TRUE(made);
    kernel = std::move(*made);
  }
  std::array<std::byte, 4> read;
  EXPECT_TRUE(kernel->text().read(GuestVirt(kText), read)) << "the file belongs to the kernel";

  kernel->end_set_up();

  EXPECT_FALSE(kernel->text().read(GuestVirt(kText), read));
  EXPECT_EQ(kernel->symbols().describe(GuestVirt(kText + 5)), "kernel`g+0x1");
  EXPECT_EQ(kernel->loaded_at(GuestVirt(kText + 8)), GuestPhys(0x100'0008));
}

TEST(FileKernel, TakesABareLabelForNoFunction) {
  SmallElf elf;
  const auto file = kernel_file(elf.write({{"f", kText, 4}, {"label", kText + 8, 0, 0x10}}));
  const auto kernel = kernel_from_file(file);

  ASSERT_TRUE(kernel);
  EXPECT_TRUE((*kernel)->symbols().find("f")->is_text());
  EXPECT_FALSE((*kernel)->symbols().find("label")->is_text());
}

TEST(FileKernel, KnowsWhereItsTextIsLoaded) {
  SmallElf elf;
  const auto kernel = kernel_from_file(kernel_file(elf.write({{"f", kText, 4}})));

  ASSERT_TRUE(kernel);
  EXPECT_EQ((*kernel)->loaded_at(GuestVirt(kText + 8)), GuestPhys(0x100'0008));
  EXPECT_FALSE((*kernel)->loaded_at(GuestVirt(kText - 1)));
}

TEST(FileKernel, TakesAProgramForTheUsersHalfForNoFunctionOfTheKernel) {
  SmallElf elf;
  const auto file = kernel_file(elf.write({{"f", kText, 4}, {"program", 0x40'0000, 4}}));
  const auto kernel = kernel_from_file(file);

  ASSERT_TRUE(kernel);
  EXPECT_TRUE((*kernel)->symbols().find("f")->is_text());
  EXPECT_FALSE((*kernel)->symbols().find("program")->is_text());
  EXPECT_EQ((*kernel)->symbols().describe(GuestVirt(0x40'0002)), "kernel`program+0x2");
}

TEST(ElfFile, ANumberThatTheAssemblerKnewIsNoSymbol) {
  SmallElf elf;
  const auto file = kernel_file(elf.write({{"f", kText, 4}, {"number", 512, 0, 0x10, 0xfff1}}));
  const auto kernel = kernel_from_file(file);

  ASSERT_TRUE(kernel);
  EXPECT_EQ((*kernel)->symbols().find("number"), nullptr);
  EXPECT_EQ((*kernel)->symbols().describe(GuestVirt(0x8010)), "0x8010");
}

TEST(FileKernel, WithoutSymbolsSaysWhatElseCanBeDone) {
  SmallElf elf;
  const auto kernel = kernel_from_file(kernel_file(elf.write({})));

  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::Unsupported);
  EXPECT_NE(kernel.error().message.find("--after-boot"), std::string::npos);
}

}  // namespace
}  // namespace ringside::guest_linux
