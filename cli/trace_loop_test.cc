#include "cli/trace_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "cli/fake_tracer_for_tests.h"
#include "dif/verify/verify.h"

namespace ringside::cli {
namespace {

class EmptyView : public ProgramView {
 public:
  explicit EmptyView(const dif::Engine& engine) : engine_(&engine) {}
  const dif::Program& program() const override { return engine_->program(); }
  const dif::EcbInfo& ecb(dif::EcbId id) const override { return engine_->ecb(id); }
  const dif::ProbeDescription& probe_name(dif::ProbeId probe) const override {
    return engine_->probe_name(probe);
  }
  std::string describe(GuestVirt) const override { return "?"; }

 private:
  const dif::Engine* engine_;
};

/// A loop over an engine without clauses, and pipes for everything else.
class TraceLoopTest : public testing::Test {
 protected:
  TraceLoopTest()
      : signals_(*Signals::block()),
        engine_(*dif::verify_program({}), {}, 1),
        view_(engine_),
        sink_(open_pipe()),
        output_(*Output::create(view_, settings_, sink_)) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, control_), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, command_output_), 0);
    command_.emplace(vmm::CommandPort{control_[0], command_output_[0]});
  }
  ~TraceLoopTest() override {
    for (const int fd :
         {ends_[0], ends_[1], control_[0], control_[1], command_output_[0], command_output_[1]}) {
      close(fd);
    }
  }
  TraceLoop::Parts parts() {
    TraceLoop::Parts parts;
    parts.engine = &engine_;
    parts.tracer = &tracer_;
    parts.output = &output_;
    parts.settings = &settings_;
    parts.signals = &signals_;
    parts.trace_sink = parts.command_sink = &sink_;
    parts.watched_fd = ends_[1];
    parts.command = &*command_;
    return parts;
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
  FakeTracer tracer_;
  dif::Engine engine_;
  EmptyView view_;
  int ends_[2] = {-1, -1}, control_[2] = {-1, -1}, command_output_[2] = {-1, -1};
  Sink sink_;
  Output output_;
  std::optional<GuestCommand> command_;
  std::atomic<bool> done_ = false;

 private:
  int open_pipe() {
    EXPECT_EQ(pipe(ends_), 0);
    return ends_[1];
  }
};

TEST_F(TraceLoopTest, ASignalEndsIt) {
  kill(getpid(), SIGTERM);

  EXPECT_EQ(TraceLoop(parts()).run(), EndReason::Signal);
}

TEST_F(TraceLoopTest, TheCommandsEndEndsItWithAllItsOutput) {
  put(command_output_[1], "hello\n");
  put(control_[1], "exit 3\n");
  TraceLoop loop(parts());

  const EndReason reason = loop.run();
  loop.finish(reason);

  EXPECT_EQ(reason, EndReason::CommandEnded);
  EXPECT_TRUE(tracer_.stopped);
  EXPECT_EQ(printed(), "hello\n\n");
}

TEST_F(TraceLoopTest, ALineOfTheCommandWaitsForItsEnd) {
  put(command_output_[1], "read 3\nwri");
  put(control_[1], "exit 0\n");
  TraceLoop loop(parts());

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
  TraceLoop loop(parts());

  const EndReason reason = loop.run();
  loop.finish(reason);

  EXPECT_EQ(reason, EndReason::CommandEnded);
}

TEST_F(TraceLoopTest, AReaderThatGoesAwayEndsIt) {
  close(ends_[0]);
  ends_[0] = -1;

  EXPECT_EQ(TraceLoop(parts()).run(), EndReason::OutputClosed);
}

TEST_F(TraceLoopTest, AClosedCommandPortMeansTheMachineEnded) {
  shutdown(control_[1], SHUT_RDWR);

  EXPECT_EQ(TraceLoop(parts()).run(), EndReason::MachineEnded);
}

TEST_F(TraceLoopTest, AKernelThatIsGoneEndsItBeforeTheNextOnesWordsAreTakenForTheCommands) {
  tracer_.kernel_gone = "the guest has started another kernel";
  put(control_[1], "ready\n");

  EXPECT_EQ(TraceLoop(parts()).run(), EndReason::KernelGone);
}

TEST_F(TraceLoopTest, LostFiringsAreReportedOnce) {
  tracer_.lost = 2;
  TraceLoop loop(parts());

  testing::internal::CaptureStderr();
  loop.finish(EndReason::Exit);
  loop.finish(EndReason::Exit);

  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringside: 2 drops: the guest went on alone because the host did not answer in time\n");
}

}  // namespace
}  // namespace ringside::cli
