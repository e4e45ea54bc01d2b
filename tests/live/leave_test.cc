// Guests that are left as they were found, by the host's own look at their memory: text, interrupt
// table, first megabyte and page tables are the same before we come and after we went.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "providers/cleanup/clean.h"
#include "providers/tracer/tracer.h"
#include "tests/live/guest_image.h"
#include "tests/live/live_guest.h"

namespace ringside::live {
namespace {

using namespace dif::testing;

constexpr unsigned kCalls = 2000;
constexpr unsigned kWarmUps = 3, kTimes = 20, kTimesInCi = 8, kTimesAgain = 6;
constexpr std::uint64_t kNoiseKib = 4096;  // what the load and the allocators take now and then
// A loaded host may let a vCPU wait for half a minute. A kernel that doubts its TSC for that
// patches its own text (sched_clock_stable()).
constexpr const char* kPatient = "nosoftlockup rcupdate.rcu_cpu_stall_suppress=1 tsc=reliable ";
/// The commands that call in the guest all the time; nothing of them is a "workload".
constexpr const char* kLoad =
    "touch /tmp/go; for n in 1 2; do (while [ -e /tmp/go ]; do"
    " dd if=/dev/zero of=/tmp/file$n bs=512 count=200; cat /proc/*/stat; done) </dev/null"
    " >/dev/null 2>&1 & done";

struct Guest {
  const char* image;
  unsigned vcpus;
  const char* append;
  bool as_is;
};

/// RINGSIDE_TIMES asks for more; tests/run.py --ci sets RINGSIDE_QUICK.
unsigned how_often() {
  const char* const wanted = std::getenv("RINGSIDE_TIMES");
  if (wanted != nullptr) return static_cast<unsigned>(std::atoi(wanted));
  return std::getenv("RINGSIDE_QUICK") != nullptr ? kTimesInCi : kTimes;
}

std::string name_of(const testing::TestParamInfo<Guest>& info) {
  const auto& guest = info.param;
  const bool isolated = std::string_view(guest.append).find("pti=on") != std::string_view::npos;
  return fmt::format("Debian{}On{}{}{}", guest.image == std::string_view("debian-6.1") ? 61 : 612,
                     guest.vcpus, isolated ? "Isolated" : "", guest.as_is ? "" : "SetAside");
}

/// A tracer that counts calls by program, over a machine and a kernel.
class Count {
 public:
  static Result<std::unique_ptr<Count>> start(vmm::Machine& machine, guest_linux::Kernel& kernel) {
    auto tracer = TRY(providers::Tracer::attach(&machine, &kernel));
    std::unique_ptr<Count> count(new Count(std::move(tracer)));
    TRY(count->enable({"fbt", "vmlinux", "vfs_*", ""}));
    TRY(count->enable({"syscall", "", "", "entry"}));
    TRY(count->tracer_->start(count->engine_));
    return count;
  }
  ~Count() { tracer_->stop(); }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

  /// Ends it; how often a program called.
  std::uint64_t stop(std::string_view program) {
    tracer_->stop();
    notices = tracer_->take_notices();
    EXPECT_EQ(tracer_->lost_firings(), 0u);
    const dif::TraceData trace_data = engine_.take_quiescent();
    std::uint64_t sum = 0;
    for (const dif::AggregateEntry& entry : trace_data.aggregates) {
      // SAFETY: the key is text, which the engine ends with a NUL or the key's end.
      const char* const text = reinterpret_cast<const char*>(entry.key.data());
      if (std::string_view(text, strnlen(text, entry.key.size())) == program) {
        sum += static_cast<std::uint64_t>(entry.words[0]);
      }
    }
    return sum;
  }

  std::vector<std::string> notices;  // once it has ended

 private:
  explicit Count(std::unique_ptr<providers::Tracer> tracer)
      : tracer_(std::move(tracer)),
        engine_(*dif::verify_program(count_by_execname()), dif::EngineOptions{},
                tracer_->vcpu_count()) {}

  Result<void> enable(const dif::ProbeDescription& pattern) {
    std::vector<providers::Probe> probes;
    TRY(tracer_->for_each_probe(
        pattern, [&probes](const providers::Probe& probe) { probes.push_back(probe); }));
    for (const providers::Probe& probe : probes) {
      TRY(tracer_->enable(probe));
      engine_.enable(0, probe.id, probe.name);
    }
    return {};
  }

