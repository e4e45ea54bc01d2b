#include "vmm/linux/health/diagnosis.h"

#include <gtest/gtest.h>

namespace ringside::guest_linux {
namespace {

using Kind = Cause::Kind;
constexpr std::uint64_t kLogSecond = 1'000'000'000;

Task task(std::int64_t pid, std::string name, TaskState state = TaskState::Uninterruptible) {
  Task made;
  made.address = GuestVirt(0xffff'8880'0000'0000 + static_cast<std::uint64_t>(pid) * 0x1000);
  made.pid = made.process = pid;
  made.name = std::move(name);
  made.state = state;
  made.since = 5 * kLogSecond;
  return made;
}

TaskReport waiter(std::int64_t pid, std::int64_t owner) {
  TaskReport report{task(pid, "t" + std::to_string(pid)), {}, Wait()};
  report.wait->what = Wait::For::Lock;
  report.wait->function = "__mutex_lock";
  report.wait->lock = GuestVirt(0xffff'8880'0000'0008);
  report.wait->owner = owner;
  report.wait->owner_task = task(owner, "").address;
  return report;
}

TaskReport waiter_for_io(std::int64_t pid) {
  TaskReport report{task(pid, "t" + std::to_string(pid)), {}, Wait()};
  report.wait->what = Wait::For::Io;
  report.wait->function = "folio_wait_bit_common";
  return report;
}

CpuReport cpu(std::uint32_t number, Task running) {
  running.is_on_cpu = true;
  running.state = TaskState::Running;
  running.cpu = number;
  CpuReport report;
  report.cpu = number;
  report.running = TaskReport{std::move(running), {}, {}};
  return report;
}

CpuReport idle_cpu(std::uint32_t number) {
  CpuReport report = cpu(number, task(0, "swapper"));
  report.is_idle = true;
  return report;
}

VcpuReport vcpu(unsigned number, VcpuReport::Mode mode) {
  VcpuReport report;
  report.vcpu = number;
  report.cpu = number;
  report.mode = mode;
  report.where = "some_function+0x10";
  return report;
}

HealthReport linux_report() {
  HealthReport report;
  report.release = "6.1.0";
  report.vcpus = {vcpu(0, VcpuReport::Mode::Kernel), vcpu(1, VcpuReport::Mode::Kernel)};
  report.cpus = {idle_cpu(0), idle_cpu(1)};
  return report;
}

Kind first_kind(const HealthReport& report) {
  return diagnose(report).front().kind;
}

TEST(Diagnosis, AGuestWhoseCpusAreIdleAndInWhichNobodyWaitsIsWell) {
  EXPECT_EQ(first_kind(linux_report()), Kind::AllIdle);
}

TEST(Diagnosis, WithoutLinuxTheVcpusSayHowFarItGot) {
  HealthReport report;
  report.kernel_trouble = "no kernel";
  EXPECT_EQ(first_kind(report), Kind::NoLinux);
  report.vcpus = {vcpu(0, VcpuReport::Mode::Firmware), vcpu(1, VcpuReport::Mode::Firmware)};
  EXPECT_EQ(first_kind(report), Kind::Firmware);
  report.vcpus[0].has_not_begun = report.vcpus[1].has_not_begun = true;
  EXPECT_EQ(first_kind(report), Kind::NotStarted);
  report.vcpus[0] = vcpu(0, VcpuReport::Mode::Kernel);
  EXPECT_EQ(first_kind(report), Kind::NoLinux);
  report.vcpus[0] = vcpu(0, VcpuReport::Mode::Narrow);
  EXPECT_EQ(diagnose(report).front().text,
            "the guest's system has 32 bits: ringside knows Linux of x86-64 only");
}

TEST(Diagnosis, AGuestThatDoesNotRunIsSaidToBeStoppedAndNotToSpin) {
  HealthReport report = linux_report();
  report.stopped_by = "its owner has paused it";
  report.cpus = {cpu(0, task(7, "sh")), cpu(1, task(8, "sh"))};
  report.vcpus[0].interrupts_on = false;
  report.vcpus[0].interrupts_off_for = kLogSecond;

  const auto causes = diagnose(report);

  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].kind, Kind::Stopped);
  EXPECT_EQ(causes[0].text, "the guest does not run: its owner has paused it");
}

TEST(Diagnosis, APanicComesBeforeWhatItLeadsTo) {
  HealthReport report = linux_report();
  report.panic = PanicReport{1, "out of luck"};
  report.cpus[1] = cpu(1, task(7, "sh"));
  report.vcpus[0].interrupts_on = false;
  const auto causes = diagnose(report);

  EXPECT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes.front().text, "the kernel panicked on CPU 1: out of luck");
}

TEST(Diagnosis, InterruptsThatAreOffForAMomentAreNoCause) {
  HealthReport report = linux_report();
  report.cpus[1] = cpu(1, task(7, "sh"));
  report.cpus[1].running->task.since = kLogSecond / 100;
  report.vcpus[1].interrupts_on = false;
  EXPECT_EQ(first_kind(report), Kind::Unremarkable);

  report.cpus[1].timer_overdue = 3 * kLogSecond;
  const auto cause = diagnose(report).front();

  EXPECT_EQ(cause.kind, Kind::InterruptsOff);
  EXPECT_EQ(cause.text,
            "CPU 1 has run with interrupts off for 3.0 s at least: sh (pid 7) in "
            "some_function+0x10");
}

TEST(Diagnosis, TheIdleTaskMayHaltWithInterruptsOff) {
  HealthReport report = linux_report();
  report.vcpus[0].interrupts_on = false;
  report.vcpus[0].is_halted = true;
  report.cpus[0].timer_overdue = 9 * kLogSecond;

  EXPECT_EQ(first_kind(report), Kind::AllIdle);
}

TEST(Diagnosis, AnIdleCpuWhoseTimerIsOverdueLacksItsInterrupts) {
  HealthReport report = linux_report();
  report.cpus[1].timer_overdue = 22 * kLogSecond;
  const auto causes = diagnose(report);

  ASSERT_EQ(causes.size(), 1u) << "nothing hangs would be a lie";
  EXPECT_EQ(causes[0].kind, Kind::TimerLost);
  EXPECT_EQ(causes[0].text,
            "CPU 1 is idle with interrupts on, and its next timer is overdue for 22.0 s at least");

  report.clock_stands = true;
  EXPECT_TRUE(diagnose(report)[0].text.starts_with("the guest's clock stands still"));
  report.cpus[1].timer_overdue = kLogSecond / 2;
  EXPECT_EQ(first_kind(report), Kind::AllIdle) << "it is late, as timers may be";
}

TEST(Diagnosis, ABusyCpuThatTakesNoTimerInterruptsIsNamedToo) {
  HealthReport report = linux_report();
  report.cpus[1] = cpu(1, task(7, "sh"));
  report.cpus[1].timer_overdue = 3 * kLogSecond;

  EXPECT_EQ(diagnose(report)[0].text,
            "CPU 1 runs sh (pid 7) with interrupts on, and its next timer is overdue for 3.0 s at "
            "least");
}

TEST(Diagnosis, ACallThatNoInterruptBringsNamesTheCpuThatWaitsForIt) {
  HealthReport report = linux_report();
  report.cpus[0].call_waits = kLogSecond;
  report.cpus[0].called_function = "ktime_get";

  EXPECT_EQ(diagnose(report)[0].kind, Kind::CallLost);
  EXPECT_EQ(
      diagnose(report)[0].text,
      "CPU 0 is idle, and what another CPU has asked of it (ktime_get) has waited in its queue "
      "for 1.0 s at least: the interrupt between CPUs does not come");
}

TEST(Diagnosis, ACrashKernelIsNamedWithTheCrashBeforeIt) {
  HealthReport report = linux_report();
  report.release = "6.12.1-kdump";
  report.crashed = CrashedKernelReport{"6.12.1", "sysrq triggered crash"};
  EXPECT_EQ(diagnose(report)[0].kind, Kind::CrashKernel);
  EXPECT_EQ(diagnose(report)[0].text,
            "the guest runs its crash kernel (kdump), Linux 6.12.1-kdump, since Linux 6.12.1 "
            "crashed: sysrq triggered crash");
}

TEST(Diagnosis, WhatTheHostHoldsBackComesFirst) {
  HealthReport report = linux_report();
  report.cpus[1].timer_overdue = 22 * kLogSecond;
  report.held_back = {"the control group /x of its process is throttled"};
  const auto causes = diagnose(report);

  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0].kind, Kind::Host);
  EXPECT_EQ(causes[0].text,
            "the host does not let it run: the control group /x of its process is throttled");
  EXPECT_EQ(causes[1].kind, Kind::TimerLost);
}

