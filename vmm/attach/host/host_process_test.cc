#include "vmm/attach/host/host_process.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <thread>

#include "vmm/attach/host/fake_proc_for_tests.h"

namespace ringside::vmm {
namespace {

TEST(HostProcess, ALineOfMapsSaysWhatIsMapped) {
  const auto mapping = parse_mapping(
      "7f0000000000-7f0040000000 rw-s 00001000 00:01 2058                       /memfd:ram x "
      "(deleted)");

  ASSERT_TRUE(mapping.has_value());
  EXPECT_EQ(mapping->begin, 0x7f0000000000u);
  EXPECT_EQ(mapping->size(), 0x40000000u);
  EXPECT_EQ(mapping->offset, 0x1000u);
  EXPECT_EQ(mapping->device, makedev(0, 1));
  EXPECT_EQ(mapping->inode, 2058u);
  EXPECT_TRUE(mapping->readable && mapping->writable && mapping->shared);
  EXPECT_EQ(mapping->name, "/memfd:ram x (deleted)");
}

TEST(HostProcess, WhatIsNoMappingIsNone) {
  for (const char* line :
       {"", "x", "5000-4000 rw-p 0 00:00 0 ", "1000-2000 rw-p", "4000-4000 rw-p 0 0:0 0 "}) {
    EXPECT_FALSE(parse_mapping(line).has_value()) << line;
  }
}

TEST(HostProcess, MappingsThatOverlapAreRefused) {
  const FakeProc proc;
  proc.file(7, "maps", "1000-3000 rw-p 0 00:00 0 \n2000-4000 rw-p 0 00:00 0 \n");

  const auto mappings = HostProcess(7, proc.root()).mappings();

  ASSERT_FALSE(mappings.has_value());
  EXPECT_EQ(mappings.error().code, ErrorCode::Invalid);
}

TEST(HostProcess, ANameInParenthesesDoesNotMoveTheFieldsOfStat) {
  const FakeProc proc;
  proc.file(7, "stat", "7 (a) R 1 (b c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20\n");

  EXPECT_EQ(HostProcess(7, proc.root()).start_time(), 4242u);
  EXPECT_EQ(HostProcess(8, proc.root()).start_time(), std::nullopt);
}

TEST(HostProcess, ASignalThatHasStoppedItIsToldWithTheWayOut) {
  const FakeProc proc;
  const auto trouble = [&proc](const char* status) {
    proc.file(7, "task/7/status", status);
    const auto goes_on = HostProcess(7, proc.root()).check_not_stopped();
    return goes_on ? std::string() : goes_on.error().message;
  };

  EXPECT_EQ(trouble("State:\tR (running)\nTracerPid:\t0\n"), "");
  EXPECT_EQ(trouble("State:\tS (sleeping)\nTracerPid:\t9\n"), "");
  EXPECT_EQ(trouble("State:\tT (stopped)\nTracerPid:\t0\n"),
            "process 7 is stopped by a signal: 'kill -CONT 7' lets it go on");
  EXPECT_EQ(trouble("State:\tt (tracing stop)\nTracerPid:\t9\n"), "");
}

TEST(HostProcess, AThreadRunsOrWaitsInASystemCall) {
  const FakeProc proc;
  proc.thread(7, 7, "running");
  proc.thread(7, 8, "16 0x1f 0xae80 0x0 0x0 0x0 0x0 0x7ffd 0x7f12");
  proc.thread(7, 9, "-1 0x7ffd 0x7f12");
  const HostProcess process(7, proc.root());
  using Activity = HostProcess::Activity;

  EXPECT_EQ(process.threads(), (std::vector<pid_t>{7, 8, 9}));
  EXPECT_EQ(process.activity_of(7).activity, Activity::Running);
  EXPECT_EQ(process.activity_of(8).activity, Activity::InSystemCall);
  EXPECT_EQ(process.activity_of(8).call.number, 16);
  EXPECT_EQ(process.activity_of(8).call.first, 0x1fu);
  EXPECT_EQ(process.activity_of(8).call.second, 0xae80u);
  EXPECT_EQ(process.activity_of(9).activity, Activity::Unknown);
  EXPECT_EQ(process.activity_of(10).activity, Activity::Unknown);
}

TEST(HostProcess, DescriptorsAndTheProgramAreLinks) {
  const FakeProc proc;
  proc.link(7, "exe", "/usr/bin/qemu-system-x86_64 (deleted)");
  proc.link(7, "fd/3", "anon_inode:kvm-vcpu:0");
  proc.link(7, "fd/12", "/dev/kvm");
  proc.file(7, "cmdline", std::string("qemu\0-m\0", 8) + std::string("1G\0", 3));
  const HostProcess process(7, proc.root());

  const auto descriptors = process.descriptors();

  ASSERT_TRUE(descriptors.has_value());
  ASSERT_EQ(descriptors->size(), 2u);
  EXPECT_EQ((*descriptors)[0].number, 3);
  EXPECT_EQ((*descriptors)[0].target, "anon_inode:kvm-vcpu:0");
  EXPECT_EQ(process.program(), "qemu-system-x86_64");
  EXPECT_EQ(process.command_line(), (std::vector<std::string>{"qemu", "-m", "1G"}));
}

TEST(HostProcess, WhatIsNotThereIsNotFound) {
  const FakeProc proc;
  const HostProcess process(7, proc.root());

  EXPECT_FALSE(process.exists());
  EXPECT_EQ(process.mappings().error().code, ErrorCode::NotFound);
  EXPECT_EQ(process.descriptors().error().code, ErrorCode::NotFound);
  EXPECT_EQ(process.user(), std::nullopt);
  EXPECT_TRUE(process.threads().empty());
}

TEST(HostProcess, WeAreAProcessToo) {
  const HostProcess self(getpid());
  const auto all = HostProcess::all();

  EXPECT_TRUE(self.exists());
  EXPECT_EQ(self.user(), getuid());
  EXPECT_GT(self.start_time().value_or(0), 0u);
  EXPECT_TRUE(std::ranges::any_of(all, [](const auto& each) { return each.pid() == getpid(); }));
  ASSERT_TRUE(self.mappings().has_value());
  EXPECT_GT(self.mappings()->size(), 5u);
}

TEST(HostProcess, ListsItsThreads) {
  const HostProcess self(getpid());
  const std::vector<pid_t> before = self.all_threads();
  std::promise<pid_t> started;
  std::promise<void> end;
  std::thread other([&] {
    started.set_value(static_cast<pid_t>(syscall(SYS_gettid)));
    end.get_future().wait();
  });
  std::vector<pid_t> expected = before;
  expected.push_back(started.get_future().get());
  std::ranges::sort(expected);

  EXPECT_EQ(self.all_threads(), expected);
  end.set_value();
  other.join();
  EXPECT_TRUE(HostProcess(0x7fff'fff0).all_threads().empty());
}

}  // namespace
}  // namespace ringside::vmm
