// The machine against a fake QEMU: its monitor and gdbstub are played here, its process is a
// sleep(1), so that everything but the guest is real.
#include "vmm/qemu/qemu_machine.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <vector>

#include "vmm/qemu/fake_peer.h"
#include "vmm/qemu/start_qemu.h"

namespace ringside::vmm {
namespace {

void socket_pair(UniqueFd& a, UniqueFd& b) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  a = UniqueFd(ends[0]);
  b = UniqueFd(ends[1]);
}

/// Plays the gdbstub: answers every request until the client closes or `limit` were answered.
void play_stub(FakePeer& peer, std::atomic<int>& pauses, int limit, const std::string& stopped) {
  for (int answered = 0; answered < limit; ++answered) {
    const std::string packet = peer.receive_packet();
    if (packet.empty()) return;
    if (packet == "\x03") ++pauses;
    if (packet == "c") continue;
    if (packet == "g") {
      peer.send(gdb_packet(std::string(1216, '1')));
    } else {
      peer.send(packet == "?" ? kStopped : packet == "\x03" ? stopped : gdb_packet("OK"));
    }
  }
}

class FakeQemu {
 public:
  /// `stopped`: what the stub says when it is interrupted.
  explicit FakeQemu(int stub_limit = 1'000'000, std::string exit_report = {}, int repeats = 1,
                    std::string stopped = kStopped)
      : monitor_([this, exit_report = std::move(exit_report), repeats](FakePeer& peer) {
          peer.send("{\"QMP\": {}}\r\n");
          peer.receive_until("\n");
          peer.send("{\"return\": {}, \"id\": 1}\r\n");
          for (int n = 0; n < repeats && peer.send(exit_report); ++n) ++said_;
          if (!exit_report.empty()) peer.receive_until("\n");
          peer.send("{\"return\": {\"status\": \"internal-error\"}, \"id\": 2}\r\n");
          peer.receive_until("end");
        }),
        stub_([this, stub_limit, stopped = std::move(stopped)](FakePeer& peer) {
          play_stub(peer, pauses_, stub_limit, stopped);
        }) {}

  std::unique_ptr<QemuMachine> machine() {
    auto ram = SharedRam::create(256 << 20);
    auto child =
        ChildProcess::spawn("/bin/sleep", {"sleep", "1000"}, {}, ChildLife::EndsWithParent);
    EXPECT_TRUE(ram && child);
    pid_ = child->pid();
    QemuMachine::Links links;
    links.monitor = monitor_.client();
    links.gdb = stub_.client();
    socket_pair(links.console, console_);
    auto machine = QemuMachine::take_over(2, Accelerator::Tcg, std::move(*ram), std::move(*child),
                                          std::move(links));
    if (!machine) {
      ADD_FAILURE() << machine.error().message;
      return nullptr;
    }
    return std::move(*machine);
  }
  int pauses() const { return pauses_; }
  /// How often the monitor has said its last words.
  int said() const { return said_; }
  pid_t pid() const { return pid_; }
  int console() const { return console_.get(); }

