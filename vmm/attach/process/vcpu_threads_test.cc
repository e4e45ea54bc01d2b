#include "vmm/attach/process/vcpu_threads.h"

#include <gtest/gtest.h>

#include "vmm/attach/host/fake_proc_for_tests.h"

namespace ringside::vmm {
namespace {

constexpr pid_t kPid = 7;
constexpr const char* kInRun0 = "16 0x14 0xae80 0x0 0x0 0x0 0x0 0x7ffd 0x7f12";
constexpr const char* kInRun1 = "16 0x15 0xae80 0x0 0x0 0x0 0x0 0x7ffd 0x7f12";

class VcpuThreads : public testing::Test {
 protected:
  VcpuThreads() {
    proc_.link(kPid, "fd/3", "/dev/kvm");
    proc_.link(kPid, "fd/4", "anon_inode:kvm-vm");
    proc_.link(kPid, "fd/20", "anon_inode:kvm-vcpu:0");
    proc_.link(kPid, "fd/21", "anon_inode:kvm-vcpu:1");
    proc_.link(kPid, "fd/22", "anon_inode:kvm-vcpu:1");  // a second descriptor of one vCPU
    proc_.file(kPid, "maps",
               "7f0000001000-7f0000004000 rw-s 00000000 00:0e 1 anon_inode:kvm-vcpu:1\n"
               "7f0000005000-7f0000008000 rw-s 00000000 00:0e 1 anon_inode:kvm-vcpu:0\n");
    proc_.thread(kPid, 7, "7 0x7f 0x1 0x0 0x0 0x0 0x0 0x7ffd 0x7f12");  // poll()
  }
  Result<std::vector<VcpuThread>> find() {
    return find_vcpu_threads(HostProcess(kPid, proc_.root()), stopper_);
  }

