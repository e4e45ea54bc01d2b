// Points that come and go under vCPUs that run: each is a thread that executes text in which int3s
// come and go, as the shim and the exit channel do it.
#include "providers/tracer/probe_armer.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unordered_map>

#include "providers/testing/fake_guest.h"
#include "vmm/base/end_order.h"
#include "vmm/linux/text/kprobe_fakes_for_tests.h"

namespace ringside::providers {
namespace {

constexpr unsigned kTrapVcpus = 2;
constexpr std::uint64_t kTrapText = 0x100000, kMutex = 0x180000, kPlaces = 0x181000;
constexpr GuestVirt kSlots{kKernelBase + 0x200000};

/// Text of `steady` and `switched`: push rbp; ret.
constexpr std::array<std::uint8_t, 2> kCode{0x55, 0xc3};
const GuestVirt kSteady = kernel_address(kTrapText), kSwitched = kernel_address(kTrapText + 0x40);

/// Its vCPUs' threads execute while nobody has paused it.
class RunningMachine final : public vmm::InertMachine {
 public:
  RunningMachine() : text(memory_) {}
  unsigned count() const override { return kTrapVcpus; }
  vmm::GuestMemory& memory() override { return memory_.memory(); }

  /// In the guest until it is destroyed.
  class Inside {
   public:
    explicit Inside(RunningMachine& machine) : machine_(machine) {
      while (machine_.wanted_ != 0) std::this_thread::yield();
      machine_.running_.lock_shared();
    }
    ~Inside() { machine_.running_.unlock_shared(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    RunningMachine& machine_;
  };

  FakeMemory& text;
  std::size_t writes = 0;
  std::optional<GuestVirt> refused;
  std::optional<ErrorCode> unpausable;

 protected:
  Result<void> pause() override {
    if (unpausable) return fail(*unpausable, "no pause");
    ++wanted_;
    running_.lock();
    return {};
  }
  Result<void> resume() override {
    running_.unlock();
    --wanted_;
    return {};
  }
  Result<void> write(std::span<const vmm::CodeWrite> bytes) override {
    for (const vmm::CodeWrite& write : bytes) {
      if (kernel_address(write.at.raw()) == refused) return fail(ErrorCode::Invalid, "refused");
      memory_.put(write.at.raw(), &write.byte, 1);
      ++writes;
    }
    return {};
  }

 private:
  FakeMemory memory_;
  std::shared_mutex running_;
  std::atomic<unsigned> wanted_ = 0;
};

/// A shim whose vCPUs answer themselves. Its table is looked at by all.
class TableShim final : public vmm::TrapTable {
 public:
  Result<GuestVirt> allocate_slot(std::size_t size) override {
    return GuestVirt(kSlots.raw() + std::exchange(used_, used_ + size));
  }
  Result<void> write_slot(GuestVirt, std::span<const std::byte>, vmm::SlotHeader) override {
    return {};
  }
  Result<void> add_entry(GuestVirt address, GuestVirt slot) override {
    const std::lock_guard lock(lock_);
    EXPECT_FALSE(entries_.contains(address.raw())) << "there already";
    known_[address.raw()] = slot;
    return {};
  }
  Result<void> enable_entries(std::span<const GuestVirt> addresses) override {
    const std::lock_guard lock(lock_);
    for (const GuestVirt address : addresses) {
      entries_.emplace(address.raw(), known_.at(address.raw()));
    }
    return {};
  }
  void disable_entry(GuestVirt address) override {
    const std::lock_guard lock(lock_);
    entries_.erase(address.raw());
  }
  void note_arming() override {}
  bool knows(GuestVirt address) const {
    const std::lock_guard lock(lock_);
    return entries_.contains(address.raw());
  }
  /// A trap of a vCPU begins, and has its answer.
  void raise(unsigned vcpu) { claims_[vcpu] += 2; }
  void release(unsigned vcpu) { ++claims_[vcpu]; }
  vmm::TrapsUnderWay under_way() const override { return {claims_[0], claims_[1]}; }
  bool have_answers(const vmm::TrapsUnderWay& traps) const override {
    for (unsigned n = 0; n < kTrapVcpus; ++n) {
      if (traps[n] % 2 == 0 && claims_[n] == traps[n] && traps[n] != 0) return false;
    }
    return true;
  }