 private:
  std::atomic<int> pauses_{0}, said_{0};
  pid_t pid_ = 0;
  UniqueFd console_;
  FakePeer monitor_, stub_;
};

bool ends(Machine& machine) {
  pollfd entry{machine.status().event_fd(), POLLIN, 0};
  return poll(&entry, 1, 600'000) == 1;  // a sanitizer on a busy host takes its time
}

TEST(QemuMachine, PausesOnceForNestedPauses) {
  FakeQemu qemu;
  auto machine = qemu.machine();
  ASSERT_TRUE(machine);
  {
    auto outer = PausedMachine::pause(*machine);
    auto inner = PausedMachine::pause(*machine);
    ASSERT_TRUE(outer && inner);
    EXPECT_TRUE(inner->registers(1));
    EXPECT_FALSE(inner->registers(2)) << "there are two";
    const CodeWrite write{GuestPhys(0x1000), 0xcc};
    EXPECT_TRUE(outer->write_code({&write, 1}));
  }
  EXPECT_EQ(qemu.pauses(), 1);
  EXPECT_EQ(machine->state(), MachineState::Running);
  EXPECT_EQ(machine->kind(), "qemu (TCG)");
}

TEST(QemuMachine, SeesItsProcessDie) {
  FakeQemu qemu;
  auto machine = qemu.machine();
  ASSERT_TRUE(machine);

  kill(qemu.pid(), SIGKILL);

  EXPECT_TRUE(ends(*machine));
  EXPECT_EQ(machine->state(), MachineState::Died);
  EXPECT_EQ(machine->status().exit_reason(), "signal 9 (Killed)");
  const auto paused = PausedMachine::pause(*machine);
  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().code, ErrorCode::MachineGone);
}

TEST(QemuMachine, SurvivesAStubThatGoesInTheMiddleOfAPause) {
  FakeQemu qemu(/*stub_limit=*/4);  // ?, c, the interrupt, PhyMemMode; then the connection closes
  auto machine = qemu.machine();
  ASSERT_TRUE(machine);
  {
    auto paused = PausedMachine::pause(*machine);
    ASSERT_TRUE(paused);
    const std::vector<CodeWrite> writes(500, CodeWrite{GuestPhys(0x1000), 0xcc});

    const auto written = paused->write_code(writes);

    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::MachineGone);
    EXPECT_FALSE(paused->registers(0));
  }
  EXPECT_FALSE(PausedMachine::pause(*machine));
  EXPECT_EQ(machine->state(), MachineState::Died) << "a QEMU that hangs is ended";
}

TEST(QemuMachine, JudgesTheEndByEventAndConsole) {
  FakeQemu qemu(1'000'000,
                "{\"event\": \"SHUTDOWN\", \"data\": {\"reason\": \"guest-reset\"}}\r\n");
  auto machine = qemu.machine();
  ASSERT_TRUE(machine);
  const std::string_view words = "\x1b[1mKernel panic - not syncing: Attempted to kill init!\r\n";
  ASSERT_EQ(send(qemu.console(), words.data(), words.size(), 0), ssize_t(words.size()));

  kill(qemu.pid(), SIGKILL);

  EXPECT_TRUE(ends(*machine));
  EXPECT_EQ(machine->state(), MachineState::Panicked);
  EXPECT_EQ(machine->status().exit_reason(), "") << "of QEMU, which did as it was told";
  EXPECT_EQ(machine->status().console_tail(),
            "?[1mKernel panic - not syncing: Attempted to kill init!\n");
}

TEST(QemuMachine, EndsAGuestThatQemuCannotRunOn) {
  FakeQemu qemu(1'000'000, "{\"event\": \"STOP\"}\r\n");
  auto machine = qemu.machine();
  ASSERT_TRUE(machine);

  EXPECT_TRUE(ends(*machine)) << "QEMU waits for ever after an internal error";
  EXPECT_EQ(machine->state(), MachineState::Died);
}

TEST(QemuMachine, NeverLetsTheConsoleFillUp) {
  FakeQemu qemu;
  auto machine = qemu.machine();
  ASSERT_TRUE(machine);
  const std::string line(1023, 'x');

  for (int i = 0; i < 4096; ++i) {
    ASSERT_EQ(send(qemu.console(), (line + "\n").data(), 1024, 0), 1024);
  }

  EXPECT_LE(machine->status().console_tail().size(), 64u << 10);
}

TEST(QemuMachine, ShutsDownBesideAMonitorThatNeverStopsTalking) {
  std::string flood;
  for (int n = 0; n < 100'000; ++n) flood += "{\"event\": \"RTC_CHANGE\"}\r\n";
  FakeQemu qemu(1'000'000, flood, /*repeats=*/1'000'000);
  auto machine = qemu.machine();
  ASSERT_TRUE(machine);

  machine->shut_down();

  EXPECT_EQ(kill(qemu.pid(), 0), -1) << "ended and reaped";
}

TEST(QemuMachine, SeesItsProcessDieBesideAMonitorThatNeverStopsTalking) {
  std::string flood;  // of 64 KiB
  while (flood.size() < 64 << 10) flood += "{\"event\": \"RTC_CHANGE\"}\r\n";
  FakeQemu qemu(1'000'000, flood, /*repeats=*/1'000'000);
  auto machine = qemu.machine();
  ASSERT_TRUE(machine);
  kill(qemu.pid(), SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, id_t(qemu.pid()), &info, WEXITED | WNOWAIT), 0) << "it is dead";
  const int said = qemu.said();

  EXPECT_TRUE(ends(*machine));

  EXPECT_LE(qemu.said() - said, 32) << "it is noticed within 2 MiB of events";
}