  FakeProc proc_;
  ThreadStopper stopper_;
};

TEST_F(VcpuThreads, AreThoseThatSitInKvmRun) {
  proc_.thread(kPid, 8, kInRun1);
  proc_.thread(kPid, 9, kInRun0);
  proc_.thread(kPid, 10, "16 0x14 0xae41 0x0 0x0 0x0 0x0 0x7ffd 0x7f12");  // another ioctl

  const auto threads = find();

  ASSERT_TRUE(threads.has_value()) << threads.error().message;
  ASSERT_EQ(threads->size(), 2u);
  EXPECT_EQ((*threads)[0].number, 0u);
  EXPECT_EQ((*threads)[0].thread, 9);
  EXPECT_EQ((*threads)[0].run_page, 0x7f0000005000u);
  EXPECT_EQ((*threads)[1].thread, 8);
  EXPECT_EQ((*threads)[1].run_page, 0x7f0000001000u);
}

TEST_F(VcpuThreads, AllMustBeThere) {
  proc_.thread(kPid, 9, kInRun0);

  const auto threads = find();

  ASSERT_FALSE(threads.has_value());
  EXPECT_EQ(threads.error().code, ErrorCode::Unsupported);
  EXPECT_NE(threads.error().message.find("only 1 of its 2 vCPUs"), std::string::npos)
      << threads.error().message;
}

constexpr const char* kOnly0 =
    "7f0000005000-7f0000008000 rw-s 00000000 00:0e 1 anon_inode:kvm-vcpu:0\n";
constexpr const char* kBothElsewhere =
    "7f0000001000-7f0000004000 rw-s 00000000 00:0e 1 anon_inode:kvm-vcpu:0\n"
    "7f0000009000-7f000000c000 rw-s 00000000 00:0e 1 anon_inode:kvm-vcpu:1\n";

TEST_F(VcpuThreads, OneThatWasUnpluggedHasADescriptorOnly) {
  proc_.thread(kPid, 9, kInRun0);
  proc_.file(kPid, "maps", kOnly0);

  const auto threads = find();

  ASSERT_TRUE(threads.has_value()) << threads.error().message;
  ASSERT_EQ(threads->size(), 1u);
  EXPECT_EQ((*threads)[0].number, 0u);
  EXPECT_EQ(vcpus_in_use(HostProcess(kPid, proc_.root())), std::set<unsigned>{0});
  proc_.file(kPid, "maps", "");
  EXPECT_EQ(vcpus_in_use(HostProcess(kPid, proc_.root())), (std::set<unsigned>{0, 1}))
      << "nobody says which are mapped";
}

TEST_F(VcpuThreads, OneComesAndGoesAndComesAgain) {
  const HostProcess process(kPid, proc_.root());
  proc_.thread(kPid, 8, kInRun1);
  proc_.thread(kPid, 9, kInRun0);
  auto threads = find().value();
  using Known = std::vector<std::pair<unsigned, pid_t>>;
  const auto known_after_a_look = [&] {
    const auto updated = update_vcpu_threads(process, stopper_, threads);
    EXPECT_TRUE(updated) << updated.error().message;
    Known known;
    for (const VcpuThread& each : threads) known.emplace_back(each.number, each.thread);
    return known;
  };
  EXPECT_EQ(known_after_a_look(), (Known{{0, 9}, {1, 8}}));

  // The first of them is unplugged, and another thread of its process takes its id's place.
  proc_.remove(kPid, "task/9");
  proc_.thread(kPid, 12, "7 0x7f 0x1 0x0 0x0 0x0 0x0 0x7ffd 0x7f12");
  proc_.file(kPid, "maps",
             "7f0000001000-7f0000004000 rw-s 00000000 00:0e 1 anon_inode:kvm-vcpu:1\n");
  EXPECT_EQ(known_after_a_look(), (Known{{1, 8}}));
  EXPECT_FALSE(threads[0].is_plugged_in);

  // It is plugged in again: the same descriptor, another thread and another page.
  proc_.thread(kPid, 13, kInRun0);
  proc_.file(kPid, "maps", kBothElsewhere);
  EXPECT_EQ(known_after_a_look(), (Known{{1, 8}, {0, 13}}));
  EXPECT_TRUE(threads[1].is_plugged_in);
  EXPECT_EQ(threads[1].run_page, 0x7f0000001000u);
}

TEST_F(VcpuThreads, TheKernelsOwnWorkerShowsTheCallThatMadeIt) {
  proc_.thread(kPid, 8, kInRun1);
  proc_.thread(kPid, 9, kInRun0);
  proc_.thread(kPid, 10, kInRun0);
  proc_.file(kPid, "task/9/stat", "9 (vcpu 0) S 1 7 7 0 -1 4194624 0\n");
  proc_.file(kPid, "task/10/stat", "10 (kvm-nx-lpage-re) S 1 7 7 0 -1 4210752 0\n");

  const auto threads = find();

  ASSERT_TRUE(threads.has_value()) << threads.error().message;
  EXPECT_EQ((*threads)[0].thread, 9);
}

TEST_F(VcpuThreads, TwoForOneVcpuAreTwoGuests) {
  proc_.thread(kPid, 8, kInRun1);
  proc_.thread(kPid, 9, kInRun0);
  proc_.thread(kPid, 10, kInRun0);

  const auto threads = find();

  ASSERT_FALSE(threads.has_value());
  EXPECT_NE(threads.error().message.find("2 threads that run a vCPU 0"), std::string::npos);
}

TEST_F(VcpuThreads, AProcessWithoutAVcpuHasNone) {
  proc_.file(8, "maps", "");
  proc_.link(8, "fd/0", "/dev/null");

  const auto threads = find_vcpu_threads(HostProcess(8, proc_.root()), stopper_);

  ASSERT_FALSE(threads.has_value());
  EXPECT_NE(threads.error().message.find("runs no vCPU by KVM"), std::string::npos);
}

TEST(VcpuNumber, IsReadFromWhatADescriptorLeadsTo) {
  EXPECT_EQ(vcpu_number("anon_inode:kvm-vcpu:12"), 12u);
  for (const char* other : {"anon_inode:kvm-vcpu:", "anon_inode:kvm-vcpu:1x", "anon_inode:kvm-vm",
                            "anon_inode:kvm-vcpu-stats:0", "/tmp/anon_inode:kvm-vcpu:0"}) {
    EXPECT_EQ(vcpu_number(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace ringside::vmm
