// A process of our own that plays a VMM: a memfd as RAM, one vCPU under KVM, and in the RAM what is
// looked for of a Linux. ringside is a stranger to it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/kvm.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "vmm/attach/process/process_machine.h"
#include "vmm/attach/ram/fake_guest_for_tests.h"
#include "vmm/base/sanitized.h"
#include "vmm/copied_bytes.h"

namespace ringside::vmm {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kRam = 64 << 20, kImage = 16 << 20;
constexpr std::uint64_t kCode = 0x1000, kCounter = 0x2000;
// again: inc word [0x2000]; jmp again; in real mode.
constexpr std::array<std::uint8_t, 6> kLoop{0xff, 0x06, 0x00, 0x20, 0xeb, 0xfa};

/// Why this host cannot run the guest; empty when it can.
std::string run_guest(int ram) {
  const int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
  if (kvm < 0) return "/dev/kvm cannot be opened";
  const int vm = ioctl(kvm, KVM_CREATE_VM, 0);
  void* memory = mmap(nullptr, kRam, PROT_READ | PROT_WRITE, MAP_SHARED, ram, 0);
  // SAFETY: KVM takes the address as a number.
  kvm_userspace_memory_region region{0, 0, 0, kRam, reinterpret_cast<std::uint64_t>(memory)};
  if (vm < 0 || memory == MAP_FAILED || ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) != 0) {
    return "KVM takes no memory";
  }
  const int vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
  const int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
  if (vcpu < 0 || size <= 0 ||
      mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0) ==
          MAP_FAILED) {
    return "KVM makes no vCPU";
  }
  kvm_sregs sregs{};
  kvm_regs regs{};
  ioctl(vcpu, KVM_GET_SREGS, &sregs);
  sregs.cs.base = 0;
  sregs.cs.selector = 0;
  regs.rip = kCode;
  regs.rflags = 2;
  if (ioctl(vcpu, KVM_SET_SREGS, &sregs) != 0 || ioctl(vcpu, KVM_SET_REGS, &regs) != 0) {
    return "KVM takes no registers";
  }
  while (ioctl(vcpu, KVM_RUN, 0) == 0 || errno == EINTR) {
  }
  return "KVM_RUN failed";
}