TEST(QemuMachine, EndsAQemuWhoseStubTalksNonsense) {
  FakeQemu qemu(1'000'000, {}, 1, "$T02thread:01;#00");
  auto machine = qemu.machine();
  ASSERT_TRUE(machine);

  const auto paused = PausedMachine::pause(*machine);

  ASSERT_FALSE(paused) << "whether the guest stands still nobody knows";
  EXPECT_EQ(paused.error().code, ErrorCode::MachineGone);
  EXPECT_TRUE(paused.error().message.ends_with("name another with --qemu"))
      << paused.error().message;
  EXPECT_EQ(machine->state(), MachineState::Died);
}

TEST(QemuMachine, ShutsDownMoreThanOnce) {
  FakeQemu qemu;
  auto machine = qemu.machine();
  ASSERT_TRUE(machine);

  machine->shut_down();
  machine->shut_down();

  EXPECT_EQ(kill(qemu.pid(), 0), -1) << "ended and reaped";
  EXPECT_NE(machine->state(), MachineState::Running);
}

GuestConfig bootable() {
  GuestConfig guest;
  guest.kernel = "/etc/passwd";  // any file that can be read
  return guest;
}

std::string start_error(const GuestConfig& guest, std::string program = QemuConfig().program) {
  QemuConfig config;
  config.accelerator = AcceleratorChoice::Tcg;
  config.program = std::move(program);
  const auto started = start_qemu(guest, config);
  return started ? "started" : started.error().message;
}

TEST(StartQemu, SaysWhatIsWrongInOneLine) {
  const std::string kernel_words =
      "; give --kernel a bzImage (/boot/vmlinuz-*) or a vmlinux that you may read";
  const std::string initrd_words =
      "; give --initrd a file that you may read, or leave it away for a kernel that needs none";
  GuestConfig config = bootable();
  config.kernel = "/no/such/kernel";
  EXPECT_EQ(
      start_error(config),
      "cannot read the guest's kernel /no/such/kernel: No such file or directory" + kernel_words);
  config = bootable();
  config.initrd = "/no/such/initrd";
  EXPECT_EQ(
      start_error(config),
      "cannot read the guest's initrd /no/such/initrd: No such file or directory" + initrd_words);
  config = bootable();
  EXPECT_EQ(start_error(config, "no-such-qemu"),
            "no program no-such-qemu: apt-get install qemu-system-x86, or name a QEMU with --qemu");
  EXPECT_TRUE(start_error(config, "/tmp").starts_with("no program /tmp: ")) << "a folder";
  config = bootable();
  config.kernel = "/tmp";
  EXPECT_EQ(start_error(config),
            "cannot read the guest's kernel /tmp: Is a directory" + kernel_words);
  config = bootable();
  config.initrd = "/tmp";
  EXPECT_EQ(start_error(config),
            "cannot read the guest's initrd /tmp: Is a directory" + initrd_words);
  config = bootable();
  config.memory = 1 << 20;
  EXPECT_EQ(start_error(config), "a guest needs 256 MiB of memory or more, not 1 MiB");
  config = bootable();
  config.vcpus = 0;
  EXPECT_EQ(start_error(config), "a guest needs a CPU or more");
}

TEST(StartQemu, PassesOnTheLastWordsOfAQemuThatEndsAtOnce) {
  GuestConfig config = bootable();
  EXPECT_EQ(
      start_error(config, "/bin/false"),
      "QEMU's monitor closed the connection; is --qemu a QEMU for x86-64 (qemu-system-x86_64)?");

  const std::string error = start_error(config, "/bin/ls");  // complains about the options

  EXPECT_TRUE(error.starts_with("QEMU did not start: ")) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace ringside::vmm