  std::unique_ptr<providers::Tracer> tracer_;
  dif::Engine engine_;
};

class Leave : public testing::TestWithParam<Guest> {
 protected:
  void SetUp() override {
    const Guest& wanted = GetParam();
    const auto image = find_live_image(wanted.image);
    if (!image) GTEST_SKIP() << image.error().message;
    auto guest = LiveGuest::boot(*image, wanted.vcpus,
                                 {std::string(kPatient) + wanted.append, wanted.as_is});
    ASSERT_TRUE(guest) << guest.error().message;
    guest_ = std::move(*guest);
    ask("workload --reads 10; sleep 1; dmesg -c >/dev/null");  // what the kernel patches when
                                                               // something is done at first
  }
  std::string ask(const std::string& command) {
    auto said = guest_->run(command);
    EXPECT_TRUE(said) << command << ": " << said.error().message;
    return said.value_or("");
  }
  GuestImage look() {
    auto paused = vmm::PausedMachine::pause(guest_->machine());
    EXPECT_TRUE(paused);
    return GuestImage::take(*paused, guest_->kernel());
  }
  /// How often the calls of a workload are seen, less those that it makes once.
  void trace_once() {
    auto count = Count::start(guest_->machine(), guest_->kernel());
    ASSERT_TRUE(count) << count.error().message;
    call();
    seen_ = (*count)->stop("workload");
    notices_ = (*count)->notices;
  }
  /// The same where nothing is to be told of.
  void trace_quietly() {
    trace_once();
    for (const std::string& notice : notices_) ADD_FAILURE() << notice;
  }
  /// The workload's own report says that it has called so often.
  void call() {
    const std::string said = ask(fmt::format("workload --getppid {}", kCalls));
    EXPECT_NE(said.find(fmt::format("getppid {}\n", kCalls)), std::string::npos) << said;
  }
  void check_same(const GuestImage& before, const GuestImage& after) {
    for (const std::string& difference : before.differences(after)) ADD_FAILURE() << difference;
  }
  void check_guest_is_well() {
    EXPECT_EQ(ask("dmesg | grep -iE 'bug|warn|oops|stall|int3|unable|fault|traps:'; true"), "");
  }

  std::unique_ptr<LiveGuest> guest_;
  std::uint64_t seen_ = 0;
  std::vector<std::string> notices_;
};

TEST_P(Leave, NothingIsLeftBehind) {
  const GuestImage before = look();
  std::cout << before.bytes() << " bytes are compared\n";
  {
    auto count = Count::start(guest_->machine(), guest_->kernel());
    ASSERT_TRUE(count) << count.error().message;
    call();
    EXPECT_FALSE(before.differences(look()).empty()) << "the comparison sees what we write";
    EXPECT_GE((*count)->stop("workload"), kCalls);
    for (const std::string& notice : (*count)->notices) ADD_FAILURE() << notice;
  }

  check_same(before, look());
  check_guest_is_well();
}

/// Memory and files that must not grow by tracing, of the guest and of both processes.
struct Footprint {
  std::uint64_t guest_slab = 0, our_memory = 0;  // KiB
  std::size_t our_files = 0, qemu_files = 0;
};

std::size_t files_of(pid_t pid) {
  const std::filesystem::directory_iterator files(fmt::format("/proc/{}/fd", pid));
  return static_cast<std::size_t>(std::ranges::distance(files));
}

std::uint64_t kib_of(const std::string& text, std::string_view name) {
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + name.size()));
}

