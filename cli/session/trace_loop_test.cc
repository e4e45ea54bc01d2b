#include "cli/session/trace_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <deque>
#include <memory>
#include <thread>

#include "cli/output/target_view.h"
#include "cli/program/fake_tracer_for_tests.h"
#include "dif/testing/fake_guest.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "vmm/inert_machine_for_tests.h"

namespace ringside::cli {
namespace {

/// A target without probes, whose tracer is the test's.
struct FakeTarget {
  explicit FakeTarget(std::string name, std::unique_ptr<vmm::Machine> machine = nullptr)
      : tracer(new FakeTracer),
        target({std::move(name), std::move(machine), nullptr},
               std::unique_ptr<FakeTracer>(tracer)) {
    target.bind(*dif::verify_program(program()), {}, providers::Target::ProcessNames::Raw);
    view.emplace(target, 0);
  }
  /// A clause that calls exit(status).
  static dif::Program program() {
    using dif::testing::action, dif::testing::clause, dif::testing::constant;
    dif::Program program;
    program.clauses = {clause({action(dif::ActionKind::Exit, {constant(3)})})};
    return program;
  }

  FakeTracer* tracer;
  providers::Target target;
  std::optional<TargetView> view;
};

/// A machine that has ended, or will.
class MortalMachine : public vmm::InertMachine {
 public:
  vmm::GuestMemory& memory() override { return memory_; }
  vmm::MachineState state() const override { return state_; }
  void end() { state_ = vmm::MachineState::Panicked; }
  std::vector<std::string> take_news() override { return std::exchange(news, {}); }
  std::optional<std::string> must_leave() const override { return leave; }

  std::vector<std::string> news;
  std::optional<std::string> leave;

 private:
  vmm::GuestMemory memory_;
  std::atomic<vmm::MachineState> state_ = vmm::MachineState::Running;
};

/// A machine that ends the session when it goes on after a pause.
class PausedMachine final : public vmm::InertMachine {
 public:
  vmm::GuestMemory& memory() override { return memory_; }
  Result<void> resume() override {
    went_on = true;
    kill(getpid(), SIGINT);
    return {};
  }
  std::atomic<bool> went_on = false;

 private:
  vmm::GuestMemory memory_;
};

/// A loop over targets without probes, and pipes for everything else. One target, unless the test
/// adds another.
class TraceLoopTest : public testing::Test {
 protected:
  TraceLoopTest() : signals_(*Signals::block()), sink_(open_pipe()) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, control_), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, command_output_), 0);
    command_.emplace(vmm::CommandPort{control_[0], command_output_[0]});
    add("first");
  }
  ~TraceLoopTest() override {
    for (const int fd :
         {ends_[0], ends_[1], control_[0], control_[1], command_output_[0], command_output_[1]}) {
      close(fd);
    }
  }
  FakeTarget& add(std::string name, std::unique_ptr<vmm::Machine> machine = nullptr) {
    return targets_.emplace_back(std::move(name), std::move(machine));
  }
  /// The first target has the command.
  TraceLoop loop() {
    std::vector<const ProgramView*> views;
    std::vector<WatchedTarget> watched;
    for (FakeTarget& each : targets_) {
      views.push_back(&*each.view);
      watched.emplace_back(each.target, watched.empty() ? &*command_ : nullptr, sink_);
    }
    output_.emplace(*Output::create(views, settings_, sink_));
    return TraceLoop(std::move(watched), processes_, *output_, settings_, signals_,
                     {sink_, ends_[1]}, clock_, [this](WatchedTarget& target, EndReason reason) {
                       left_.emplace_back(target.target().name(), reason);
                     });
  }
  static void put(int fd, std::string_view text) {
    ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string printed() {
    char bytes[256];
    const ssize_t size = read(ends_[0], bytes, sizeof bytes);
    return {bytes, static_cast<std::size_t>(size > 0 ? size : 0)};
  }

  Signals signals_;
  Settings settings_;
  HostProcesses processes_;
  providers::TscCalibration clock_;
  std::deque<FakeTarget> targets_;
  int ends_[2] = {-1, -1}, control_[2] = {-1, -1}, command_output_[2] = {-1, -1};
  Sink sink_;
  std::optional<Output> output_;
  std::optional<GuestCommand> command_;
  std::vector<std::pair<std::string, EndReason>> left_;

 private:
  int open_pipe() {
    EXPECT_EQ(pipe(ends_), 0);
    return ends_[1];
  }
};

TEST_F(TraceLoopTest, ASignalEndsIt) {
  kill(getpid(), SIGTERM);

  EXPECT_EQ(loop().run(), EndReason::Signal);
}

