// Guests that are left as they were found, by the host's own look at their memory: text, interrupt
// table, first megabyte and page tables are the same before we come and after we went.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "providers/clean.h"
#include "providers/tracer.h"
#include "tests/live/guest_image.h"
#include "tests/live/live_guest.h"

namespace ringside::live {
namespace {

using namespace dif::testing;

constexpr unsigned kCalls = 2000;
constexpr unsigned kTimes = 20;
// A loaded host may let a vCPU wait for half a minute.
constexpr const char* kPatient = "nosoftlockup rcupdate.rcu_cpu_stall_suppress=1 ";
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
    for (const std::string& notice : tracer_->take_notices()) ADD_FAILURE() << notice;
    EXPECT_EQ(tracer_->lost_firings(), 0u);
    const dif::Harvest harvest = engine_.take_quiescent();
    std::uint64_t sum = 0;
    for (const dif::AggregateEntry& entry : harvest.aggregates) {
      // SAFETY: the key is text, which the engine ends with a NUL or the key's end.
      const char* const text = reinterpret_cast<const char*>(entry.key.data());
      if (std::string_view(text, strnlen(text, entry.key.size())) == program) {
        sum += static_cast<std::uint64_t>(entry.words[0]);
      }
    }
    return sum;
  }

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
  }

  check_same(before, look());
  check_guest_is_well();
}

TEST_P(Leave, ManyTimesUnderLoad) {
  const GuestImage before = look();
  ask(kLoad);
  trace_once();
  const std::uint64_t once = seen_;
  EXPECT_GE(once, kCalls);

  for (unsigned n = 1; n < kTimes && !HasFailure(); ++n) {
    trace_once();
    EXPECT_EQ(seen_, once) << "the " << n << "th time";
  }

  ask("rm /tmp/go; sleep 1");
  check_same(before, look());
  check_guest_is_well();
}

/// Traces in a process of its own, which dies without a word.
void trace_and_die(vmm::Machine& machine, guest_linux::Kernel& kernel,
                   const std::function<void()>& meanwhile) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto count = Count::start(machine, kernel);
    const char armed = count ? 1 : 0;
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
  trace_and_die(guest_->machine(), guest_->kernel(), [&] {
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
  trace_once();
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

}  // namespace
}  // namespace ringside::live