class Stranger : public testing::Test {
 protected:
  void SetUp() override {
#ifdef RINGSIDE_SANITIZED
    GTEST_SKIP() << "a process under this sanitizer has terabytes of shadow that look like RAM";
#endif
    ram_ = UniqueFd(memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_TRUE(ram_);
    ASSERT_EQ(ftruncate(ram_.get(), kRam), 0);
    seal();
    FileMemory bytes(UniqueFd(dup(ram_.get())));
    FakeLinux guest(
        bytes, [](std::uint64_t at) { return at; }, kImage, kRam);
    ASSERT_TRUE(bytes.write(kCode, std::as_bytes(std::span(kLoop))));
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)run_guest(ram_.get());
      _exit(1);
    }
    if (!counts()) {
      ASSERT_EQ(std::getenv("RINGSIDE_KVM_REQUIRED"), nullptr) << "the guest does not run";
      GTEST_SKIP() << "no guest runs in this host's KVM";
    }
  }
  void TearDown() override {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  virtual void seal() {
    ASSERT_EQ(fcntl(ram_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  }

  std::uint16_t counter() const {
    std::uint16_t value = 0;
    EXPECT_EQ(pread(ram_.get(), &value, sizeof value, kCounter), sizeof value);
    return value;
  }
  /// Whether the guest counts, before its process ends.
  bool counts() const {
    const std::uint16_t before = counter();
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (counter() == before) {
      siginfo_t ended{};
      waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOHANG | WNOWAIT);
      if (ended.si_pid != 0) return false;
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  bool stands_still() const {
    const std::uint16_t before = counter();
    std::this_thread::sleep_for(20ms);
    return counter() == before;
  }

  UniqueFd ram_;
  pid_t child_ = -1;
};

TEST_F(Stranger, IsAMachineWithoutItsHelp) {
  auto machine = ProcessMachine::attach(child_);

  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  EXPECT_EQ((*machine)->vcpu_count(), 1u);
  EXPECT_EQ((*machine)->host_process(), child_);
  EXPECT_EQ((*machine)->release(), FakeLinux::kRelease);
  EXPECT_EQ((*machine)->memory().size(), kRam);
  EXPECT_FALSE((*machine)->memory().mapping(GuestPhys(0), 16).empty()) << "a file is mapped";
  EXPECT_EQ((*machine)->status().state(), MachineState::Running);
  EXPECT_TRUE(counts());
}

TEST_F(Stranger, StandsStillInAPauseAndShowsItsRegisters) {
  auto machine = ProcessMachine::attach(child_);
  ASSERT_TRUE(machine.has_value()) << machine.error().message;

  bool shown = false;
  // A vCPU that is outside KVM_RUN when it stops has no registers to show.
  for (int i = 0; i < 5 || (!shown && i < 1000); ++i) {
    {
      auto paused = PausedMachine::pause(**machine);
      ASSERT_TRUE(paused.has_value()) << paused.error().message;
      EXPECT_TRUE(stands_still());
      {
        const auto again = PausedMachine::pause(**machine);
        EXPECT_TRUE(again.has_value());
      }
      EXPECT_TRUE(stands_still()) << "pauses nest";
      const auto registers = paused->registers(0);
      if (registers) {
        shown = true;
        EXPECT_LT(registers->rip - kCode, kLoop.size());
      }
      EXPECT_FALSE(paused->registers(1).has_value());
    }
    EXPECT_TRUE(counts());
  }
  EXPECT_TRUE(shown);
}

TEST_F(Stranger, RunsTheCodeThatIsWritten) {
  auto machine = ProcessMachine::attach(child_);
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  {
    auto paused = PausedMachine::pause(**machine);
    ASSERT_TRUE(paused.has_value());
    // jmp to itself
    const std::array<CodeWrite, 2> writes{
        {{GuestPhys(kCode + 4), 0xeb}, {GuestPhys(kCode + 5), 0xfe}}};
    ASSERT_TRUE(paused->write_code(writes).has_value());
    EXPECT_FALSE(
        paused->write_code(std::array<CodeWrite, 1>{{{GuestPhys(kRam), 0x90}}}).has_value());
  }
  while (!stands_still()) {
  }
  {
    auto paused = PausedMachine::pause(**machine);
    ASSERT_TRUE(paused.has_value());
    const std::array<CodeWrite, 1> writes{{{GuestPhys(kCode + 5), 0xfa}}};
    ASSERT_TRUE(paused->write_code(writes).has_value());
  }

  EXPECT_TRUE(counts());
}

TEST_F(Stranger, GoesOnWhenWeTurnAway) {
  {
    auto machine = ProcessMachine::attach(child_);
    ASSERT_TRUE(machine.has_value());
    const auto second = ProcessMachine::attach(child_);
    EXPECT_EQ(second.error().code, ErrorCode::Limit) << "one at a time";
    (*machine)->shut_down();
  }

  EXPECT_TRUE(counts());
  EXPECT_TRUE(ProcessMachine::attach(child_).has_value());
}

TEST_F(Stranger, ItsEndIsSeen) {
  auto machine = ProcessMachine::attach(child_);
  ASSERT_TRUE(machine.has_value());

  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
  child_ = -1;

  EXPECT_EQ((*machine)->status().state(), MachineState::Died);
  EXPECT_EQ(PausedMachine::pause(**machine).error().code, ErrorCode::MachineGone);
}

class UnsealedStranger : public Stranger {
  void seal() override {}
};

TEST_F(UnsealedStranger, IsCopiedBecauseItsFileMayShrink) {
  auto machine = ProcessMachine::attach(child_);

  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  EXPECT_TRUE((*machine)->memory().mapping(GuestPhys(0), 16).empty());
  ASSERT_EQ(ftruncate(ram_.get(), 4096), 0);
  std::byte byte{};
  EXPECT_FALSE((*machine)->memory().read(GuestPhys(kImage), std::span(&byte, 1)));
}

}  // namespace
}  // namespace ringside::vmm