TEST_F(TraceLoopTest, TheCommandsEndEndsItWithAllItsOutput) {
  put(command_output_[1], "hello\n");
  put(control_[1], "exit 3\n");
  TraceLoop loop = this->loop();

  const EndReason reason = loop.run();
  loop.finish(reason);

  EXPECT_EQ(reason, EndReason::CommandEnded);
  EXPECT_TRUE(targets_.front().tracer->stopped);
  EXPECT_EQ(printed(), "hello\n\n");
}

TEST_F(TraceLoopTest, ALineOfTheCommandWaitsForItsEnd) {
  put(command_output_[1], "read 3\nwri");
  put(control_[1], "exit 0\n");
  TraceLoop loop = this->loop();

  const EndReason reason = loop.run();
  const std::string before = printed();
  put(command_output_[1], "te 1");
  loop.finish(reason);

  EXPECT_EQ(before, "read 3\n") << "what ringside prints here would stand inside the next line";
  EXPECT_EQ(printed(), "write 1\n");
}

TEST_F(TraceLoopTest, AGuestThatWritesOnAfterTheEndDoesNotKeepIt) {
  put(control_[1], "exit 0\n");
  const int endless = open("/dev/zero", O_RDONLY);  // always has more
  ASSERT_GE(endless, 0);
  ASSERT_EQ(dup2(endless, command_output_[0]), command_output_[0]);
  close(endless);
  const int sink = open("/dev/null", O_WRONLY);
  ASSERT_EQ(dup2(sink, ends_[1]), ends_[1]);
  close(sink);
  TraceLoop loop = this->loop();

  const EndReason reason = loop.run();
  loop.finish(reason);

  EXPECT_EQ(reason, EndReason::CommandEnded);
}

TEST_F(TraceLoopTest, AReaderThatGoesAwayEndsIt) {
  close(ends_[0]);
  ends_[0] = -1;

  EXPECT_EQ(loop().run(), EndReason::OutputClosed);
}

TEST_F(TraceLoopTest, AClosedCommandPortMeansTheMachineEnded) {
  shutdown(control_[1], SHUT_RDWR);

  EXPECT_EQ(loop().run(), EndReason::MachineEnded);
}

TEST_F(TraceLoopTest, AKernelThatIsGoneEndsItBeforeTheNextOnesWordsAreTakenForTheCommands) {
  targets_.front().tracer->kernel_gone = "the guest has started another kernel";
  put(control_[1], "ready\n");

  EXPECT_EQ(loop().run(), EndReason::KernelGone);
}

TEST_F(TraceLoopTest, LostFiringsAreReportedOnce) {
  targets_.front().tracer->statistics_now.kernel.misses = 2;
  TraceLoop loop = this->loop();

  testing::internal::CaptureStderr();
  loop.finish(EndReason::Exit);
  loop.finish(EndReason::Exit);

  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringside: 2 drops: the guest went on alone because the host did not answer in time\n");
}

TEST_F(TraceLoopTest, EndsWhoseBeginningWasForgottenAreToldAsThat) {
  targets_.front().tracer->statistics_now.kernel = {.misses = 3, .forgotten = 2};
  TraceLoop loop = this->loop();

  testing::internal::CaptureStderr();
  loop.finish(EndReason::Exit);

  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringside: 1 drop: the guest went on alone because the host did not answer in time\n"
            "ringside: 2 drops: more calls were under way at a time than are remembered\n");
}

TEST_F(TraceLoopTest, AMachineThatEndsLeavesTheOthersToGoOn) {
  auto machine = std::make_unique<MortalMachine>();
  machine->end();
  FakeTarget& second = add("second", std::move(machine));
  put(command_output_[1], "hello\n");
  put(control_[1], "exit 0\n");
  TraceLoop loop = this->loop();

  const EndReason reason = loop.run();

  EXPECT_EQ(reason, EndReason::CommandEnded) << "the first one's";
  EXPECT_EQ(left_, (std::vector{std::pair(std::string("second"), EndReason::MachineEnded)}));
  EXPECT_TRUE(second.tracer->stopped);
  EXPECT_FALSE(targets_.front().tracer->stopped);
  EXPECT_TRUE(loop.lost_target());
}