TEST(Diagnosis, ACycleOfLocksIsToldOnceAndNotTheWaitersInFrontOfIt) {
  HealthReport report = linux_report();
  report.waiting = {waiter(1, 2), waiter(2, 3), waiter(3, 1), waiter(4, 1)};
  const auto causes = diagnose(report);

  ASSERT_FALSE(causes.empty());
  EXPECT_EQ(causes[0].kind, Kind::LockCycle);
  EXPECT_EQ(causes[0].text,
            "tasks wait for each other's locks: t1 (pid 1) waits for 2, t2 (pid 2) waits for 3, "
            "t3 (pid 3) waits for 1");
  EXPECT_EQ(causes.size(), 1u);
}

TEST(Diagnosis, ATaskThatWaitsForItselfIsACycleAndOneBehindReadersIsNot) {
  HealthReport report = linux_report();
  report.waiting = {waiter(1, 1)};
  EXPECT_EQ(first_kind(report), Kind::LockCycle);

  report.waiting[0].wait->is_read_held = true;
  EXPECT_EQ(first_kind(report), Kind::TasksStuck);
}

TEST(Diagnosis, AChainOfLocksLeadsToWhoHoldsTheLast) {
  HealthReport report = linux_report();
  report.waiting = {waiter(1, 2), waiter(2, 3), waiter_for_io(3)};
  const auto cause = diagnose(report).front();

  EXPECT_EQ(cause.kind, Kind::LockHolder);
  EXPECT_EQ(cause.text,
            "2 tasks wait for locks that t3 (pid 3) holds, which waits for I/O in "
            "folio_wait_bit_common for 5.0 s");
}