  Result<std::vector<std::byte>> kexec_notice(GuestVirt) override {
    return std::vector<std::byte>(kKexecNoticeBytes);
  }
  std::uint64_t slot_room() const override { return 0; }
  std::optional<GuestVirt> jump_entry() const override { return std::nullopt; }
  Result<std::vector<std::byte>> fault_search(GuestVirt) override {
    return std::vector<std::byte>(kFaultSearchBytes);
  }
  Result<void> add_fault(GuestVirt, GuestVirt) override { return {}; }
  vmm::ShimState state() const override { return vmm::ShimState::There; }
  Result<void> check_mapped(vmm::PausedMachine&) const override { return {}; }
  vmm::ShimPlace place() const override { return {GuestVirt(0), 0}; }

 private:
  std::uint64_t used_ = 0;
  mutable std::mutex lock_;
  std::unordered_map<std::uint64_t, GuestVirt> known_, entries_;  // those that are enabled
  std::array<std::atomic<std::uint64_t>, kTrapVcpus> claims_{};   // even: a trap waits
};

constexpr dif::ProbeId kAlways{1}, kSometimes{2}, kToo{3};

class PointsThatComeAndGo : public ::testing::Test {
 protected:
  PointsThatComeAndGo() {
    FakeKernel::write_task(machine_.text);
    for (const std::uint64_t at : {kTrapText, kTrapText + 0x40}) {
      machine_.text.put(at, kCode.data(), kCode.size());
    }
    auto& symbols = kernel_.symbols_to_fill();
    symbols.add_module({"vmlinux", kernel_address(kTrapText), 0x1000, 0},
                       {{kSteady, 64, "steady", 't', 0},
                        {kSwitched, 64, "switched", 't', 0},
                        {kernel_address(kPlaces), 0, "kprobe_table", 'b', 0},
                        {kernel_address(kMutex), 0, "text_mutex", 'D', 0}});
    symbols.seal();
    guest_linux::fakes::add_kprobe_types(kernel_.own_types());
    table_.emplace(machine_, shim_, kernel_);
    users_.emplace(machine_, nullptr, kernel_);
    points_.emplace(machine_, shim_, *table_, *users_);
    bind(kSteady, kAlways);
    dispatcher_.publish(points_->take_first());
    dispatcher_.open();
    EXPECT_TRUE(points_->arm());
  }
  void bind(GuestVirt at, dif::ProbeId probe) {
    const auto site = points_->examine(at, SitePolicy::Normal);
    ASSERT_TRUE(site) << site.error().message;
    Binding binding;
    binding.probe = probe;
    ASSERT_TRUE(points_->bind(*site, binding));
  }
  void add(GuestVirt at, dif::ProbeId probe) {
    bind(at, probe);
    const auto armed = points_->arm_added(dispatcher_);
    ASSERT_TRUE(armed) << armed.error().message;
  }
  void remove(dif::ProbeId probe) {
    ASSERT_TRUE(points_->remove(dispatcher_, std::span(&probe, 1)));
  }
  std::uint8_t byte_at(GuestVirt at) {
    std::byte byte{};
    EXPECT_TRUE(machine_.memory().read(GuestPhys(at.raw() - kKernelBase), std::span(&byte, 1)));
    return std::to_integer<std::uint8_t>(byte);
  }

  /// A vCPU executes the instruction at `at`; false where it met an int3 that nobody explains.
  bool execute(unsigned vcpu, GuestVirt at) {
    for (;;) {
      vmm::Trap trap;
      {
        const RunningMachine::Inside inside(machine_);
        if (byte_at(at) != 0xcc) return true;
      }
      if (turn_++ % 5 == 0) std::this_thread::yield();  // paused on the way into the shim
      {
        const RunningMachine::Inside inside(machine_);
        if (!shim_.knows(at)) {
          if (byte_at(at) == 0xcc) return false;
          continue;
        }
        shim_.raise(vcpu);
      }
      if (turn_++ % 7 == 0) std::this_thread::yield();  // nobody has answered yet
      trap.address = at;
      trap.percpu_base = kernel_address(vcpu == 0 ? kPercpu0 : kPercpu1);
      trap.registers.cr3 = kRoot;
      dispatcher_.on_trap(trap);
      shim_.release(vcpu);
      return true;
    }
  }