TEST_F(TraceLoopTest, TheLastMachinesEndEndsIt) {
  targets_.clear();
  for (const char* name : {"first", "second"}) {
    auto machine = std::make_unique<MortalMachine>();
    machine->end();
    add(name, std::move(machine));
  }
  TraceLoop loop = this->loop();

  EXPECT_EQ(loop.run(), EndReason::MachineEnded);
  EXPECT_EQ(left_, (std::vector{std::pair(std::string("first"), EndReason::MachineEnded)}));
  EXPECT_EQ(loop.last_target().target().name(), "second");
}

TEST_F(TraceLoopTest, AMachineWhoseMemoryWentIsNotTakenForAKernelThatDid) {
  auto machine = std::make_unique<MortalMachine>();  // no byte of it can be read
  machine->end();
  FakeTarget& second = add("second", std::move(machine));
  second.tracer->kernel_gone = "the guest has overwritten the shim";
  put(control_[1], "exit 0\n");
  TraceLoop loop = this->loop();

  EXPECT_EQ(loop.run(), EndReason::CommandEnded);

  EXPECT_EQ(left_, (std::vector{std::pair(std::string("second"), EndReason::MachineEnded)}));
}

TEST_F(TraceLoopTest, NoEndIsBeforeTheLastFiringOfAnyMachine) {
  FakeTarget& second = add("second", std::make_unique<MortalMachine>());
  FakeTarget& first = targets_.front();
  bool all_halted = false;
  first.tracer->when_stopped = [&] { all_halted = first.tracer->halted && second.tracer->halted; };
  TraceLoop loop = this->loop();

  loop.finish(EndReason::Signal);
  first.tracer->when_stopped = {};  // it is stopped again as it ends, after this test's variables

  EXPECT_TRUE(all_halted);
  EXPECT_TRUE(second.tracer->stopped);
}

TEST_F(TraceLoopTest, AMachineThatMovesIsTurnedAwayFromWhileItRuns) {
  auto machine = std::make_unique<MortalMachine>();
  machine->leave = "its owner moves it";
  FakeTarget& second = add("second", std::move(machine));
  put(control_[1], "exit 0\n");
  TraceLoop loop = this->loop();

  EXPECT_EQ(loop.run(), EndReason::CommandEnded) << "the first one's";

  EXPECT_EQ(left_, (std::vector{std::pair(std::string("second"), EndReason::MachineLeft)}));
  EXPECT_TRUE(second.tracer->stopped) << "what is in it is taken out";
}

TEST_F(TraceLoopTest, SaysWhatAMachinesOwnerDidToIt) {
  targets_.clear();
  auto machine = std::make_unique<MortalMachine>();
  machine->news = {"its owner has paused it", "it runs again"};
  add("first", std::move(machine));
  TraceLoop loop = this->loop();

  testing::internal::CaptureStderr();
  loop.finish(EndReason::Exit);

  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringside: its owner has paused it\nringside: it runs again\n");
}

TEST_F(TraceLoopTest, ExitOnOneTargetEndsAll) {
  FakeTarget& second = add("second");
  second.target.engine().enable(0, dif::ProbeId{1}, {"fbt", "", "f", "entry"});
  dif::testing::FakeGuest guest;
  second.target.engine().fire(dif::ProbeId{1}, {0, 0, 0}, guest);
  TraceLoop loop = this->loop();

  const EndReason reason = loop.run();
  loop.finish(reason);

  EXPECT_EQ(reason, EndReason::Exit);
  EXPECT_TRUE(targets_.front().tracer->stopped && second.tracer->stopped);
}

TEST_F(TraceLoopTest, WithSeveralTargetsLinesNameTheMachine) {
  FakeTarget& second = add("second");
  second.tracer->statistics_now.kernel.misses = 1;
  second.tracer->notices = {"the guest changed its code"};
  TraceLoop loop = this->loop();

  testing::internal::CaptureStderr();
  loop.finish(EndReason::Exit);

  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringside: second: the guest changed its code\n"
            "ringside: second: 1 drop: the guest went on alone because the host did not answer in "
            "time\n");
}

TEST_F(TraceLoopTest, AFiringThatWaitsForItsRecordIsLetGo) {
  PausedMachine machine;
  providers::FiringPause firing_pause(machine, 1, nullptr);
  targets_.front().tracer->kept = &firing_pause;
  settings_.switch_interval = settings_.aggregate_interval = std::chrono::hours(1);
  TraceLoop looped = loop();
  std::thread firing([&] {
    firing_pause.ask(0, {0, GuestVirt(0), {}});
    firing_pause.settle(0);
  });

  EXPECT_EQ(looped.run(), EndReason::Signal);

  firing.join();
  EXPECT_TRUE(machine.went_on);
}

}  // namespace
}  // namespace ringside::cli
