#include "vmm/linux/file_kernel.h"

#include <gtest/gtest.h>

#include "vmm/linux/boot_patches.h"
#include "vmm/linux/elf_image.h"
#include "vmm/linux/fakes_for_tests.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kText = 0xffff'ffff'8100'0000;
constexpr std::uint64_t kTextBytes = 0x1000, kTextOffset = 0x1000;

/// An ELF64 file with one segment of text and a symbol table.
class SmallElf {
 public:
  struct Named {
    std::string name;
    std::uint64_t address, size;
    std::uint8_t info = 0x12;  // global function
  };
  explicit SmallElf(std::uint64_t text = kText) : text_(text), file_(kTextOffset + kTextBytes) {}

  void put(std::size_t at, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), file_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void put_text(std::uint64_t address, std::string_view bytes) {
    put(kTextOffset + address - text_, std::as_bytes(std::span(bytes.data(), bytes.size())));
  }
  template <class T>
  void set(std::size_t at, T value) {
    put(at, std::as_bytes(std::span(&value, 1)));
  }

  std::vector<std::byte> write(const std::vector<Named>& symbols) {
    fakes::Bytes table, strings;
    table.add_bytes(std::vector<std::byte>(24));
    strings.add('\0');
    for (const Named& symbol : symbols) {
      table.add(static_cast<std::uint32_t>(strings.size())).add(symbol.info).add(std::uint8_t{0});
      table.add(std::uint16_t{1}).add(symbol.address).add(symbol.size);
      strings.add_text(symbol.name);
    }
    const std::size_t table_at = file_.size(), strings_at = table_at + table.size();
    file_.insert(file_.end(), table.bytes().begin(), table.bytes().end());
    file_.insert(file_.end(), strings.bytes().begin(), strings.bytes().end());
    const std::size_t sections_at = file_.size();
    file_.resize(sections_at + 4 * 64);
    section(sections_at + 64, 1, 6, text_, kTextOffset, kTextBytes, 0);
    section(sections_at + 128, 2, 0, 0, table_at, table.size(), 3);
    section(sections_at + 192, 3, 0, 0, strings_at, strings.size(), 0);
    header(sections_at);
    return file_;
  }

 private:
  void section(std::size_t at, std::uint32_t type, std::uint64_t flags, std::uint64_t address,
               std::size_t offset, std::size_t size, std::uint32_t link) {
    set(at + 4, type);
    set(at + 8, flags);
    set(at + 16, address);
    set(at + 24, std::uint64_t{offset});
    set(at + 32, std::uint64_t{size});
    set(at + 40, link);
  }
  void header(std::size_t sections_at) {
    put(0, std::as_bytes(std::span("\x7f"
                                   "ELF\2\1\1",
                                   7)));
    set(16, std::uint16_t{2});
    set(18, std::uint16_t{62});
    set(20, std::uint32_t{1});
    set(32, std::uint64_t{64});
    set(40, std::uint64_t{sections_at});
    set(54, std::uint16_t{56});
    set(56, std::uint16_t{1});
    set(58, std::uint16_t{64});
    set(60, std::uint16_t{4});
    set(64, std::uint32_t{1});
    set(68, std::uint32_t{5});
    set(72, std::uint64_t{kTextOffset});
    set(80, text_);
    set(88, std::uint64_t{0x100'0000});
    set(96, kTextBytes);
    set(104, kTextBytes + 0x1000);
  }

  std::uint64_t text_;
  std::vector<std::byte> file_;
};

vmm::KernelFile kernel_file(std::vector<std::byte> bytes) {
  auto file = vmm::KernelFile::parse(std::move(bytes), "small");
  EXPECT_TRUE(file) << file.error().message;
  return std::move(*file);
}

TEST(ElfImage, GivesWhatTheFilePutsIntoMemory) {
  SmallElf elf;
  elf.put_text(kText + 0x10, "text");
  const auto bytes = elf.write({});
  const auto image = ElfImage::parse(bytes);
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

TEST(ElfImage, RefusesEveryFileThatIsCutShort) {
  SmallElf elf;
  const auto whole = elf.write({{"f", kText, 4}});

  for (std::size_t size = 0; size < kTextOffset + kTextBytes; size += 61) {
    EXPECT_FALSE(ElfImage::parse(std::span(whole).first(size))) << size;
  }
  for (std::size_t size = kTextOffset + kTextBytes; size < whole.size(); ++size) {
    const auto image = ElfImage::parse(std::span(whole).first(size));
    ASSERT_TRUE(image);
    EXPECT_TRUE(image->symbols().empty()) << "section headers come last";
  }
}

TEST(ElfImage, SurvivesAnyByteOfItsHeaders) {
  SmallElf elf;
  const auto whole = elf.write({{"f", kText, 4}});
  for (std::size_t at = 0; at < 120; ++at) {
    for (const unsigned value : {0x00U, 0x7fU, 0x80U, 0xffU}) {
      auto bytes = whole;
      bytes[at] = static_cast<std::byte>(value);
      const auto image = ElfImage::parse(bytes);
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

TEST(FileKernel, TakesABareLabelForNoFunction) {
  SmallElf elf;
  const auto file = kernel_file(elf.write({{"f", kText, 4}, {"label", kText + 8, 0, 0x10}}));
  const auto kernel = kernel_from_file(file);

  ASSERT_TRUE(kernel);
  EXPECT_TRUE((*kernel)->symbols().find("f")->is_text());
  EXPECT_FALSE((*kernel)->symbols().find("label")->is_text());
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