TEST(Diagnosis, ADiskThatIsSlowIsNotOneThatDoesNotAnswer) {
  HealthReport report = linux_report();
  report.waiting = {waiter_for_io(3)};
  report.waiting[0].task.since = kLogSecond / 10;
  report.disks = {{"vda", 1, 1, kLogSecond / 10, {}}};
  EXPECT_EQ(first_kind(report), Kind::AllIdle);

  report.disks[0].oldest = 2 * kLogSecond;
  const auto cause = diagnose(report).front();

  EXPECT_EQ(cause.kind, Kind::Storage);
  EXPECT_EQ(cause.text,
            "storage does not answer: vda has 1 request in flight, the oldest for 2.0 s; 1 task "
            "waits for I/O");
  report.throttled_drives = {"QEMU lets its drive d0 have 1 requests a second at most"};
  EXPECT_TRUE(diagnose(report).front().text.ends_with(
      "; 1 task waits for I/O; QEMU lets its drive d0 have 1 requests a second at most"));
}

TEST(Diagnosis, AFrozenFileSystemIsACauseOnceSomebodyWaitsForIt) {
  HealthReport report = linux_report();
  report.frozen = {{"vda", "ext4", GuestVirt(0xffff'8880'0000'0000)}};
  EXPECT_EQ(first_kind(report), Kind::AllIdle);

  report.waiting = {waiter_for_io(3)};
  report.waiting[0].wait->what = Wait::For::FrozenFilesystem;
  report.waiting[0].wait->filesystem = "vda";

  EXPECT_EQ(first_kind(report), Kind::FrozenFilesystem);
}

TEST(Diagnosis, ARealTimeTaskIsACauseWhereOthersStarve) {
  HealthReport report = linux_report();
  report.cpus[1] = cpu(1, task(7, "spinner"));
  report.cpus[1].running->task.policy = 1;
  EXPECT_EQ(first_kind(report), Kind::Busy);

  report.starving = {{task(9, "sh", TaskState::Running), {}, {}}};
  report.starving[0].task.cpu = 1;
  EXPECT_EQ(first_kind(report), Kind::RealtimeSpin);

  report.starving[0].task.cpu = 0;
  EXPECT_EQ(first_kind(report), Kind::Busy);

  report.cpus[1].queue_length = 3;
  EXPECT_EQ(diagnose(report).front().text,
            "real-time task spinner (pid 7) keeps CPU 1 for 5.0 s, and 2 tasks wait for that CPU");
}

TEST(Diagnosis, MemoryBelowTheReserveIsOutOfMemory) {
  HealthReport report = linux_report();
  report.memory.total = 256 << 20;
  report.memory.free = 1 << 20;
  report.memory.reserve = 2 << 20;
  report.memory.oom_kills = 2;
  const auto cause = diagnose(report).front();

  EXPECT_EQ(cause.kind, Kind::OutOfMemory);
  EXPECT_EQ(cause.text,
            "the guest is out of memory: 1 of 256 MiB are free, 2 processes were killed for it");
}

TEST(Diagnosis, AGuestThatKillsAgainAndAgainIsOutOfMemory) {
  HealthReport report = linux_report();
  report.memory.total = 256 << 20;
  report.memory.free = 100 << 20;
  report.memory.reserve = 2 << 20;
  report.memory.oom_kills = 4;
  report.memory.last_killed = "eater (pid 9)";
  report.memory.last_kill_age = 2 * kLogSecond;
  const auto cause = diagnose(report).front();

  EXPECT_EQ(cause.kind, Kind::OutOfMemory);
  EXPECT_EQ(cause.text,
            "the guest is out of memory: 100 of 256 MiB are free, 4 processes were killed for it, "
            "the last, eater (pid 9), 2.0 s ago");
  report.memory.last_kill_age = 60 * kLogSecond;
  EXPECT_EQ(first_kind(report), Kind::AllIdle) << "that has helped";
}

TEST(Diagnosis, KernelCodeThatLetsNobodyElseRunIsNamed) {
  HealthReport report = linux_report();
  report.cpus[0] = cpu(0, task(7, "a"));
  EXPECT_EQ(first_kind(report), Kind::Busy) << "nobody wants that CPU";
  report.starving = {{task(9, "sh", TaskState::Running), {}, {}}};
  report.starving[0].task.cpu = 0;

  const auto cause = diagnose(report).front();

  EXPECT_EQ(cause.kind, Kind::KernelSpin);
  EXPECT_EQ(cause.text,
            "a (pid 7) does not leave CPU 0 for 5.0 s in some_function+0x10, and 1 task waits for "
            "that CPU");
  report.vcpus[0].mode = VcpuReport::Mode::User;
  EXPECT_EQ(first_kind(report), Kind::Busy);
}

TEST(Diagnosis, ACrowdThatWantsToRunIsCounted) {
  HealthReport report = linux_report();
  report.cpus = {cpu(0, task(7, "a")), cpu(1, task(8, "b"))};
  report.cpus[0].queue_length = 200;
  report.cpus[1].queue_length = 100;

  EXPECT_TRUE(diagnose(report).front().text.starts_with(
      "all 2 CPUs are busy, and 300 tasks want to run: a (pid 7)"));
}

TEST(Diagnosis, ACpuThatIsOfflineIsNeitherIdleNorToBeHad) {
  HealthReport report = linux_report();
  report.cpus[1].is_online = false;
  const auto idle = diagnose(report).front();
  report.cpus[0] = cpu(0, task(7, "a"));
  const auto busy = diagnose(report).front();

  EXPECT_EQ(idle.kind, Kind::AllIdle);
  EXPECT_NE(idle.text.find("the CPU is idle"), std::string::npos) << idle.text;
  EXPECT_EQ(busy.text, "the CPU is busy: a (pid 7) on CPU 0 for 5.0 s");
}

TEST(Diagnosis, WhereNoCpuIsSaidToBeOnlineNoneIsIdleOrBusy) {
  HealthReport report = linux_report();
  for (CpuReport& each : report.cpus) each.is_online = false;

  EXPECT_EQ(first_kind(report), Kind::Unremarkable);
}

TEST(Diagnosis, BusyCpusAreSaidToBe) {
  HealthReport report = linux_report();
  report.cpus = {cpu(0, task(7, "a")), cpu(1, task(8, "b"))};
  report.vcpus[0].mode = VcpuReport::Mode::User;
  const auto cause = diagnose(report).front();

  EXPECT_EQ(cause.kind, Kind::Busy);
  EXPECT_EQ(cause.text,
            "all 2 CPUs are busy: a (pid 7) on CPU 0 for 5.0 s, in user mode; b (pid 8) on CPU 1 "
            "for 5.0 s");
}

TEST(Diagnosis, AWatchdogThatNobodyTouchesIsASoftLockup) {
  HealthReport report = linux_report();
  report.cpus[0] = cpu(0, task(7, "a"));
  report.cpus[0].watchdog_behind = 30 * kLogSecond;
  report.watchdog_threshold = 20 * kLogSecond;

  EXPECT_EQ(first_kind(report), Kind::SoftLockup);
}

}  // namespace
}  // namespace ringside::guest_linux