  RunningMachine machine_;
  FakeKernel kernel_;
  TableShim shim_;
  CountingSink sink_;
  GuestClock clock_{TickRate(1'000'000'000)};
  LinuxContexts contexts_{kTrapVcpus, machine_.memory(), kernel_};
  TrapDispatcher dispatcher_{kernel_, contexts_, sink_, clock_};
  std::optional<TrapPointTable> table_;
  std::optional<UserPointTable> users_;
  std::optional<ProbeArmer> points_;
  std::atomic<unsigned> turn_ = 0;
};

TEST_F(PointsThatComeAndGo, FireFromAddingToRemoving) {
  EXPECT_TRUE(execute(0, kSwitched));
  add(kSwitched, kSometimes);
  EXPECT_TRUE(execute(0, kSwitched));
  EXPECT_TRUE(execute(1, kSteady));
  remove(kSometimes);
  EXPECT_TRUE(execute(0, kSwitched));
  EXPECT_TRUE(execute(1, kSteady));

  EXPECT_EQ(sink_.of(kSometimes), 1u);
  EXPECT_EQ(sink_.of(kAlways), 2u);
  EXPECT_EQ(byte_at(kSwitched), 0x55);
  EXPECT_EQ(byte_at(kSteady), 0xcc);
  EXPECT_FALSE(shim_.knows(kSwitched));
}

TEST_F(PointsThatComeAndGo, OneThatProbesShareStaysUntilTheLastGoes) {
  add(kSwitched, kSometimes);
  add(kSwitched, kToo);
  const std::size_t writes = machine_.writes;

  remove(kSometimes);
  EXPECT_TRUE(execute(0, kSwitched));
  EXPECT_EQ(machine_.writes, writes);
  remove(kToo);

  EXPECT_EQ(sink_.of(kSometimes), 0u);
  EXPECT_EQ(sink_.of(kToo), 1u);
  EXPECT_EQ(byte_at(kSwitched), 0x55);
}

TEST_F(PointsThatComeAndGo, AreForgottenWhereTheyCannotBeArmed) {
  bind(kSwitched, kSometimes);
  machine_.refused = kSwitched;
  EXPECT_FALSE(points_->arm_added(dispatcher_));
  machine_.refused.reset();

  EXPECT_TRUE(execute(0, kSwitched));
  EXPECT_TRUE(execute(0, kSteady));
  EXPECT_EQ(sink_.of(kSometimes), 0u);
  EXPECT_EQ(sink_.of(kAlways), 1u);
  EXPECT_FALSE(shim_.knows(kSwitched));

  add(kSwitched, kSometimes);
  EXPECT_TRUE(execute(0, kSwitched));
  EXPECT_EQ(sink_.of(kSometimes), 1u);
}

TEST_F(PointsThatComeAndGo, OfTextThatTheGuestHasChangedOnlyTheNewOnesFire) {
  add(kSwitched, kSometimes);
  const std::uint8_t other = 0x53;
  machine_.text.put(kTrapText + 0x40, &other, 1);
  EXPECT_EQ(table_->drop_changed(), std::vector{kSwitched});
  table_->look_again();

  add(kSwitched, kToo);
  EXPECT_TRUE(execute(0, kSwitched));

  EXPECT_EQ(sink_.of(kSometimes), 0u);
  EXPECT_EQ(sink_.of(kToo), 1u);
  remove(kSometimes);
  EXPECT_EQ(byte_at(kSwitched), 0xcc) << "it has no share in that one";
}

/// The vCPU that changes text may wait for the one that loads the module, which waits for us.
TEST_F(PointsThatComeAndGo, OfAModuleThatIsLoadedWaitOnlySoLongForOtherChangesOfText) {
  const std::uint64_t owner = 0xffff'8880'0001'0000;
  machine_.text.put64(kMutex + guest_linux::fakes::kOwnerAt, owner);
  set_end_order(EndOrder::Given);
  bind(kSwitched, kSometimes);

  const auto armed = points_->arm_added(dispatcher_, ProbeArmer::WaitFor::QuietKprobes);
  set_end_order(EndOrder::None);

  ASSERT_TRUE(armed) << armed.error().message;
  EXPECT_TRUE(execute(0, kSwitched));
  EXPECT_EQ(sink_.of(kSometimes), 1u);
}

TEST_F(PointsThatComeAndGo, AreGivenUpWithWhatWasBoundAndNotArmed) {
  bind(kSwitched, kSometimes);

  points_->abandon_added();

  ASSERT_TRUE(points_->arm_added(dispatcher_));
  EXPECT_TRUE(execute(0, kSwitched));
  EXPECT_EQ(sink_.of(kSometimes), 0u);
  EXPECT_EQ(byte_at(kSwitched), 0x55);
  EXPECT_FALSE(shim_.knows(kSwitched));
}

TEST_F(PointsThatComeAndGo, StayWhereTheMachineCannotBePausedAndTheUserIsTold) {
  machine_.unpausable = ErrorCode::Io;

  const auto done = points_->disarm();

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::Io);
  EXPECT_EQ(done.error().message, "the breakpoints stay in the guest: no pause");
  EXPECT_EQ(byte_at(kSteady), 0xcc);
  machine_.unpausable.reset();
  EXPECT_TRUE(points_->disarm());
}

TEST_F(PointsThatComeAndGo, AreGoneWithTheMachine) {
  machine_.unpausable = ErrorCode::MachineGone;
  EXPECT_TRUE(points_->disarm());
  machine_.unpausable.reset();
}

TEST_F(PointsThatComeAndGo, NothingIsWrittenToRemoveAProbeThatHasNone) {
  const std::size_t writes = machine_.writes;
  remove(kToo);
  EXPECT_EQ(machine_.writes, writes);
}

/// Phases of the switched probe, four a cycle; even ones last, odd ones are on the way.
enum Phase : unsigned { kOff = 0, kToOn = 1, kOn = 2, kToOff = 3 };

TEST_F(PointsThatComeAndGo, LoseNothingAndFireNowhereElseUnderVcpusThatRun) {
  constexpr unsigned kCycles = 400;
  std::atomic<unsigned> phase = kOff;
  std::atomic<bool> ended = false;
  std::array<std::atomic<std::uint64_t>, kTrapVcpus> rounds{}, wrong{}, inside{};
  std::vector<std::thread> vcpus;
  for (unsigned vcpu = 0; vcpu < kTrapVcpus; ++vcpu) {
    vcpus.emplace_back([&, vcpu] {
      while (!ended) {
        const auto fired = [&] { return sink_.of(kSometimes, vcpu); };
        const unsigned before = phase;
        const std::uint64_t count = fired();
        if (!execute(vcpu, kSwitched) || !execute(vcpu, kSteady)) ++wrong[vcpu];
        const std::uint64_t more = fired() - count;
        const unsigned after = phase;
        const bool known = before == after && before % 2 == 0;
        if (known ? more != (before % 4 == kOn ? 1 : 0) : more > 1) ++wrong[vcpu];
        if (known && before % 4 == kOn) ++inside[vcpu];
        ++rounds[vcpu];
      }
    });
  }

  const auto wait_for_rounds = [&] {
    const std::array begun{rounds[0].load(), rounds[1].load()};
    while (rounds[0] < begun[0] + 2 || rounds[1] < begun[1] + 2) std::this_thread::yield();
  };
  for (unsigned n = 0; n < kCycles && !HasFailure(); ++n) {
    ++phase;
    add(kSwitched, kSometimes);
    ++phase;
    if (n % 8 == 0) wait_for_rounds();
    if (n % 16 == 0) (void)table_->drop_changed();
    ++phase;
    remove(kSometimes);
    ++phase;
    if (n % 8 == 4) wait_for_rounds();
  }
  ended = true;
  for (std::thread& vcpu : vcpus) vcpu.join();

  for (unsigned vcpu = 0; vcpu < kTrapVcpus; ++vcpu) {
    EXPECT_EQ(wrong[vcpu], 0u) << "vCPU " << vcpu;
    EXPECT_GT(inside[vcpu], 0u) << "vCPU " << vcpu;
    EXPECT_EQ(sink_.of(kAlways, vcpu), rounds[vcpu]) << "vCPU " << vcpu;
  }
  EXPECT_TRUE(points_->disarm());
  EXPECT_EQ(byte_at(kSteady), 0x55);
}

}  // namespace
}  // namespace ringside::providers
