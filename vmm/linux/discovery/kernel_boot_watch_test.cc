#include "vmm/linux/discovery/kernel_boot_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "vmm/fake_vcpu_exits_for_tests.h"
#include "vmm/inert_machine_for_tests.h"
#include "vmm/linux/text/small_elf_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::kText;
using fakes::SmallElf;
using vmm::VcpuEvent;

constexpr std::string_view kBanner = "Linux version 6.1.0-small (someone@somewhere)\n";
constexpr std::uint64_t kSlide = 0x0c40'0000;
constexpr std::uint64_t kRoot = 0x1000, kTables = 0x2000;  // guest-physical
constexpr std::uint64_t kImage = 0x60'0000;                // where the text lies; linked at 16 MiB

/// A file whose kernel is linked at kText, with one number that a move changes.
std::vector<std::byte> kernel_bytes(std::string_view banner = kBanner) {
  SmallElf elf;
  elf.put_text(kText, "text");
  elf.put_text(kText + 0x1f0, "Linux version of something");
  elf.put_text(kText + 0x800, banner);
  std::vector<std::byte> bytes = elf.write({{"linux_banner", kText + 0x800, 0, 0x11}});
  fakes::Bytes table;
  table.add(0).add(0).add(0).add(static_cast<std::int32_t>(kText + 0x40));
  bytes.insert(bytes.end(), table.bytes().begin(), table.bytes().end());
  return bytes;
}