TEST_P(Leave, ManyTimesUnderLoad) {
  const GuestImage before = look();
  const auto footprint = [this] {
    std::ifstream status("/proc/self/status");
    const std::string text{std::istreambuf_iterator<char>(status), {}};
    return Footprint{.guest_slab = kib_of(ask("cat /proc/meminfo"), "SUnreclaim:"),
                     .our_memory = kib_of(text, "VmRSS:"),
                     .our_files = files_of(getpid()),
                     .qemu_files = files_of(guest_->machine().host_process())};
  };
  ask(kLoad);
  for (unsigned n = 0; n < kWarmUps; ++n) trace_quietly();
  const std::uint64_t once = seen_;
  EXPECT_GE(once, kCalls);
  const Footprint first = footprint();

  const unsigned times = how_often();
  for (unsigned n = 0; n < times && !HasFailure(); ++n) {
    trace_quietly();
    EXPECT_EQ(seen_, once) << "the " << n << "th time";
  }

  const Footprint last = footprint();
  std::cout << fmt::format(
      "{} times: the guest's slab {} to {} KiB, our memory {} to {} KiB, our files {} to {}, "
      "QEMU's "
      "{} to {}\n",
      times, first.guest_slab, last.guest_slab, first.our_memory, last.our_memory, first.our_files,
      last.our_files, first.qemu_files, last.qemu_files);
  EXPECT_EQ(last.our_files, first.our_files);
  EXPECT_EQ(last.qemu_files, first.qemu_files);
  EXPECT_LT(last.our_memory, first.our_memory + kNoiseKib);
  EXPECT_LT(last.guest_slab, first.guest_slab + kNoiseKib);
  ask("rm /tmp/go; sleep 1");
  check_same(before, look());
  check_guest_is_well();
}

/// Traces in a process of its own, which dies without a word.
void trace_and_die(const std::function<bool()>& start, const std::function<void()>& meanwhile) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const char armed = start() ? 1 : 0;
    if (write(ends[1], &armed, 1) == 1) pause();
    _exit(1);
  }
  char armed = 0;
  EXPECT_EQ(read(ends[0], &armed, 1), 1);
  EXPECT_EQ(armed, 1);
  meanwhile();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST_P(Leave, WhatADeadTracerLeftIsTakenOut) {
  const GuestImage before = look();
  ask(kLoad);
  std::string refusal;
  std::unique_ptr<Count> count;
  const auto start = [&] {
    auto started = Count::start(guest_->machine(), guest_->kernel());
    if (started) count = std::move(*started);
    return started.has_value();
  };
  trace_and_die(start, [&] {
    ask("workload --getppid 500");
    const auto refused = providers::clean(guest_->machine(), guest_->kernel());
    if (!refused) refusal = refused.error().message;
  });
  EXPECT_NE(refusal.find("traces this guest already"), std::string::npos) << refusal;
  EXPECT_FALSE(before.differences(look()).empty());

  const auto cleaned = providers::clean(guest_->machine(), guest_->kernel());

  ASSERT_TRUE(cleaned) << cleaned.error().message;
  ASSERT_TRUE(*cleaned);
  EXPECT_NE((*cleaned)->find(" breakpoints and "), std::string::npos) << **cleaned;
  const auto again = providers::clean(guest_->machine(), guest_->kernel());
  EXPECT_TRUE(again && !*again);
  trace_quietly();
  EXPECT_GE(seen_, kCalls);
  ask("rm /tmp/go; sleep 1");
  check_same(before, look());
  check_guest_is_well();
}

INSTANTIATE_TEST_SUITE_P(Guests, Leave,
                         testing::Values(Guest{"debian-6.1", 1, "pti=on", true},
                                         Guest{"debian-6.1", 2, "no5lvl", true},
                                         Guest{"debian-6.1", 2, "", false},
                                         Guest{"debian-6.12", 1, "", true},
                                         Guest{"debian-6.12", 4, "pti=on no5lvl", true}),
                         name_of);

