#include "vmm/saved/core_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <vector>

#include "vmm/inert_machine_for_tests.h"
#include "vmm/saved/saved_machine.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kFourGib = std::uint64_t{4} << 30;
constexpr std::size_t kLow = 4 << 20, kHigh = 1 << 20;

/// RAM below and above 4 GiB.
class Guest final : public InertMachine {
 public:
  Guest() {
    memory_ = GuestMemory(
        std::vector<GuestMemory::Region>{{GuestPhys(0), low_}, {GuestPhys(kFourGib), high_}});
  }
  GuestMemory& memory() override { return memory_; }
  void put(std::uint64_t at, char mark) {
    ASSERT_TRUE(memory_.write(GuestPhys(at), std::as_bytes(std::span(&mark, 1))));
  }

 private:
  std::vector<std::byte> low_ = std::vector<std::byte>(kLow);
  std::vector<std::byte> high_ = std::vector<std::byte>(kHigh);
  GuestMemory memory_;
};

class CoreWriter : public testing::Test {
 protected:
  CoreWriter() {
    std::string name = testing::TempDir() + "/coreXXXXXX";
    folder_ = mkdtemp(name.data());
    path_ = folder_ / "core";
  }
  ~CoreWriter() override { std::filesystem::remove_all(folder_); }
  Result<WrittenCore> write(const CoreContents& contents = {}, const CoreProgress& progress = {}) {
    auto paused = PausedMachine::pause(guest_);
    return write_elf_core(*paused, contents, path_, progress);
  }
  static char mark_at(Machine& machine, std::uint64_t at) {
    char mark = 0;
    const bool read =
        machine.memory().read(GuestPhys(at), std::as_writable_bytes(std::span(&mark, 1)));
    return read ? mark : '-';
  }

  Guest guest_;
  std::filesystem::path folder_, path_;
};

TEST_F(CoreWriter, WhatWasWrittenIsReadBack) {
  guest_.put(0x5000, 'a');
  guest_.put(kLow - 1, 'b');
  guest_.put(kFourGib + 7, 'c');
  Registers first, second;
  std::uint64_t value = 1;
  for (const arch::Register each : arch::kByEncoding) first.*each = ++value;
  first.rip = 0xffff'ffff'8123'4567;
  first.rflags = 0x246;
  first.cs = 0x10;
  first.ss = 0x18;
  first.gs_base = 0xffff'8880'0000'0000;
  first.fs_base = 0x7000;
  first.kernel_gs_base = 0x6000;
  first.cr0 = 0x8000'0001;
  first.cr3 = 0x1000;
  first.cr4 = 0x20;
  first.efer = 0x500;
  second.rip = 0x1234;
  const std::vector vcpus{first, second};

  const auto written = write({vcpus, "OSRELEASE=6.1\n"});
  ASSERT_TRUE(written.has_value()) << written.error().message;
  EXPECT_EQ(written->memory, kLow + kHigh);
  EXPECT_EQ(written->stored, 3 * 4096u);
  auto core = SavedMachine::open(path_);
  ASSERT_TRUE(core.has_value()) << core.error().message;
  EXPECT_EQ(mark_at(**core, 0x5000), 'a');
  EXPECT_EQ(mark_at(**core, 0x6000), '\0');
  EXPECT_EQ(mark_at(**core, kLow - 1), 'b');
  EXPECT_EQ(mark_at(**core, kLow), '-');
  EXPECT_EQ(mark_at(**core, kFourGib + 7), 'c');
  EXPECT_TRUE((*core)->has_control_registers());
  auto paused = PausedMachine::pause(**core);
  EXPECT_EQ(*paused->registers(0), first);
  EXPECT_EQ(paused->registers(1)->rip, 0x1234u);
}

TEST_F(CoreWriter, PagesOfZerosTakeNoRoom) {
  guest_.put(0x5000, 'a');
  ASSERT_TRUE(write());

  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_GE(info.st_size, static_cast<off_t>(kLow + kHigh));
  EXPECT_LT(info.st_blocks * 512, 1 << 18);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(CoreWriter, AFileThatIsThereStaysAsItIs) {
  ASSERT_TRUE(write());
  guest_.put(0x5000, 'a');

  const auto again = write();

  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().message, path_.string() + " exists already, and is not overwritten");
  EXPECT_EQ(mark_at(**SavedMachine::open(path_), 0x5000), '\0');
}

TEST_F(CoreWriter, WhatCannotBeWrittenLeavesNoFile) {
  guest_.put(kLow - 1, 'a');
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, small{};
  getrlimit(RLIMIT_FSIZE, &before);
  small = before;
  small.rlim_cur = 1 << 20;
  setrlimit(RLIMIT_FSIZE, &small);
  const auto full = write();
  setrlimit(RLIMIT_FSIZE, &before);

  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().message, "cannot write " + path_.string() + ": File too large");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  path_ = folder_ / "absent" / "core";
  EXPECT_EQ(write().error().message,
            "cannot write " + path_.string() + ": No such file or directory");
}

TEST_F(CoreWriter, WhoeverGivesUpLeavesNoFile) {
  std::vector<std::byte> ram(64 << 20, std::byte{1});
  guest_.memory() = GuestMemory(std::vector<GuestMemory::Region>{{GuestPhys(0), ram}});
  unsigned asked = 0;
  const auto written = write({}, [&](std::uint64_t done, std::uint64_t all) {
    EXPECT_EQ(all, ram.size());
    EXPECT_LE(done, all);
    return ++asked < 2;
  });

  EXPECT_FALSE(written.has_value());
  EXPECT_EQ(asked, 2u);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace ringside::vmm
