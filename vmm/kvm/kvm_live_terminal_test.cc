// The guest's console at a pseudo-terminal, on a real /dev/kvm.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <string_view>

#include "vmm/kvm/testing/live_machine.h"

namespace ringside::vmm::kvm {
namespace {

// clang-format off
/// Keeps what COM1 receives, and how much that is, until it is a q.
MINI_GUEST(guest_that_listens, R"(
  mov rdi, 0x200000
1: mov dx, 0x3fd
  in al, dx
  test al, 1
  jz 1b
  mov dx, 0x3f8
  in al, dx
  mov rcx, [rdi]
  mov [rdi + rcx + 8], al
  inc qword ptr [rdi]
  cmp al, 'q'
  jne 1b
  )" MINI_GUEST_POWER_OFF);
// clang-format on

/// A pseudo-terminal that is this process's standard input while it lives.
class Terminal {
 public:
  Terminal() : user_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), before_(dup(STDIN_FILENO)) {
    if (grantpt(user_.get()) != 0 || unlockpt(user_.get()) != 0) return;
    const UniqueFd ours(open(ptsname(user_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    ok_ = ours && dup2(ours.get(), STDIN_FILENO) == STDIN_FILENO;
  }
  ~Terminal() { dup2(before_.get(), STDIN_FILENO); }

  bool ok() const { return ok_; }
  void type(std::string_view keys) const {
    EXPECT_EQ(write(user_.get(), keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  static bool has_lines_and_signals() {
    termios mode{};
    EXPECT_EQ(tcgetattr(STDIN_FILENO, &mode), 0);
    return (mode.c_lflag & ICANON) != 0 && (mode.c_lflag & ISIG) != 0;
  }

 private:
  const UniqueFd user_, before_;
  bool ok_ = false;
};

using KvmLiveTerminal = LiveTest;

TEST_F(KvmLiveTerminal, EveryKeyIsTheGuestsButForCtrlA) {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  const Terminal user;
  ASSERT_TRUE(user.ok());
  terminal();
  boot(CODE_OF(guest_that_listens));
  EXPECT_FALSE(Terminal::has_lines_and_signals());

  user.type(
      "a\x03\x01h\x01\x01"
      "b");
  await_more(0, 3);
  EXPECT_EQ(word(8), 0x62010361u) << "a, Ctrl-C, Ctrl-A, b";
  const timespec timeout{60, 0};
  user.type("\x01x");
  EXPECT_EQ(sigtimedwait(&interrupt, nullptr, &timeout), SIGINT);

  user.type("q");
  EXPECT_EQ(await_end(), MachineState::PoweredOff) << machine().status().exit_report();
  EXPECT_TRUE(Terminal::has_lines_and_signals()) << "as before";
  pthread_sigmask(SIG_UNBLOCK, &interrupt, nullptr);
}

}  // namespace
}  // namespace ringside::vmm::kvm
