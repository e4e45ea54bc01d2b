#include <gtest/gtest.h>

#include "vmm/linux/health/block_requests.h"
#include "vmm/linux/health/clocks.h"
#include "vmm/linux/health/fake_kernel_for_tests.h"
#include "vmm/linux/health/kernel_log.h"
#include "vmm/linux/health/kernel_state.h"
#include "vmm/linux/health/lost_interrupt_watch.h"
#include "vmm/linux/health/tasks.h"
#include "vmm/linux/health/vcpus.h"
#include "vmm/linux/health/waits.h"

namespace ringside::guest_linux {
namespace {

using fakes::kData;
constexpr std::uint64_t kHeap = 0xffff'8880'0100'0000;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kStackBytes = 0x4000;

/// The structures that every test needs, at offsets of our own.
class Health : public testing::Test {
 protected:
  enum class Locks : std::uint8_t { Usual, RealTime };
  explicit Health(Locks locks = Locks::Usual) {
    fakes::add_tasks(kernel_);
    if (locks == Locks::Usual) {
      kernel_.structure("rw_semaphore", 40,
                        {{"count", "atomic_long_t", 0},
                         {"owner", "atomic_long_t", 8},
                         {"wait_list", "list_head", 24}});
    }
    kernel_.structure("rwsem_waiter", 40,
                      {{"list", "list_head", 0}, {"task", "unsigned long", 16}});
    for (const std::uint64_t base : kernel_.bases) guest_.put(base, 100 * kSecond);
    guest_.put(kData + 0x1000, std::uint64_t{4'294'892'296 + 100 * 250});  // HZ=250
  }

  KernelView view() { return {kernel_, guest_}; }

  static std::uint64_t task_at(unsigned index) {
    return index == 0 ? kData : kHeap + std::uint64_t{index} * 0x10000;
  }
  static std::uint64_t stack_at(unsigned index) { return task_at(index) + 0x4000; }

  /// A task of one thread, in the list after the previous one; `last` closes the list.
  void put_task(unsigned index, std::uint32_t state, unsigned next) {
    const std::uint64_t at = task_at(index), signal = at + 0x200;
    guest_.put_bytes(at, std::vector<std::byte>(256));
    guest_.put(at, state);
    guest_.put(at + 4, 100 + index);
    guest_.put(at + 8, 100 + index);
    guest_.put_text(at + 16, "task" + std::to_string(index));
    guest_.put(at + 32, stack_at(index));
    guest_.put(at + 40, task_at(next) + 40);
    guest_.put(at + 56, signal);
    guest_.put(at + 64, signal);
    guest_.put(signal, at + 64);
    guest_.put(at + 80, 90 * kSecond);
    guest_.put_bytes(stack_at(index), std::vector<std::byte>(kStackBytes));
    guest_.put(at + 104, stack_at(index) + 0x1000);  // thread.sp
  }
  void list_head(std::uint64_t at, std::uint64_t next, std::uint64_t prev) {
    guest_.put(at, next);
    guest_.put(at + 8, prev);
  }
  /// A mutex that `owner` holds, and for which these tasks wait, each with its waiter on its stack.
  void put_mutex(std::uint64_t at, unsigned owner, const std::vector<unsigned>& waiters) {
    guest_.put(at, task_at(owner) | 1);  // MUTEX_FLAG_WAITERS
    std::uint64_t before = at + 16;
    for (const unsigned waiter : waiters) {
      const std::uint64_t node = stack_at(waiter) + 0x1800;
      guest_.put(before, node);
      guest_.put(node + 8, before);
      guest_.put(node + 16, task_at(waiter));
      before = node;
    }
    guest_.put(before, at + 16);
    guest_.put(at + 24, before);
  }

  fakes::HealthKernel kernel_;
  fakes::SparseGuest guest_;
  StackTables stacks_;
};

const std::vector<Frame> kInMutex{{0, "__schedule+0x10"},
                                  {0, "schedule+0x5"},
                                  {0, "__mutex_lock.constprop.0+0x20"},
                                  {0, "do_work+0x9"}};

/// Counts what is read.
class CountingReader final : public GuestReader {
 public:
  explicit CountingReader(const GuestReader& guest) : guest_(guest) {}
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    ++reads;
    return guest_.read(at, out);
  }
  mutable std::size_t reads = 0;

 private:
  const GuestReader& guest_;
};

TEST_F(Health, ManyProcessesWithTheSameEndlessThreadsTakeNoLongerThanOne) {
  constexpr unsigned kProcesses = 200;
  for (unsigned i = 0; i <= kProcesses; ++i) put_task(i, 1, i == kProcesses ? 0 : i + 1);
  // Each one's threads lead into the first one's, which lead to each other.
  for (unsigned i = 1; i <= kProcesses; ++i) guest_.put(task_at(i) + 0x200, task_at(1) + 64);
  guest_.put(task_at(1) + 64, task_at(2) + 64);
  guest_.put(task_at(2) + 64, task_at(1) + 64);
  kernel_.seal();
  const CountingReader reader(guest_);
  const KernelView view(kernel_, reader);
  const Clocks clocks(view);
  Tasks tasks(view, clocks, stacks_);

  tasks.list();

  EXPECT_FALSE(tasks.are_complete());
  EXPECT_LT(reader.reads, 8 * Tasks::kMost);
}

TEST_F(Health, ClocksGoOnWithoutTheKernelsTypes) {
  fakes::HealthKernel kernel;
  kernel.structure("rq", 64, {{"clock", "unsigned long", 8}});
  kernel.symbol("runqueues", 0, 'A');
  kernel.seal();
  guest_.put(kernel.bases[0] + 8, std::uint64_t{7'000});
  const KernelView view(kernel, guest_);
  Clocks clocks(view);
  kernel.end_set_up();
  guest_.put(kernel.bases[0] + 8, std::uint64_t{9'000});

  clocks.read();

  EXPECT_EQ(clocks.now(), 9'000u);
}

TEST_F(Health, AVcpuInUserModeIsTheCpuWhosePageTablesItHas) {
  constexpr std::uint64_t kDirectMap = 0xffff'8880'0000'0000, kRoot = 0x7'4000, kMm = kHeap + 0x40;
  fakes::HealthKernel kernel;
  kernel.structure("thread_struct", 16,
                   {{"sp", "unsigned long", 0}, {"fsbase", "unsigned long", 8}});
  kernel.structure("task_struct", 256,
                   {{"pid", "int", 4},
                    {"tgid", "int", 8},
                    {"comm", "char", 16, 16},
                    {"mm", "unsigned long", 128},
                    {"thread", "thread_struct", 104}});
  kernel.structure("mm_struct", 8, {{"pgd", "unsigned long", 0}});
  kernel.structure("rq", 64, {{"curr", "unsigned long", 8}, {"idle", "unsigned long", 16}});
  kernel.symbol("page_offset_base", kData + 0x1100);
  kernel.symbol("runqueues", 0, 'A');
  kernel.seal();
  guest_.put(kData + 0x1100, kDirectMap);
  guest_.put(kMm, kDirectMap + kRoot);
  for (unsigned cpu = 0; cpu < 2; ++cpu) {
    put_task(cpu + 1, 0, 0);
    guest_.put(task_at(cpu + 1) + 128, kMm);  // threads of one process
    guest_.put(task_at(cpu + 1) + 112, std::uint64_t{0x1000} + cpu);
    guest_.put(kernel.bases[cpu] + 8, task_at(cpu + 1));
    guest_.put(kernel.bases[cpu] + 16, task_at(0));
  }
  const KernelView view(kernel, guest_);
  const Clocks clocks(view);
  const Tasks tasks(view, clocks, stacks_);
  VcpuRegisters registers;
  for (unsigned vcpu = 0; vcpu < 3; ++vcpu) {
    Registers& its = registers.known[vcpu];
    its.cs = 0x33;
    its.rsp = 0x7ffd'0000'0000;
    its.cr3 = kRoot | 0x1005;           // the user half, and PCID's number
    its.fs_base = 0x1000 + (1 - vcpu);  // crosswise; the third is nobody's
  }
  std::vector<VcpuReport> vcpus;
  for (const auto& [vcpu, its] : registers.known) {
    vcpus.push_back(describe_vcpu(vcpu, its, &view));
  }

  (void)describe_cpus(view, tasks, registers, vcpus);

  EXPECT_EQ(vcpus[0].cpu, 1u);
  EXPECT_EQ(vcpus[1].cpu, 0u);
  EXPECT_EQ(vcpus[2].cpu, std::nullopt);
}

TEST(LastKill, IsTheLogsLastOneOfTheWholeGuest) {
  const std::vector<LogLine> log{
      {5 * kSecond, 3, "Out of memory: Killed process 12 (dd) total-vm:1kB, anon-rss:1kB"},
      {6 * kSecond, 3, "Memory cgroup out of memory: Killed process 13 (no) total-vm:1kB"},
      {7 * kSecond, 3, "Out of memory: Killed process 14 (a (b) total-vm:1kB"},
      {8 * kSecond, 3, "Out of memory: Killed process 15"},
      {8 * kSecond, 3, "Out of memory: Killed process ) 1"}};
  MemoryReport memory;

  read_last_kill(log, 10 * kSecond, memory);

  EXPECT_EQ(memory.last_killed, "a (b (pid 14)");
  EXPECT_EQ(memory.last_kill_age, 3 * kSecond);
  read_last_kill(log, 6 * kSecond, memory);
  EXPECT_EQ(memory.last_kill_age, std::nullopt) << "it lies ahead";
}

TEST_F(Health, TimesAreMeasuredByTheLatestRunQueueAndJiffiesByTheirFrequency) {
  kernel_.seal();
  guest_.put(kernel_.bases[1], 60 * kSecond);
  const KernelView view = this->view();
  const Clocks clocks(view);

  EXPECT_EQ(clocks.now(), 100 * kSecond);
  EXPECT_EQ(clocks.tick_frequency(), 250u);
  EXPECT_EQ(clocks.since(97 * kSecond), 3 * kSecond);
  EXPECT_EQ(clocks.since(101 * kSecond), std::nullopt) << "the future";
  EXPECT_EQ(clocks.since_jiffies(4'294'892'296 + 90 * 250), 10 * kSecond);
  EXPECT_EQ(clocks.since_jiffies(5), std::nullopt) << "before the machine was up";
}

TEST_F(Health, TasksAreListedOnceEachAndAListThatRunsInCirclesEnds) {
  kernel_.seal();
  put_task(0, 0, 1);
  put_task(1, 2, 2);
  put_task(2, 0x402, 1);  // leads back into the list, not to its head
  const KernelView view = this->view();
  const Clocks clocks(view);
  Tasks tasks(view, clocks, stacks_);
  tasks.list();

  ASSERT_EQ(tasks.all().size(), 2u);
  EXPECT_FALSE(tasks.are_complete());
  EXPECT_EQ(tasks.all()[0].state, TaskState::Uninterruptible);
  EXPECT_EQ(tasks.all()[0].name, "task1");
  EXPECT_EQ(tasks.all()[0].since, 10 * kSecond);
  EXPECT_EQ(tasks.all()[1].state, TaskState::Idle) << "TASK_IDLE is no load";
}

TEST_F(Health, AMutexIsFoundByItsWaitersAndNamesItsOwner) {
  kernel_.seal();
  put_task(0, 0, 1);
  put_task(1, 2, 2);
  put_task(2, 2, 3);
  put_task(3, 1, 0);
  put_mutex(kHeap + 8, 3, {1, 2});
  const KernelView view = this->view();
  const Clocks clocks(view);
  Tasks tasks(view, clocks, stacks_);
  tasks.list();
  const std::vector<FilesystemReport> none;
  const Waits waits(view, tasks, none);

  EXPECT_TRUE(tasks.are_complete());
  for (const unsigned waiter : {1U, 2U}) {
    const Wait wait = waits.find(*tasks.find(GuestVirt(task_at(waiter))), kInMutex);
    EXPECT_EQ(wait.what, Wait::For::Lock);
    EXPECT_EQ(wait.lock, GuestVirt(kHeap + 8));
    EXPECT_EQ(wait.owner, 103);
    EXPECT_EQ(wait.function, "__mutex_lock.constprop.0");
  }
}

TEST_F(Health, ARwSemaphoresWriterIsItsOwnerAndAReaderIsOneOfSome) {
  kernel_.seal();
  put_task(0, 0, 1);
  put_task(1, 2, 2);
  put_task(2, 1, 0);
  constexpr std::uint64_t kLock = kHeap + 0x100;
  const std::uint64_t node = stack_at(1) + 0x1800;
  guest_.put(kLock + 8, task_at(2));
  list_head(kLock + 24, node, node);
  list_head(node, kLock + 24, kLock + 24);
  guest_.put(node + 16, task_at(1));
  const KernelView view = this->view();
  const Clocks clocks(view);
  Tasks tasks(view, clocks, stacks_);
  tasks.list();
  const std::vector<FilesystemReport> none;
  const Waits waits(view, tasks, none);
  const std::vector<Frame> stack{{0, "schedule+0x5"}, {0, "rwsem_down_write_slowpath+0x20"}};
  const Task& task = *tasks.find(GuestVirt(task_at(1)));

  const Wait behind_writer = waits.find(task, stack);
  guest_.put(kLock + 8, task_at(2) | 1);  // RWSEM_READER_OWNED
  const Wait behind_readers = waits.find(task, stack);

  EXPECT_EQ(behind_writer.lock, GuestVirt(kLock));
  EXPECT_EQ(behind_writer.lock_kind, LockKind::RwSemaphore);
  EXPECT_EQ(behind_writer.owner, 102);
  EXPECT_FALSE(behind_writer.is_read_held);
  EXPECT_EQ(behind_readers.owner, 102);
  EXPECT_TRUE(behind_readers.is_read_held);
}

/// A real-time kernel's: all locks that sleep are rt_mutexes.
class RealTimeLocks : public Health {
 protected:
  static constexpr std::uint64_t kLock = kHeap + 0x100;  // a rt_mutex_base

  RealTimeLocks() : Health(Locks::RealTime) {
    kernel_.structure("rt_mutex_base", 32, {{"owner", "unsigned long", 24}});
    kernel_.structure("atomic_t", 4, {{"counter", "int", 0}});
    kernel_.structure("rwbase_rt", 40,
                      {{"readers", "atomic_t", 0}, {"rtmutex", "rt_mutex_base", 8}});
    kernel_.structure("rw_semaphore", 48, {{"rwbase", "rwbase_rt", 0}});
    kernel_.structure("rt_mutex_waiter", 64,
                      {{"task", "unsigned long", 48}, {"lock", "unsigned long", 56}});
    put_task(0, 0, 1);
    put_task(1, 2, 2);
    put_task(2, 0x1000, 3);  // TASK_RTLOCK_WAIT
    put_task(3, 1, 0);
  }
  void block(unsigned waiter) {
    const std::uint64_t node = stack_at(waiter) + 0x1800;
    guest_.put(task_at(waiter) + 120, node);
    guest_.put(node + 48, task_at(waiter));
    guest_.put(node + 56, kLock);
  }
  Wait wait_of(unsigned index, const std::vector<Frame>& stack) {
    const KernelView view = this->view();
    const Clocks clocks(view);
    Tasks tasks(view, clocks, stacks_);
    tasks.list();
    const std::vector<FilesystemReport> none;
    return Waits(view, tasks, none).find(*tasks.find(GuestVirt(task_at(index))), stack);
  }
};

TEST_F(RealTimeLocks, AMutexIsNamedWithItsOwner) {
  kernel_.seal();
  block(1);
  guest_.put(kLock + 24, task_at(3) | 1);
  const std::vector<Frame> stack{{0, "__schedule+0x1"}, {0, "rt_mutex_slowlock.constprop.0+0x1"}};

  const Wait wait = wait_of(1, stack);
  EXPECT_EQ(wait.what, Wait::For::Lock);
  EXPECT_EQ(wait.lock_kind, LockKind::Mutex);
  EXPECT_EQ(wait.lock, GuestVirt(kLock));
  EXPECT_EQ(wait.owner, 103);

  guest_.put(stack_at(1) + 0x1800 + 48, task_at(2));  // the waiter is another's
  EXPECT_NE(wait_of(1, stack).lock, GuestVirt(kLock));
}

TEST_F(RealTimeLocks, ASpinLockIsOneThatATaskSleepsForInStateD) {
  kernel_.seal();
  block(2);
  guest_.put(kLock + 24, task_at(3) | 1);

  const Wait wait = wait_of(2, {{0, "schedule_rtlock+0x1"}, {0, "rtlock_slowlock_locked+0x1"}});

  EXPECT_EQ(wait.lock_kind, LockKind::SpinLock);
  EXPECT_EQ(wait.owner, 103);
  const KernelView view = this->view();
  EXPECT_EQ(Tasks(view, Clocks(view), stacks_).read(GuestVirt(task_at(2)))->state,
            TaskState::Uninterruptible);
}

TEST_F(RealTimeLocks, AReaderOfARwSemaphoreWaitsForItsWriter) {
  kernel_.seal();
  block(1);
  guest_.put(kLock + 24, task_at(3) | 1);

  const Wait wait = wait_of(1, {{0, "rt_mutex_slowlock+0x1"}, {0, "__rwbase_read_lock+0x1"}});

  EXPECT_EQ(wait.lock_kind, LockKind::RwSemaphore);
  EXPECT_EQ(wait.lock, GuestVirt(kLock - 8));
  EXPECT_EQ(wait.owner, 103);
}

TEST_F(RealTimeLocks, AWriterWaitsForReadersThatNobodyKnows) {
  kernel_.seal();
  guest_.put(kLock - 8, std::uint64_t{1});  // one reader, and the bias is gone
  guest_.put(kLock + 24, task_at(1) | 1);   // it has the mutex inside
  guest_.put(stack_at(1) + 0x1900, kLock - 8);
  const std::vector<Frame> stack{{0, "schedule+0x1"}, {0, "rwbase_write_lock+0x1"}};

  const Wait wait = wait_of(1, stack);
  EXPECT_EQ(wait.what, Wait::For::Lock);
  EXPECT_EQ(wait.lock, GuestVirt(kLock - 8));
  EXPECT_TRUE(wait.is_read_held);
  EXPECT_EQ(wait.owner, 0);

  guest_.put(kLock - 8, std::uint64_t{0});
  EXPECT_EQ(wait_of(1, stack).lock, GuestVirt(0)) << "no reader";
}

TEST_F(Health, ALockIsNotBelievedWhereItsListIsTornOrItsOwnerIsNobody) {
  kernel_.seal();
  put_task(0, 0, 1);
  put_task(1, 2, 0);
  put_mutex(kHeap + 8, 3, {1});  // task 3 does not exist
  const KernelView view = this->view();
  const Clocks clocks(view);
  Tasks tasks(view, clocks, stacks_);
  tasks.list();
  const std::vector<FilesystemReport> none;
  const Waits waits(view, tasks, none);
  const Task& task = *tasks.find(GuestVirt(task_at(1)));

  EXPECT_EQ(waits.find(task, kInMutex).lock, GuestVirt(kHeap + 8));
  EXPECT_EQ(waits.find(task, kInMutex).owner, 0);
  guest_.put(kHeap + 24, std::uint64_t{0});  // wait_list.prev leads elsewhere
  guest_.put(kHeap + 8 + 16, stack_at(1) + 0x1000);
  EXPECT_EQ(waits.find(task, kInMutex).lock, GuestVirt(0));
}

TEST_F(Health, WithoutALocksFunctionInTheStackTheWaitIsForWhatTheStackSays) {
  kernel_.seal();
  put_task(0, 0, 1);
  put_task(1, 2, 0);
  const KernelView view = this->view();
  const Clocks clocks(view);
  Tasks tasks(view, clocks, stacks_);
  tasks.list();
  const std::vector<FilesystemReport> none;
  const Waits waits(view, tasks, none);
  const Task& task = *tasks.find(GuestVirt(task_at(1)));

  EXPECT_EQ(
      waits.find(task, {{0, "schedule+0x5"}, {0, "io_schedule+0x5"}, {0, "folio_wait_bit+1"}}).what,
      Wait::For::Io);
  EXPECT_EQ(waits.find(task, {{0, "schedule_timeout+0x5"}, {0, "wait_for_completion+1"}}).what,
            Wait::For::Completion);
  EXPECT_EQ(waits.find(task, {}).what, Wait::For::Unknown);
}

/// Two idle CPUs of a guest that runs, whose clock is at 100 s, and a host whose time the test
/// makes.
class LostInterrupts : public Health {
 protected:
  LostInterrupts() {
    kernel_.structure("hrtimer_cpu_base", 16, {{"expires_next", "unsigned long", 0}});
    kernel_.structure("seqcount_raw_spinlock", 4, {{"sequence", "unsigned int", 0}});
    kernel_.structure("timekeeper", 16, {{"xtime_sec", "unsigned long", 8}});
    kernel_.structure("__call_single_node", 16,
                      {{"llist", "unsigned long", 0}, {"u_flags", "unsigned int", 8}});
    kernel_.structure("__call_single_data", 24,
                      {{"node", "__call_single_node", 0}, {"func", "unsigned long", 16}});
    kernel_.symbol("hrtimer_bases", 0x100, 'A');
    kernel_.symbol("call_single_queue", 0x200, 'A');
    kernel_.symbol("tick_next_period", kData + 0x1100);
    kernel_.symbol("tk_core", kData + 0x1200);
    kernel_.symbol("ktime_get", fakes::HealthKernel::kText + 0x100, 't');
    kernel_.seal();
    guest_.put(kData + 0x1100, 100 * kSecond + kSecond / 250);
    guest_.put(kData + 0x1210, wall_);
    for (const std::uint64_t entry : {kHeap, kHeap + 64}) guest_.put(entry, std::uint64_t{0});
    for (const std::uint64_t base : kernel_.bases) {
      guest_.put(base + 0x100, 102 * kSecond);
      guest_.put(base + 0x200, std::uint64_t{0});
    }
  }
  HealthReport watch() {
    HealthReport report;
    for (const unsigned number : {0U, 1U}) {
      CpuReport& cpu = report.cpus.emplace_back();
      cpu.cpu = number;
      cpu.is_idle = true;
      VcpuReport& vcpu = report.vcpus.emplace_back();
      vcpu.vcpu = number;
      vcpu.cpu = number;
      vcpu.mode = VcpuReport::Mode::Kernel;
      vcpu.is_halted = true;
    }
    const KernelView view = this->view();
    Clocks clocks(view);
    const HostTime host{[this] { return host_now_; }, [this] { return host_wall_; },
                        [this](std::uint64_t time) {
                          host_now_ += time;
                          if (as_time_goes) as_time_goes();
                        }};
    LostInterruptWatch(
        view, clocks, [] {}, host)
        .watch(report);
    return report;
  }

  std::uint64_t host_now_ = 7 * kSecond, wall_ = 1'700'000'000, host_wall_ = wall_;
  std::function<void()> as_time_goes;
};

TEST_F(LostInterrupts, AGuestThatIsWellIsNotWatched) {
  host_wall_ = wall_ + 2;  // its next timer is 2 s ahead

  const HealthReport report = watch();

  EXPECT_FALSE(report.clock_stands);
  EXPECT_EQ(host_now_, 7 * kSecond);
}

TEST_F(LostInterrupts, AClockThatTakesNoTimerStandsStill) {
  host_wall_ = wall_ + 30;
  guest_.put(kernel_.bases[1] + 0x100, 104 * kSecond);

  const HealthReport report = watch();

  EXPECT_TRUE(report.clock_stands);
  ASSERT_TRUE(report.cpus[0].timer_overdue.has_value());
  EXPECT_GE(*report.cpus[0].timer_overdue, kSecond);
  EXPECT_FALSE(report.cpus[1].timer_overdue.has_value()) << "its own is not due yet";
}

TEST_F(LostInterrupts, AGuestWhoseWallClockIsWrongIsWatchedUntilItsClockMoves) {
  for (const std::uint64_t wall : {wall_ + 86400, wall_ - 86400}) {
    host_wall_ = wall;
    const std::uint64_t began = host_now_;
    as_time_goes = [&] {
      if (host_now_ >= began + kSecond) guest_.put(kData + 0x1100, host_now_ + 95 * kSecond);
    };

    EXPECT_FALSE(watch().clock_stands);
    EXPECT_LT(host_now_, began + 2 * kSecond);
    as_time_goes = nullptr;
    guest_.put(kData + 0x1100, 100 * kSecond + kSecond / 250);
  }
}

TEST_F(LostInterrupts, AGuestWithoutTimersSaysNothing) {
  host_wall_ = wall_ + 1000;
  for (const std::uint64_t base : kernel_.bases) guest_.put(base + 0x100, std::int64_t{INT64_MAX});

  EXPECT_FALSE(watch().clock_stands);
  EXPECT_EQ(host_now_, 7 * kSecond);
}

TEST_F(LostInterrupts, ACallThatStaysInTheQueueOfAnIdleCpuIsLost) {
  guest_.put(kernel_.bases[1] + 0x200, kHeap);
  guest_.put(kHeap + 8, std::uint32_t{0x11});  // locked, and somebody waits for it
  guest_.put(kHeap + 16, fakes::HealthKernel::kText + 0x100);

  const HealthReport report = watch();

  EXPECT_FALSE(report.cpus[0].call_waits.has_value());
  ASSERT_TRUE(report.cpus[1].call_waits.has_value());
  EXPECT_GE(*report.cpus[1].call_waits, kSecond);
  EXPECT_EQ(report.cpus[1].called_function, "ktime_get");
}

/// Later entries come in front of it.
TEST_F(LostInterrupts, TheOldestCallTellsWhateverComesMeanwhile) {
  guest_.put(kernel_.bases[1] + 0x200, kHeap);
  guest_.put(kHeap + 8, std::uint32_t{0x11});
  guest_.put(kHeap + 16, fakes::HealthKernel::kText + 0x100);
  as_time_goes = [&] {
    guest_.put(kHeap + 64, kHeap);
    guest_.put(kHeap + 72, std::uint32_t{0x31});  // a wake-up
    guest_.put(kernel_.bases[1] + 0x200, kHeap + 64);
  };

  const HealthReport report = watch();

  EXPECT_TRUE(report.cpus[1].call_waits.has_value());
  EXPECT_EQ(report.cpus[1].called_function, "ktime_get");
}

TEST_F(LostInterrupts, AQueueThatNeverEndsIsNone) {
  guest_.put(kernel_.bases[1] + 0x200, kHeap);
  guest_.put(kHeap, kHeap);

  EXPECT_FALSE(watch().cpus[1].call_waits.has_value());
}

TEST_F(LostInterrupts, ACallThatIsTakenInTimeIsNot) {
  guest_.put(kernel_.bases[1] + 0x200, kHeap);
  as_time_goes = [&] {
    if (host_now_ > 7 * kSecond + kSecond / 2) guest_.put(kernel_.bases[1] + 0x200, kHeap + 64);
  };

  EXPECT_FALSE(watch().cpus[1].call_waits.has_value());
}

TEST_F(LostInterrupts, AnotherEntryThanACallNamesNoFunction) {
  guest_.put(kernel_.bases[1] + 0x200, kHeap);
  guest_.put(kHeap + 8, std::uint32_t{0x31});  // a wake-up
  guest_.put(kHeap + 16, fakes::HealthKernel::kText + 0x100);

  const HealthReport report = watch();

  EXPECT_TRUE(report.cpus[1].call_waits.has_value());
  EXPECT_EQ(report.cpus[1].called_function, "");
}

/// A log of 8 descriptors and 256 bytes of text.
class Log : public Health {
 protected:
  Log() {
    fakes::add_log(kernel_);
    kernel_.seal();
    guest_.put(kData + 0x2000, kRing);
    guest_.put(kRing, 3U);
    guest_.put(kRing + 8, kDescriptors);
    guest_.put(kRing + 16, kInfos);
    guest_.put(kRing + 40, 8U);
    guest_.put(kRing + 48, kTexts);
    guest_.put_bytes(kDescriptors, std::vector<std::byte>(8 * 24));
    guest_.put_bytes(kInfos, std::vector<std::byte>(8 * 24));
    guest_.put_bytes(kTexts, std::vector<std::byte>(256));
    set_ids(0, 0);
  }
  void set_ids(std::uint64_t tail, std::uint64_t head) {
    guest_.put(kRing + 24, head);
    guest_.put(kRing + 32, tail);
  }
  void put_line(std::uint64_t id, std::string_view text, std::uint64_t begin, std::uint64_t next,
                std::uint64_t state = 2) {
    const std::uint64_t descriptor = kDescriptors + id % 8 * 24;
    guest_.put(descriptor, state << 62 | id);
    guest_.put(descriptor + 8, begin);
    guest_.put(descriptor + 16, next);
    guest_.put(kInfos + id % 8 * 24, id * 1000);
    guest_.put(kInfos + id % 8 * 24 + 8, static_cast<std::uint16_t>(text.size()));
    const bool wraps = begin / 256 != next / 256;
    const std::uint64_t at = kTexts + (wraps ? 0 : begin % 256);
    guest_.put(at, id);
    guest_.put_bytes(at + 8, std::as_bytes(std::span(text.data(), text.size())));
  }
  std::vector<std::string> texts(std::size_t most) {
    const KernelView view = this->view();
    std::vector<std::string> found;
    const auto lines = read_kernel_log(view, most);
    if (!lines) return {lines.error().message};
    for (const LogLine& line : *lines) found.push_back(line.text);
    return found;
  }
  static constexpr std::uint64_t kRing = kData + 0x2100, kDescriptors = kData + 0x3000,
                                 kInfos = kData + 0x3400, kTexts = kData + 0x3800;
};

using Texts = std::vector<std::string>;

TEST_F(Log, NewsAreWhatCameSinceAndAGrowingRecordComesWhenItIsWhole) {
  put_line(11, "first", 200, 216);
  put_line(12, "grows", 216, 232, 1);
  set_ids(11, 12);
  const KernelView view = this->view();
  auto log = KernelLog::open(view);
  ASSERT_TRUE(log.has_value());
  const auto news = [&] {
    std::vector<std::string> found;
    const auto taken = log->take_news();
    if (!taken) return Texts{taken.error().message};
    for (const LogRecord& record : taken->records) found.push_back(record.text);
    if (taken->lost != 0) found.push_back(std::to_string(taken->lost) + " lost");
    return found;
  };

  EXPECT_EQ(news(), (Texts{"first"}));
  EXPECT_EQ(news(), Texts{});
  put_line(12, "grows more", 216, 240);
  put_line(13, "next", 240, 256 + 32);
  set_ids(11, 13);
  EXPECT_EQ(news(), (Texts{"grows more", "next"}));
  put_line(25, "much later", 256 + 32, 256 + 64);
  set_ids(20, 25);
  EXPECT_EQ(news(), (Texts{"much later", "11 lost"})) << "6 were overwritten, 5 are torn";
  put_line(3, "of another kernel", 0, 32);
  set_ids(3, 3);
  EXPECT_EQ(news(), (Texts{"of another kernel"}));
}

TEST_F(Log, ARingOfNoSenseIsAnErrorAndOneWithoutTextsEnds) {
  const KernelView view = this->view();
  auto log = KernelLog::open(view);
  ASSERT_TRUE(log.has_value());
  set_ids(0, std::uint64_t{1} << 61);  // as if there were 2^61 records
  EXPECT_TRUE(log->last(SIZE_MAX)->empty());
  EXPECT_TRUE(log->take_news()->records.empty());
  guest_.put(kRing, std::uint32_t{60});  // 2^60 descriptors
  EXPECT_EQ(log->last(SIZE_MAX).error().code, ErrorCode::Invalid);
}

TEST_F(Log, ItsLastLinesComeOldestFirstAlsoAcrossItsEnd) {
  put_line(11, "too old", 200, 216);
  put_line(12, "first", 216, 232);
  put_line(13, "wrapped to the start", 232, 256 + 32);
  put_line(14, "two\nlines", 256 + 32, 256 + 56);
  set_ids(11, 14);

  EXPECT_EQ(texts(4), (Texts{"first", "wrapped to the start", "two", "lines"}));
}

TEST_F(Log, LinesThatAreWrittenOrGoneAreLeftOutAndTextIsPrintable) {
  put_line(1, "gone", 0, 16, 3);
  put_line(2, "\x1b[31mred\x07", 16, 40);
  put_line(3, "being written", 40, 64, 0);
  put_line(4, "", 1, 1);  // no text: an odd position
  set_ids(1, 4);

  EXPECT_EQ(texts(10), (Texts{"?[31mred?"}));
}

TEST_F(Log, ALogOfNonsenseEnds) {
  set_ids(5, 1ULL << 61);
  EXPECT_TRUE(texts(10).empty());
  guest_.put(kRing, 63U);
  EXPECT_EQ(texts(10), (Texts{"the kernel log makes no sense"}));
}

TEST_F(Health, AnRcuGracePeriodNamesTheCpusThatItWaitsFor) {
  fakes::add_rcu(kernel_);
  kernel_.seal();
  guest_.put_bytes(kData + 0x5000, std::vector<std::byte>(256));
  guest_.put(kData + 0x5000 + 200, std::uint64_t{5});
  guest_.put(kData + 0x5000 + 208, std::uint64_t{4'294'892'296 + 88 * 250});
  guest_.put(kData + 0x5000, std::uint64_t{1});  // the root: its bits are nodes, not CPUs
  const std::uint64_t leaf = kData + 0x5000 + 48;
  guest_.put(leaf, std::uint64_t{0b110});  // CPU 2 does not exist
  guest_.put(leaf + 12, 63);
  guest_.put(leaf + 16, std::uint8_t{1});
  const KernelView view = this->view();
  const auto rcu = read_rcu(view, Clocks(view));

  ASSERT_TRUE(rcu.has_value());
  EXPECT_TRUE(rcu->in_grace_period);
  EXPECT_EQ(rcu->age, 12 * kSecond);
  EXPECT_EQ(rcu->cpus, std::vector<std::uint32_t>{1});
}

TEST_F(Health, APanicsReasonIsTheLogsAndNotItsTrailer) {
  kernel_.symbol("panic_cpu", kData + 0x6000);
  kernel_.seal();
  const std::vector<LogLine> log{{1, 0, "Kernel panic - not syncing: sysrq triggered crash"},
                                 {2, 0, "---[ end Kernel panic - not syncing: other ]---"}};
  guest_.put(kData + 0x6000, std::int32_t{-1});
  EXPECT_FALSE(read_panic(view(), log).has_value());

  guest_.put(kData + 0x6000, std::int32_t{1});
  const auto panic = read_panic(view(), log);

  ASSERT_TRUE(panic.has_value());
  EXPECT_EQ(panic->cpu, 1u);
  EXPECT_EQ(panic->reason, "sysrq triggered crash");
}

TEST(CrashReason, IsThePanicsOrElseTheFaultsThatStartedTheCrashKernel) {
  const LogLine fault{1, 0, "BUG: kernel NULL pointer dereference, address: 0000000000000000"},
      oops{1, 0, "Oops: 0002 [#1] PREEMPT SMP"}, other{0, 6, "Run /init as init process"},
      panic{2, 0, "Kernel panic - not syncing: sysrq triggered crash"};
  EXPECT_EQ(crash_reason({other, fault, oops}), fault.text);
  EXPECT_EQ(crash_reason({other, fault, panic}), "sysrq triggered crash");
  EXPECT_EQ(crash_reason({other}), "");
}

TEST_F(Health, AKernelThatIdlesSuspendedIsNotTakenForOneThatHangs) {
  kernel_.enumeration("s2idle_states", {{"S2IDLE_STATE_NONE", 0}, {"S2IDLE_STATE_ENTER", 1}});
  kernel_.symbol("s2idle_state", kData + 0x6000);
  kernel_.seal();
  guest_.put(kData + 0x6000, std::int32_t{0});
  EXPECT_FALSE(is_suspended_to_idle(view()));

  guest_.put(kData + 0x6000, std::int32_t{1});
  EXPECT_TRUE(is_suspended_to_idle(view()));
}

TEST_F(Health, AKernelThatLacksStructuresIsSaidToAndNothingIsMadeUp) {
  kernel_.seal();
  const KernelView view = this->view();
  const Clocks clocks(view);

  EXPECT_FALSE(BlockRequests(view, clocks).read().known);
  EXPECT_FALSE(read_rcu(view, clocks).has_value());
  EXPECT_FALSE(read_panic(view, {}).has_value());
  EXPECT_FALSE(read_kernel_log(view, 10).has_value());
  EXPECT_TRUE(read_frozen_filesystems(view).empty());
  EXPECT_FALSE(read_load(view).has_value());
}

TEST(TickFrequency, IsTheUsualOneThatFitsTheUptime) {
  const auto jiffies = [](unsigned hz, unsigned seconds) {
    return std::uint64_t{static_cast<std::uint32_t>(-300 * static_cast<int>(hz))} +
           std::uint64_t{hz} * seconds;
  };
  for (const unsigned hz : {100U, 250U, 300U, 1000U}) {
    EXPECT_EQ(guess_tick_frequency(jiffies(hz, 5), 5 * kSecond), hz);
    EXPECT_EQ(guess_tick_frequency(jiffies(hz, 1), 2 * kSecond), hz) << "ticks begin late";
    EXPECT_EQ(guess_tick_frequency(jiffies(hz, 100'000), 100'000 * kSecond), hz);
  }
  EXPECT_EQ(guess_tick_frequency(12345, 5 * kSecond), std::nullopt);
  EXPECT_EQ(guess_tick_frequency(jiffies(250, 300), 300 * kSecond), std::nullopt)
      << "jiffies are 0 then, whatever the frequency";
  EXPECT_EQ(guess_tick_frequency(jiffies(250, 400), 401 * kSecond), 250U);
}

}  // namespace
}  // namespace ringside::guest_linux