/// A machine in whose RAM that kernel lies and is mapped, moved by kSlide.
class MovedKernel final : public vmm::InertMachine {
 public:
  MovedKernel() : memory_({{GuestPhys(0), std::span(ram_)}}) {
    put64(kRoot + 511 * 8, kTables | 1);
    put64(kTables + 510 * 8, (kTables + 0x1000) | 1);
    const std::uint64_t large = (kText + kSlide - 0xffff'ffff'8000'0000) >> 21;
    put64(kTables + 0x1000 + large * 8, kImage | 0x81);
    put_text(kImage, "text");
    put_text(kImage + 0x1f0, "Linux version of something");
    put_text(kImage + 0x800, kBanner);
    put64(kImage + 0x40, kSlide);
  }
  void put64(std::uint64_t at, std::uint64_t value) {
    EXPECT_TRUE(memory_.write(GuestPhys(at), std::as_bytes(std::span(&value, 1))));
  }
  void put_text(std::uint64_t at, std::string_view text) {
    EXPECT_TRUE(memory_.write(GuestPhys(at), std::as_bytes(std::span(text.data(), text.size()))));
  }
  vmm::GuestMemory& memory() override { return memory_; }
  vmm::VcpuExits* exits() override { return &fake; }
  void shut_down() override { ++shut; }

  vmm::FakeVcpuExits fake;
  std::atomic<unsigned> pauses{0}, resumed{0};
  std::function<void()> before_pause = [] {};
  unsigned shut = 0;
  bool gone = false;

 private:
  Result<void> pause() override {
    before_pause();
    if (gone) return fail(ErrorCode::MachineGone, "the guest has ended");
    ++pauses;
    return {};
  }
  Result<void> resume() override {
    ++resumed;
    return {};
  }

  std::vector<std::byte> ram_ = std::vector<std::byte>(8 << 20);
  vmm::GuestMemory memory_;
};

const vmm::PageTable kTable{GuestPhys(kRoot), 4, 0};

TEST(FindMove, GivesBothSlidesOfAMovedKernel) {
  MovedKernel machine;

  const auto move = find_kaslr_offset(kernel_bytes(), machine.memory(), kTable);

  ASSERT_TRUE(move);
  EXPECT_EQ(move->slide, static_cast<std::int64_t>(kSlide));
  EXPECT_EQ(move->physical_slide, static_cast<std::int64_t>(kImage) - 0x100'0000);
}

TEST(FindMove, BelievesNoOtherBuildAndNoOtherText) {
  MovedKernel machine;
  EXPECT_FALSE(
      find_kaslr_offset(kernel_bytes("Linux version 6.1.0-other (x)\n"), machine.memory(), kTable));

  machine.put64(kImage + 0x40, kSlide + 1);
  EXPECT_FALSE(find_kaslr_offset(kernel_bytes(), machine.memory(), kTable)) << "text differs";
  EXPECT_FALSE(find_kaslr_offset({}, machine.memory(), kTable));
  EXPECT_FALSE(find_kaslr_offset(kernel_bytes(), machine.memory(), {GuestPhys(0x5000), 4, 0}));
}

bool is_readable(int fd) {
  pollfd wanted{fd, POLLIN, 0};
  return ::poll(&wanted, 1, 0) == 1;
}

class Arrival : public testing::Test {
 protected:
  void SetUp() override {
    auto watched = KernelBootWatch::watch(machine_);
    ASSERT_TRUE(watched) << watched.error().message;
    arrival_ = std::move(*watched);
  }
  /// A vCPU writes an MSR at `rip`.
  void write_msr(std::uint64_t rip) {
    vmm::FakeStoppedVcpu vcpu;
    vcpu.state.rip = rip;
    vcpu.state.cr3 = kRoot | 0x18;
    arrival_->on_event(vcpu, {VcpuEvent::Kind::MsrWrite, 0, {0xc000'0101, 0}});
    ++written_;
  }
  void await_arrival() const {
    pollfd wanted{arrival_->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&wanted, 1, 600'000), 1);
  }

  MovedKernel machine_;
  std::unique_ptr<KernelBootWatch> arrival_;
  std::atomic<unsigned> written_{0};
};

TEST_F(Arrival, IsNotYetWhileTheDecompressorRuns) {
  EXPECT_TRUE(machine_.fake.wants(VcpuEvent::Kind::MsrWrite));

  write_msr(0x100'0000);

  EXPECT_FALSE(is_readable(arrival_->fd()));
}

TEST_F(Arrival, HoldsTheVcpuUntilTheMachineIsPaused) {
  std::thread vcpu([this] { write_msr(kText + kSlide + 0x100); });
  await_arrival();
  EXPECT_EQ(written_, 0u);
  const unsigned resumed = machine_.resumed;

  const auto arrived = arrival_->take(fakes::kernel_file(kernel_bytes()));
  vcpu.join();

  ASSERT_TRUE(arrived) << arrived.error().message;
  EXPECT_EQ(arrived->move.slide, static_cast<std::int64_t>(kSlide));
  EXPECT_EQ(machine_.resumed, resumed) << "the machine stands still";
  EXPECT_EQ(machine_.fake.sink, nullptr);
  EXPECT_FALSE(machine_.fake.wants(VcpuEvent::Kind::MsrWrite));
}

TEST_F(Arrival, OfAnotherKernelSaysWhatElseCanBeDone) {
  std::thread vcpu([this] { write_msr(kText + kSlide + 0x100); });
  await_arrival();

  const auto arrived =
      arrival_->take(fakes::kernel_file(kernel_bytes("Linux version 6.1.0-other (x)\n")));
  vcpu.join();

  ASSERT_FALSE(arrived);
  EXPECT_NE(arrived.error().message.find("bootargs=nokaslr"), std::string::npos);
}

TEST_F(Arrival, ThatNobodyTakesLetsTheVcpuGo) {
  std::thread vcpu([this] { write_msr(kText + kSlide + 0x100); });
  await_arrival();
  machine_.before_pause = [&] { vcpu.join(); };

  arrival_.reset();

  EXPECT_EQ(machine_.fake.sink, nullptr);
  EXPECT_EQ(machine_.pauses, machine_.resumed);
}

TEST_F(Arrival, InAMachineThatEndedWaitsForItsThreads) {
  machine_.gone = true;

  arrival_.reset();

  EXPECT_EQ(machine_.shut, 1u);
}

}  // namespace
}  // namespace ringside::guest_linux
