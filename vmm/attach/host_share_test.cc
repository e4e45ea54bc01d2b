#include "vmm/attach/host_share.h"

#include <gtest/gtest.h>

#include "vmm/attach/host/fake_proc_for_tests.h"

namespace ringside::vmm {
namespace {

using std::chrono::milliseconds;
using Lines = std::vector<std::string>;

/// A QEMU of two threads in a control group of either version.
class HostShares : public testing::Test {
 protected:
  HostShares() {
    proc_.file(7, "task/7/cgroup", "4:cpu,cpuacct:/machine/web1\n1:name=systemd:/\n0::/\n");
    std::ofstream(std::filesystem::create_directories(proc_.root() + "/self")
                      ? proc_.root() + "/self/mountinfo"
                      : "")
        << "31 23 0:28 / " << proc_.root() << "/v1 rw - cgroup cgroup rw,cpu,cpuacct\n"
        << "32 23 0:29 / " << proc_.root() << "/v2 rw - cgroup2 cgroup2 rw\n";
    thread(7, "qemu", 'S', 5, 0);
    thread(8, "CPU 0/KVM", 'S', 5, 0);
  }
  void thread(pid_t id, const std::string& name, char state, std::uint64_t on_cpu_ms,
              std::uint64_t queued_ms) {
    const std::string folder = "task/" + std::to_string(id) + "/";
    proc_.file(7, folder + "comm", name + "\n");
    proc_.file(7, folder + "status", std::string("Name:\tx\nState:\t") + state + " (x)\n");
    proc_.file(7, folder + "stat", "8 (x) S 1 1 1 0 -1 4194304 0\n");
    proc_.file(7, folder + "wchan", "folio_wait_bit");
    proc_.file(7, folder + "schedstat",
               fmt::format("{} {} 12\n", on_cpu_ms * 1'000'000, queued_ms * 1'000'000));
  }
  void group(const std::string& folder, std::uint64_t periods, std::uint64_t throttled) {
    std::filesystem::create_directories(proc_.root() + folder);
    std::ofstream(proc_.root() + folder + "/cpu.stat")
        << "nr_periods " << periods << "\nnr_throttled " << throttled << "\nthrottled_time 1\n";
  }
  HostShare look(int ms) const {
    return HostShare::look(7, proc_.root(), HostShare::Time::time_point(milliseconds(ms)));
  }

  FakeProc proc_;
};

TEST_F(HostShares, AThreadThatSleepsOrRunsIsNotHeldBack) {
  const HostShare before = look(0);
  thread(8, "CPU 0/KVM", 'R', 900, 600);

  EXPECT_EQ(look(1500).held_back_since(before), Lines());
}

TEST_F(HostShares, AThreadThatGetsNoCpuIsNamed) {
  thread(8, "CPU 0/KVM", 'R', 5, 0);
  const HostShare before = look(0);
  const Lines wanted{
      "its thread 8 (\"CPU 0/KVM\") wanted a CPU of the host and waited for one for 2.0 of the "
      "last "
      "2.0 s"};

  EXPECT_EQ(look(2000).held_back_since(before), wanted) << "it has not got one yet";
  thread(8, "CPU 0/KVM", 'S', 6, 1995);
  EXPECT_EQ(look(2000).held_back_since(before), wanted) << "it got one at the end";
}

TEST_F(HostShares, AThreadThatWaitsForTheHostsStorageIsNamedWithThePlace) {
  thread(8, "CPU 0/KVM", 'D', 5, 0);
  const HostShare before = look(0);

  EXPECT_EQ(
      look(1000).held_back_since(before),
      Lines({"its thread 8 (\"CPU 0/KVM\") waits for the host's memory or storage (state D, in "
             "folio_wait_bit)"}));
  thread(8, "CPU 0/KVM", 'D', 6, 0);
  EXPECT_EQ(look(1000).held_back_since(before), Lines()) << "it ran meanwhile";
}

TEST_F(HostShares, AThreadWhoseMemoryHasYetToComeIsNamed) {
  proc_.file(7, "task/8/wchan", "handle_userfault");
  const HostShare before = look(0);
  const Lines lines = look(1000).held_back_since(before);

  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(
      lines[0].starts_with("its thread 8 (\"CPU 0/KVM\") waits for memory that the host "
                           "has yet to bring (userfaultfd"))
      << lines[0];
}

TEST_F(HostShares, MemoryThatIsReadBackFromTheHostsSwapIsTold) {
  const auto faults = [this](unsigned all) {
    proc_.file(7, "task/8/stat", fmt::format("8 (x) y) R 1 1 1 0 -1 4194304 9 0 {} 0 0 0\n", all));
  };
  faults(1000);
  proc_.file(7, "status", "Name:\tx\nVmSwap:\t  204800 kB\n");
  const HostShare before = look(0);
  faults(1199);
  EXPECT_EQ(look(2000).held_back_since(before), Lines()) << "a few";
  faults(1200);
  EXPECT_EQ(look(2000).held_back_since(before),
            Lines({"the host has swapped out 200 MiB of its memory, and read parts of it back 200 "
                   "times in the last 2.0 s"}));
  proc_.file(7, "status", "Name:\tx\nVmSwap:\t0 kB\n");
  EXPECT_EQ(look(2000).held_back_since(before), Lines()) << "of files, when a program begins";
}

TEST_F(HostShares, AControlGroupThatIsThrottledIsNamedAlsoAboveTheProcesss) {
  for (const std::string folder : {"/v1/machine/web1", "/v1/machine"}) {
    group("/v1/machine/web1", 10, 0);
    group("/v1/machine", 10, 0);
    const HostShare before = look(0);
    group(folder, 30, 18);

    const Lines lines = look(2000).held_back_since(before);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_TRUE(lines[0].starts_with("the control group " + proc_.root() + folder + " of its"));
    EXPECT_NE(lines[0].find("in 18 of the last 20 periods"), lines[0].npos) << lines[0];
  }
}

TEST_F(HostShares, AThreadsOwnGroupOfVersionTwoCounts) {
  proc_.file(7, "task/8/cgroup", "0::/machine.slice/web1/vcpu0\n");
  group("/v2/machine.slice/web1/vcpu0", 10, 5);
  const HostShare before = look(0);
  group("/v2/machine.slice/web1/vcpu0", 30, 25);

  EXPECT_EQ(look(2000).held_back_since(before).size(), 1U);
  group("/v2/machine.slice/web1/vcpu0", 30, 6);
  EXPECT_EQ(look(2000).held_back_since(before), Lines()) << "throttled once";
}

TEST_F(HostShares, NonsenseIsLeftOut) {
  const HostShare before = look(0);
  proc_.file(7, "task/7/cgroup", "4:cpu:/../../etc\n::\nx\n0::\n");
  proc_.file(7, "task/8/schedstat", "-1 x\n");
  proc_.file(7, "task/9/comm", "\x1b[2J\n");

  EXPECT_EQ(look(5000).held_back_since(before), Lines());
  EXPECT_EQ(HostShare::look(99, proc_.root()).held_back_since(before), Lines());
}

}  // namespace
}  // namespace ringside::vmm