/// A kernel that preempts its own code: a task loses its CPU inside of a slot, as a rule, since
/// what interrupts it had to wait while it was in the shim. Others of more weight keep it away from
/// then on, until they are stopped.
class LeavePreempted : public Leave {
 protected:
  void SetUp() override {
    Leave::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ask("cd /proc/sys/kernel; if [ -e sched_autogroup_enabled ]; then echo 0 > "
        "sched_autogroup_enabled; fi; for n in 1 2 3; do setsid taskset 2 sh -c 'kill -STOP $$; "
        "while :; do :; done' </dev/null"
        " >/dev/null 2>&1 & echo $! >> /tmp/others; renice -n -20 -p $! >/dev/null; done;"
        " setsid taskset 2 workload --getppid 1000 --seconds 3000 </dev/null >/dev/null 2>&1 &"
        " echo $! > /tmp/one; renice -n 19 -p $! >/dev/null; sleep 1");
  }
  void keep_it_away() { ask("kill -CONT $(cat /tmp/others); sleep 1"); }
  void let_it_go() { ask("kill -STOP $(cat /tmp/others); sleep 1"); }
  bool told(std::string_view what) const {
    return std::ranges::any_of(notices_, [what](const std::string& notice) {
      return notice.find(what) != std::string::npos;
    });
  }
  /// As trace_once(), on the CPU that is not in use.
  void trace_beside(const char* command = "taskset 1 workload --getppid 2000") {
    auto count = Count::start(guest_->machine(), guest_->kernel());
    ASSERT_TRUE(count) << count.error().message;
    ask(command);
    ran_ = run_time();
    seen_ = (*count)->stop("workload");
    notices_ = (*count)->notices;
  }
  /// Traces until a task is inside at the end, by the words that tell of it.
  void trace_until(std::string_view words, const std::function<void()>& trace) {
    for (unsigned n = 0; n < kTriesToPreempt; ++n) {
      trace();
      if (told(words)) return;
      let_it_go();
    }
    FAIL() << "it never was in a slot when it lost its CPU";
  }
  /// Cleaning and tracing with the task inside. False, and nothing is said of it, when the
  /// scheduler has let the task go on meanwhile.
  bool is_used_again() {
    const std::string ran_then = ran_;
    std::cout << notices_.back() << '\n';
    const auto cleaned = providers::clean(guest_->machine(), guest_->kernel());
    std::vector<std::vector<std::string>> told_each;
    for (unsigned n = 0; n < kTimesAgain; ++n) {
      trace_beside();
      EXPECT_GE(seen_, kCalls);
      told_each.push_back(notices_);
    }
    if (run_time() != ran_then) return false;
    EXPECT_FALSE(cleaned);
    if (!cleaned) {
      const std::string& why = cleaned.error().message;
      EXPECT_NE(why.find("(workload) is inside"), std::string::npos) << why;
    }
    for (const auto& notices : told_each) {
      notices_ = notices;
      EXPECT_TRUE(told("it is used again") && told("the stub stays in"))
          << testing::PrintToString(notices_);
    }
    return true;
  }
  /// How long the task has run, in nanoseconds.
  std::string run_time() { return ask("cut -d' ' -f1 /proc/$(cat /tmp/one)/schedstat"); }
  void check_left_as_before(const GuestImage& before) {
    ask("kill -9 $(cat /tmp/others /tmp/one); sleep 1");
    check_same(before, look());
    check_guest_is_well();
  }

  static constexpr unsigned kTriesToPreempt = 40;
  std::string ran_;  // run_time() before the last trace ended
};

TEST_P(LeavePreempted, TheStubIsUsedAgainAsLongAsATaskIsInside) {
  const GuestImage before = look();
  unsigned tries = 0;
  do {
    ASSERT_LT(tries++, kTriesToPreempt) << "the others did not keep it away for so long";
    let_it_go();
    ASSERT_NO_FATAL_FAILURE(trace_until(
        "the stub stays in", [this] { trace_beside("kill -CONT $(cat /tmp/others); sleep 1"); }));
  } while (!is_used_again());
  let_it_go();
  trace_beside();

  EXPECT_GE(seen_, kCalls);
  EXPECT_TRUE(told("had to leave here was taken out")) << testing::PrintToString(notices_);
  EXPECT_FALSE(told("the stub stays in"));
  check_left_as_before(before);
}

TEST_P(LeavePreempted, SoIsThatOfADeadTracer) {
  const GuestImage before = look();
  trace_until("it is used again", [this] {
    std::unique_ptr<Count> count;
    const auto start = [&] {
      auto started = Count::start(guest_->machine(), guest_->kernel());
      if (started) count = std::move(*started);
      return started.has_value();
    };
    trace_and_die(start, [this] { keep_it_away(); });
    trace_beside();
  });
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_GE(seen_, kCalls);

  let_it_go();
  const auto cleaned = providers::clean(guest_->machine(), guest_->kernel());
  ASSERT_TRUE(cleaned) << cleaned.error().message;
  check_left_as_before(before);
}

INSTANTIATE_TEST_SUITE_P(Guests, LeavePreempted,
                         testing::Values(Guest{"debian-6.12", 2, "preempt=full", true},
                                         Guest{"debian-6.12", 2, "preempt=full pti=on", false}),
                         name_of);

}  // namespace
}  // namespace ringside::live
