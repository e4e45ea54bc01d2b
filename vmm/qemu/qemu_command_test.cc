#include "vmm/qemu/qemu_command.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ringside::vmm {
namespace {

constexpr QemuDescriptors kFds{10, 11, 12, 13, 14, 15};

GuestConfig small_config() {
  GuestConfig config;
  config.kernel = "/k/vmlinuz,odd";
  config.initrd = "/k/initrd";
  config.vcpus = 2;
  config.memory = 512 << 20;
  return config;
}

/// The argument after the first `option`; empty when it is not there.
std::string value_of(const std::vector<std::string>& arguments, std::string_view option) {
  const auto at = std::find(arguments.begin(), arguments.end(), option);
  return at == arguments.end() || at + 1 == arguments.end() ? std::string() : *(at + 1);
}

bool has(const std::vector<std::string>& arguments, std::string_view wanted) {
  return std::find(arguments.begin(), arguments.end(), wanted) != arguments.end();
}

TEST(QemuCommand, DescribesTheMachine) {
  const auto arguments = qemu_arguments(small_config(), {}, Accelerator::Tcg, kFds);

  EXPECT_EQ(arguments[0], "qemu-system-x86_64");
  EXPECT_EQ(value_of(arguments, "-accel"), "tcg,thread=multi");
  EXPECT_EQ(value_of(arguments, "-smp"), "2");
  EXPECT_EQ(value_of(arguments, "-m"), "512M");
  EXPECT_EQ(value_of(arguments, "-object"),
            "memory-backend-file,id=ram,size=536870912,mem-path=/proc/self/fd/10,share=on");
  EXPECT_EQ(value_of(arguments, "-machine"), "pc,memory-backend=ram");
  EXPECT_EQ(value_of(arguments, "-kernel"), "/k/vmlinuz,odd");
  EXPECT_EQ(value_of(arguments, "-initrd"), "/k/initrd");
  for (const char* flag : {"-nodefaults", "-no-user-config", "-no-reboot", "-S"}) {
    EXPECT_TRUE(has(arguments, flag)) << flag;
  }
  EXPECT_EQ(value_of(arguments, "-sandbox"),
            "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
  EXPECT_EQ(value_of(arguments, "-cpu"), "max,-cx16");
  const auto with_kvm = qemu_arguments(small_config(), {}, Accelerator::Kvm, kFds);
  EXPECT_EQ(value_of(with_kvm, "-accel"), "kvm");
  EXPECT_EQ(value_of(with_kvm, "-cpu"), "max");
}

TEST(QemuCommand, ConnectsEverythingByInheritedDescriptors) {
  const auto arguments = qemu_arguments(small_config(), {}, Accelerator::Tcg, kFds);

  for (const char* channel :
       {"socket,id=monitor,fd=11", "socket,id=debugger,fd=12", "socket,id=console,fd=13",
        "socket,id=control,fd=14", "socket,id=output,fd=15"}) {
    EXPECT_TRUE(has(arguments, channel)) << channel;
  }
  const auto console = std::find(arguments.begin(), arguments.end(), "chardev:console");
  const auto control = std::find(arguments.begin(), arguments.end(), "chardev:control");
  const auto output = std::find(arguments.begin(), arguments.end(), "chardev:output");
  EXPECT_TRUE(console < control && control < output && output != arguments.end())
      << "ttyS0, ttyS1 and ttyS2 are numbered by order";
}

TEST(QemuCommand, ReservesTheShimsMemoryBeforeTheUsersWords) {
  GuestConfig config = small_config();
  config.initrd.clear();
  config.append = "loglevel=7 x='a b'";

  const auto arguments = qemu_arguments(config, {}, Accelerator::Tcg, kFds);

  EXPECT_EQ(value_of(arguments, "-append"),
            "console=ttyS0 panic=-1 quiet no_timer_check memmap=16M$0x6000000 loglevel=7 x='a b'");
  EXPECT_FALSE(has(arguments, "-initrd"));
  EXPECT_EQ(kReservedMemory.base.raw(), 0x6000000u);
  EXPECT_EQ(kReservedMemory.size, 16u << 20);
}

TEST(QemuCommand, SetsNothingAsideInAGuestAsItIs) {
  QemuConfig config;
  config.as_is = true;

  const auto arguments = qemu_arguments(small_config(), config, Accelerator::Tcg, kFds);

  EXPECT_EQ(value_of(arguments, "-append").find("memmap"), std::string::npos);
}

TEST(PcRam, SplitsAtThreeGibFromThreeAndAHalfOn) {
  constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
  for (const std::uint64_t size : {256 * kMiB, 3 * kGiB, 0xe000'0000 - kMiB}) {
    const auto pieces = pc_ram(size);
    ASSERT_EQ(pieces.size(), 1u) << size;
    EXPECT_EQ(pieces[0].size, size);
  }
  for (const std::uint64_t size : {std::uint64_t{0xe000'0000}, 4 * kGiB, 64 * kGiB}) {
    const auto pieces = pc_ram(size);
    ASSERT_EQ(pieces.size(), 2u) << size;
    EXPECT_EQ(pieces[0].base.raw(), 0u);
    EXPECT_EQ(pieces[0].file_offset, 0u);
    EXPECT_EQ(pieces[0].size, 3 * kGiB);
    EXPECT_EQ(pieces[1].base.raw(), 4 * kGiB);
    EXPECT_EQ(pieces[1].file_offset, 3 * kGiB);
    EXPECT_EQ(pieces[1].size, size - 3 * kGiB);
  }
}

}  // namespace
}  // namespace ringside::vmm
