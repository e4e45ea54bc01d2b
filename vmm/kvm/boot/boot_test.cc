#include "vmm/kvm/boot/boot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vmm/testing/sample_kernels.h"

namespace ringside::vmm::kvm {
namespace {

using namespace vmm::testing;

constexpr std::uint64_t kRam = 32 << 20;

/// RAM that is new for every kernel; what lies in it is read back as a guest would.
class Boot : public ::testing::Test {
 protected:
  Boot() : memory_({{GuestPhys(0), ram_}}) {
    request_.ram_size = kRam;
    request_.command_line = "console=ttyS0 panic=-1";
    request_.rsdp = GuestPhys(kAcpiTables);
  }

  Result<BootState> load(const Bytes& file) {
    const auto kernel = KernelFile::parse(file, "k");
    EXPECT_TRUE(kernel.has_value()) << kernel.error().message;
    return load_kernel(*kernel, request_, memory_);
  }
  std::string refusal(const Bytes& file) {
    const auto state = load(file);
    return state ? std::string() : state.error().message;
  }
  void give_initrd(std::size_t size) {
    initrd_.assign(size, std::byte{0x42});
    request_.initrd = initrd_;
  }

  template <class T>
  T at(std::uint64_t address) const {
    T value{};
    EXPECT_TRUE(memory_.read(GuestPhys(address), std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }
  std::uint32_t u32(std::uint64_t address) const { return at<std::uint32_t>(address); }
  std::uint64_t u64(std::uint64_t address) const { return at<std::uint64_t>(address); }
  std::string text_at(std::uint64_t address) const {
    // SAFETY: char may alias; RAM is zero after every text that is read.
    return std::string(reinterpret_cast<const char*>(&ram_[address]));
  }
  /// The whole initrd, with nothing after it.
  bool has_initrd_at(std::uint64_t address) const {
    return std::equal(initrd_.begin(), initrd_.end(), ram_.begin() + std::ptrdiff_t(address)) &&
           (address + initrd_.size() == kRam || ram_[address + initrd_.size()] == std::byte{0});
  }

  // Not a vector: calloc's zeroes cost nothing before they are touched.
  std::unique_ptr<void, decltype(&std::free)> zeroes_{std::calloc(kRam, 1), &std::free};
  std::span<std::byte> ram_{static_cast<std::byte*>(zeroes_.get()), kRam};
  GuestMemory memory_;
  std::vector<std::byte> initrd_;
  BootRequest request_;
};

SampleElf pvh_kernel() {
  SampleElf elf;
  elf.pvh_entry = 0x100020;
  return elf;
}

TEST_F(Boot, AKernelWithAPvhNoteStartsThereInProtectedMode) {
  const auto state = load(sample_elf(pvh_kernel()));

  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(state->protocol, BootProtocol::Pvh);
  EXPECT_EQ(state->mode, BootState::Mode::Protected32);
  EXPECT_EQ(state->entry, 0x100020u);
  EXPECT_EQ(state->rbx, kStartInfo);
  EXPECT_FALSE(state->may_relocate);
  EXPECT_EQ(at<std::uint8_t>(0x100000), 0x90);
  EXPECT_EQ(u64(kBootGdt + 0x10), 0x00cf9b000000ffffu) << "32-bit code";
}

TEST_F(Boot, PvhsStartInfoHasAllThatAKernelWantsToKnow) {
  give_initrd(5000);

  ASSERT_TRUE(load(sample_elf(pvh_kernel())).has_value());

  EXPECT_EQ(u32(kStartInfo), 0x336ec578u);
  EXPECT_EQ(u32(kStartInfo + 4), 1u);
  EXPECT_EQ(text_at(u64(kStartInfo + 24)), request_.command_line);
  EXPECT_EQ(u64(kStartInfo + 32), kAcpiTables);
  ASSERT_EQ(u32(kStartInfo + 12), 1u);
  const std::uint64_t module = u64(kStartInfo + 16);
  EXPECT_EQ(u64(module), kRam - 8192);
  EXPECT_EQ(u64(module + 8), 5000u);
  EXPECT_TRUE(has_initrd_at(u64(module)));
  const auto map = memory_map(kRam);
  ASSERT_EQ(u32(kStartInfo + 48), map.size());
  for (std::size_t i = 0; i < map.size(); ++i) {
    const std::uint64_t entry = u64(kStartInfo + 40) + 24 * i;
    EXPECT_EQ(u64(entry), map[i].base);
    EXPECT_EQ(u64(entry + 8), map[i].size);
    EXPECT_EQ(u32(entry + 16), static_cast<std::uint32_t>(map[i].type));
  }
}

TEST_F(Boot, WithoutAnInitrdThereIsNoModule) {
  ASSERT_TRUE(load(sample_elf(pvh_kernel())).has_value());

  EXPECT_EQ(u32(kStartInfo + 12), 0u);
}

TEST_F(Boot, APlainElfStartsInLongModeOnAnIdentityMapOf4GiB) {
  const auto state = load(sample_elf({}));

  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(state->protocol, BootProtocol::Elf64);
  EXPECT_EQ(state->mode, BootState::Mode::Long64);
  EXPECT_EQ(state->entry, 0x100010u);
  EXPECT_EQ(state->rsp, kBootStack);
  EXPECT_EQ(state->rdi, kStartInfo);
  EXPECT_EQ(u32(kStartInfo), 0x336ec578u);
  EXPECT_EQ(u64(kBootGdt + 0x10), 0x00af9b000000ffffu) << "64-bit code";
  for (const std::uint64_t address : {0x0ull, 0x100000ull, 0xbfe00000ull, 0xffffffffull}) {
    const std::uint64_t pointers = u64(state->cr3 + 8 * (address >> 39)) & ~0xfffull;
    const std::uint64_t directory = u64(pointers + 8 * (address >> 30 & 511)) & ~0xfffull;
    const std::uint64_t entry = u64(directory + 8 * (address >> 21 & 511));
    EXPECT_EQ(entry, (address & ~0x1fffffull) | 0x83) << std::hex << address;
  }
}

TEST_F(Boot, ALinuxWithoutPvhFindsItsBootParametersToo) {
  give_initrd(100);

  const auto state = load(sample_elf({}));

  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->rsi, kZeroPage);
  EXPECT_EQ(u32(kZeroPage + 0x202), 0x53726448u);
  EXPECT_EQ(text_at(u32(kZeroPage + 0x228)), request_.command_line);
  EXPECT_EQ(u32(kZeroPage + 0x21c), 100u);
}

TEST_F(Boot, ABssLiesInRamAndIsCountedThere) {
  SampleElf elf;
  elf.segments[0].memory_size = 40 << 20;

  EXPECT_EQ(refusal(sample_elf(elf)),
            "k: no room for the kernel (40 MiB) and the initrd (0 MiB) in 32 MiB of RAM: give "
            "--memory 256m or more");
}

TEST_F(Boot, A32BitKernelNeedsAProtocol) {
  SampleElf elf;
  elf.is_64 = false;
  elf.machine = 3;

  EXPECT_EQ(refusal(sample_elf(elf)),
            "k: a 32-bit kernel with neither a PVH note nor a Multiboot header");
}

TEST_F(Boot, AnEntryPointOutsideTheKernelIsRefused) {
  SampleElf elf;
  elf.entry = 0x5000;

  EXPECT_EQ(refusal(sample_elf(elf)), "k: its entry point 0x5000 lies in no segment");
}

TEST_F(Boot, ABzImageStartsAtIts64BitEntryWithAZeroPage) {
  give_initrd(5000);
  const auto state = load(sample_bz_image({}));

  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(state->protocol, BootProtocol::BzImage);
  EXPECT_EQ(state->mode, BootState::Mode::Long64);
  EXPECT_EQ(state->entry, 0x1000200u);
  EXPECT_EQ(state->rsi, kZeroPage);
  EXPECT_EQ(u32(kZeroPage + 0x202), 0x53726448u) << "the file's setup header";
  EXPECT_EQ(u64(kZeroPage + 0x258), 0x1000000u);
  EXPECT_EQ(at<std::uint8_t>(kZeroPage + 0x210), 0xff);
  EXPECT_EQ(text_at(u32(kZeroPage + 0x228)), request_.command_line);
  EXPECT_EQ(u64(kZeroPage + 0x70), kAcpiTables);
  EXPECT_EQ(u32(kZeroPage + 0x218), kRam - 8192);
  EXPECT_EQ(u32(kZeroPage + 0x21c), 5000u);
  EXPECT_TRUE(has_initrd_at(kRam - 8192));
}

TEST_F(Boot, TheZeroPageHasTheMemoryMap) {
  ASSERT_TRUE(load(sample_bz_image({})).has_value());

  const auto map = memory_map(kRam);
  ASSERT_EQ(at<std::uint8_t>(kZeroPage + 0x1e8), map.size());
  for (std::size_t i = 0; i < map.size(); ++i) {
    const std::uint64_t entry = kZeroPage + 0x2d0 + 20 * i;
    EXPECT_EQ(u64(entry), map[i].base);
    EXPECT_EQ(u64(entry + 8), map[i].size);
    EXPECT_EQ(u32(entry + 16), static_cast<std::uint32_t>(map[i].type));
  }
}

TEST_F(Boot, ABzImageMayMoveUnlessItIsFixedOrTold) {
  SampleBzImage fixed;
  fixed.relocatable = 0;

  EXPECT_TRUE(load(sample_bz_image({}))->may_relocate);
  EXPECT_FALSE(load(sample_bz_image(fixed))->may_relocate);
  request_.command_line = "quiet nokaslr";
  EXPECT_FALSE(load(sample_bz_image({}))->may_relocate);
  request_.command_line = "quiet=nokaslr nokaslrx";
  EXPECT_TRUE(load(sample_bz_image({}))->may_relocate);
}

TEST_F(Boot, ABzImageWithoutRoomWhereItPrefersToBeGoesElsewhereIfItCan) {
  SampleBzImage image;
  image.init_size = 20 << 20;  // from 16 MiB on it would end beyond RAM

  EXPECT_EQ(load(sample_bz_image(image))->entry, 0x200200u);

  image.relocatable = 0;
  EXPECT_EQ(refusal(sample_bz_image(image)),
            "k: no room for the kernel (20 MiB) and the initrd (0 MiB) in 32 MiB of RAM: give "
            "--memory 256m or more");
}

TEST_F(Boot, ABzImagesInitrdStaysBelowTheLimitOfItsHeader) {
  give_initrd(4096);
  SampleBzImage image;
  image.initrd_last = 0x15fffff;

  ASSERT_TRUE(load(sample_bz_image(image)).has_value());

  EXPECT_EQ(u32(kZeroPage + 0x218), 0x15ff000u);
}

TEST_F(Boot, BzImagesThatCannotBeBootedSayWhy) {
  SampleBzImage narrow, odd;
  narrow.xloadflags = 0;
  odd.alignment = 0;

  EXPECT_EQ(refusal(sample_bz_image(narrow)), "k: a 32-bit kernel: give one for x86-64");
  EXPECT_EQ(refusal(sample_bz_image(odd)), "k: the bzImage asks for an impossible alignment");
}

TEST_F(Boot, ACommandLineThatIsTooLongIsALimit) {
  request_.command_line.assign(2048, 'x');
  EXPECT_EQ(refusal(sample_bz_image({})),
            "the kernel's command line has 2048 characters, 1 too many: shorten --append");
  EXPECT_TRUE(load(sample_elf(pvh_kernel())).has_value());

  request_.command_line.assign(kCommandLineSize, 'x');
  EXPECT_EQ(refusal(sample_elf(pvh_kernel())),
            "the kernel's command line has 4096 characters, 1 too many: shorten --append");
  request_.command_line = std::string("a\0b", 3);
  EXPECT_EQ(refusal(sample_elf({})), "the kernel's command line has a NUL in it");
}

TEST_F(Boot, AnInitrdThatDoesNotFitSaysHowMuchMemoryItTakes) {
  give_initrd(30 << 20);

  EXPECT_EQ(refusal(sample_bz_image({})),
            "k: no room for the kernel (4 MiB) and the initrd (30 MiB) in 32 MiB of RAM: give "
            "--memory 256m or more");
}

TEST_F(Boot, AMachineWithLessRamThanToldIsAnErrorNotACrash) {
  std::vector<std::byte> little(4096);
  GuestMemory memory({{GuestPhys(0), little}});
  const auto kernel = KernelFile::parse(sample_elf({}), "k");

  const auto state = load_kernel(*kernel, request_, memory);

  ASSERT_FALSE(state.has_value());
  EXPECT_EQ(state.error().code, ErrorCode::Limit);
}

SampleElf multiboot_kernel(std::uint32_t flags) {
  SampleElf elf;
  elf.is_64 = false;
  elf.machine = 3;
  elf.entry = 0x100020;
  elf.segments[0].bytes = sample_multiboot_header(flags);
  elf.segments[0].memory_size = 0x1000;
  return elf;
}

TEST_F(Boot, AMultibootKernelOfEitherClassFindsItsInformation) {
  give_initrd(6000);
  for (const bool is_64 : {false, true}) {
    SampleElf elf = multiboot_kernel(3);
    elf.is_64 = is_64;
    elf.machine = is_64 ? 62 : 3;

    const auto state = load(sample_elf(elf));

    ASSERT_TRUE(state.has_value()) << state.error().message;
    EXPECT_EQ(state->protocol, BootProtocol::Multiboot);
    EXPECT_EQ(state->mode, BootState::Mode::Protected32);
    EXPECT_EQ(state->entry, 0x100020u);
    EXPECT_EQ(state->rax, 0x2badb002u);
    const std::uint64_t info = state->rbx;
    EXPECT_EQ(u32(info), 0x24du) << "memory, command line, modules, map, loader";
    EXPECT_EQ(u32(info + 4), kLowRamEnd / 1024);
    EXPECT_EQ(u32(info + 8), (kRam - kAcpiEnd) / 1024);
    EXPECT_EQ(text_at(u32(info + 16)), request_.command_line);
    EXPECT_EQ(text_at(u32(info + 64)), "ringside");
    ASSERT_EQ(u32(info + 20), 1u);
    EXPECT_EQ(u32(u32(info + 24)), kRam - 8192);
    EXPECT_EQ(u32(u32(info + 24) + 4), kRam - 8192 + 6000);
    EXPECT_TRUE(has_initrd_at(kRam - 8192));
  }
}

TEST_F(Boot, MultibootsMemoryMapIsTheMachines) {
  const auto state = load(sample_elf(multiboot_kernel(0)));

  ASSERT_TRUE(state.has_value());
  const auto map = memory_map(kRam);
  ASSERT_EQ(u32(state->rbx + 44), 24 * map.size());
  for (std::size_t i = 0; i < map.size(); ++i) {
    const std::uint64_t entry = u32(state->rbx + 48) + 24 * i;
    EXPECT_EQ(u32(entry), 20u);
    EXPECT_EQ(u64(entry + 4), map[i].base);
    EXPECT_EQ(u64(entry + 12), map[i].size);
    EXPECT_EQ(u32(entry + 20), static_cast<std::uint32_t>(map[i].type));
  }
}

TEST_F(Boot, AFlatMultibootKernelGoesWhereItsHeaderSays) {
  const auto state = load(sample_flat_kernel());

  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(state->protocol, BootProtocol::Multiboot);
  EXPECT_EQ(state->entry, 0x100030u);
  EXPECT_EQ(u32(0x100010), 0x1badb002u);
  EXPECT_EQ(at<std::uint8_t>(0x10003f), 0xf4);
}

TEST_F(Boot, AFlatKernelsAddressesMustFitItsFile) {
  const auto with = [](std::size_t field, std::uint32_t value) {
    Bytes file = sample_flat_kernel();
    set(file, 16 + 12 + 4 * field, value);
    return file;
  };
  const std::string start = "k: Multiboot header: ";
  EXPECT_EQ(refusal(with(0, 0x100020)),
            start + "the load address lies before the file's start or after the header");
  EXPECT_EQ(refusal(with(1, 0x100020)),
            start + "the load address lies before the file's start or after the header");
  EXPECT_EQ(refusal(with(2, 0xfffff)), start + "it ends before it starts");
  EXPECT_EQ(refusal(with(2, 0x100041)), start + "the file is cut short");
  EXPECT_EQ(refusal(with(3, 0x100020)), start + "the bss ends before the data");
  EXPECT_EQ(refusal(with(3, 0xf0000000)).substr(0, 26), "k: a segment at 0x100000 o");
  EXPECT_EQ(refusal(with(4, 0x200000)), "k: its entry point 0x200000 lies in no segment");
}

TEST_F(Boot, MultibootFlagsThatWeCannotServeAreRefused) {
  EXPECT_EQ(refusal(sample_elf(multiboot_kernel(4))),
            "k: its Multiboot header asks for a video mode, and the machine has no screen: clear "
            "flag 2");
  EXPECT_EQ(refusal(sample_elf(multiboot_kernel(0x18))),
            "k: its Multiboot header has flags that we do not know: 0x18");
}

TEST_F(Boot, APvhNoteGoesBeforeAMultibootHeader) {
  SampleElf elf = multiboot_kernel(0);
  elf.pvh_entry = 0x100040;

  EXPECT_EQ(load(sample_elf(elf))->protocol, BootProtocol::Pvh);
}

TEST(BootProtocolName, IsWhatUsersCallIt) {
  EXPECT_EQ(name_of(BootProtocol::BzImage), "bzImage");
  EXPECT_EQ(name_of(BootProtocol::Pvh), "PVH");
  EXPECT_EQ(name_of(BootProtocol::Multiboot), "Multiboot");
  EXPECT_EQ(name_of(BootProtocol::Elf64), "ELF");
}

}  // namespace
}  // namespace ringside::vmm::kvm
