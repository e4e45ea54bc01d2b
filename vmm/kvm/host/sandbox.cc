#include "vmm/kvm/host/sandbox.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "vmm/base/process.h"
#include "vmm/base/sanitized.h"

namespace ringside::vmm::kvm {
namespace {

// Allowed with any arguments: calls on open descriptors, on this process's memory, and on time.
constexpr std::array kAllowed = {
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(preadv),
    SCMP_SYS(pwritev),
    SCMP_SYS(preadv2),
    SCMP_SYS(pwritev2),
    SCMP_SYS(fsync),
    SCMP_SYS(fdatasync),
    SCMP_SYS(recvfrom),
    SCMP_SYS(close),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(futex),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    SCMP_SYS(getrandom),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(rseq),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(restart_syscall),
#ifdef RINGSIDE_SANITIZED
    SCMP_SYS(pipe2),  // UBSan writes an object into one, to see whether it is there at all
#endif
};

struct FilterEnd {
  void operator()(scmp_filter_ctx filter) const { seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, FilterEnd>;

Error no_sandbox(int error) {
  return {ErrorCode::Unsupported,
          fmt::format("cannot put the VMM's threads into their sandbox: {}; the host's kernel "
                      "needs CONFIG_SECCOMP_FILTER, and a container must let seccomp(2) pass",
                      std::strerror(error))};
}

/// 0, or a negative errno as libseccomp has it.
int add_rules(scmp_filter_ctx filter) {
  constexpr std::uint64_t kIoctlType = 0xff00, kKvm = KVMIO << 8;
  constexpr std::uint64_t kExecutable = PROT_EXEC;
  for (const int call : kAllowed) {
    if (const int error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0)) return error;
  }
  const auto allow_if = [filter](int call, scmp_arg_cmp condition) {
    return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &condition);
  };
  const auto self = static_cast<std::uint64_t>(getpid());
  // Fails and does not kill: glibc's malloc looks into /proc and /sys when it gives memory back or
  // counts processors (malloc/arena.c), and does well without.
  const auto refuse = [filter](int call) {
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), call, 0);
  };
  const std::array errors = {
      refuse(SCMP_SYS(open)),
      refuse(SCMP_SYS(openat)),
      allow_if(SCMP_SYS(ioctl), {1, SCMP_CMP_MASKED_EQ, kIoctlType, kKvm}),
      allow_if(SCMP_SYS(mmap), {2, SCMP_CMP_MASKED_EQ, kExecutable, 0}),
      allow_if(SCMP_SYS(mprotect), {2, SCMP_CMP_MASKED_EQ, kExecutable, 0}),
      // Only where the socket is connected to.
      allow_if(SCMP_SYS(sendto), {4, SCMP_CMP_EQ, 0, 0}),
      allow_if(SCMP_SYS(tgkill), {0, SCMP_CMP_EQ, self, 0}),
  };
  for (const int error : errors) {
    if (error != 0) return error;
  }
  // KVM_RUN is what these threads do: it is asked for first.
  return seccomp_syscall_priority(filter, SCMP_SYS(ioctl), 255);
}

Result<void> install_filter() {
  const Filter filter(seccomp_init(SCMP_ACT_TRAP));
  if (!filter) return Unexpected<Error>(no_sandbox(ENOMEM));
  int error = seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  // Before Linux 5.16 a filter slows the processor down, against code that the thread itself
  // translates; these threads run none. A kernel too old to know that cannot be told.
  (void)seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_SSB, 1);
  if (error == 0) error = add_rules(filter.get());
  if (error == 0) error = seccomp_load(filter.get());  // sets no_new_privs, too
  if (error != 0) return Unexpected<Error>(no_sandbox(-error));
  return {};
}

/// Of this thread: glibc has no capset, which would be the process's.
Result<void> drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  if (syscall(SYS_capset, &header, none.data()) == 0) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("cannot drop the capabilities of a thread: {}", std::strerror(errno)));
}

/// Says what the sandbox caught, then dies of it. No allocation and no stdio: the thread is in the
/// middle of anything.
void on_forbidden_call(int, siginfo_t* info, void*) {
  std::array<char, 10> digits;
  std::size_t first = digits.size();
  unsigned number = static_cast<unsigned>(info->si_syscall);
  do {
    digits[--first] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  char before[] = "ringside: a thread of the VMM made system call ";
  char after[] = ", which its sandbox forbids: a bug of ours, or a guest that breaks out\n";
  const std::array<iovec, 3> text{{{before, sizeof before - 1},
                                   {&digits[first], digits.size() - first},
                                   {after, sizeof after - 1}}};
  (void)!writev(STDERR_FILENO, text.data(), text.size());
  syscall(SYS_tgkill, getpid(), gettid(), SIGSYS);  // SA_RESETHAND: its default now
}

void catch_forbidden_calls() {
  static const bool done = [] {
    struct sigaction action {};
    action.sa_sigaction = on_forbidden_call;
    action.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER;
    return sigaction(SIGSYS, &action, nullptr) == 0;
  }();
  (void)done;
}

}  // namespace

Result<void> enter_sandbox() {
  catch_forbidden_calls();
  TRY(drop_capabilities());
  return install_filter();
}

Result<std::thread> start_sandboxed(const ThreadConfig& config, std::function<void()> body) {
  std::promise<Result<void>> entering;
  auto entered = entering.get_future();
  std::optional<AllSignalsBlocked> blocked(std::in_place, {SIGSYS, config.signal});
  std::thread thread(
      [name = config.name, body = std::move(body), entering = std::move(entering)]() mutable {
        pthread_setname_np(pthread_self(), name.c_str());
        auto done = enter_sandbox();
        const bool inside = done.has_value();
        entering.set_value(std::move(done));
        if (inside) body();
      });
  blocked.reset();
  const auto done = entered.get();
  if (done) return thread;
  thread.join();
  return Unexpected<Error>(done.error());
}

}  // namespace ringside::vmm::kvm
