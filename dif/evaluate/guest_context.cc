// The context of firings that have no guest behind them, and the defaults of all contexts.
#include "dif/evaluate/guest_context.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace ringside::dif {

namespace {

class NoMemory final : public GuestReader {
 public:
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    if (out.empty()) return {};
    return tl::unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
  }
};

class NoGuestContext final : public GuestContext {
 public:
  Result<std::uint64_t, Fault> variable(ContextVariable which) const override {
    switch (which) {
      case ContextVariable::Pid:
      case ContextVariable::Tid: return static_cast<std::uint64_t>(pid_);
      case ContextVariable::Ppid: return static_cast<std::uint64_t>(ppid_);
      case ContextVariable::Uid: return uid_;
      case ContextVariable::Gid: return gid_;
      case ContextVariable::Curthread:
      case ContextVariable::Errno:
      case ContextVariable::Caller:
      case ContextVariable::Ucaller:
      case ContextVariable::Stackdepth:
      case ContextVariable::Ustackdepth:
      case ContextVariable::Ipl:
      case ContextVariable::Vtimestamp:
      case ContextVariable::Born: return 0;
    }
    return 0;
  }
  Result<std::size_t, Fault> execname(std::span<char> out) const override {
    constexpr std::string_view kName = "ringside";
    const auto text = kName.substr(0, out.size());
    std::ranges::copy(text, out.begin());
    return text.size();
  }
  Result<std::uint64_t, Fault> argument(unsigned) const override { return 0; }
  const GuestReader& kernel() const override { return memory_; }
  const GuestReader& user() const override { return memory_; }

 private:
  NoMemory memory_;
  pid_t pid_ = ::getpid(), ppid_ = ::getppid();
  std::uint64_t uid_ = ::getuid(), gid_ = ::getgid();
};

}  // namespace

Result<void, Fault> GuestContext::wait(std::uint64_t nanoseconds) const {
  std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
  return {};
}

const GuestContext& no_guest_context() {
  static const NoGuestContext context;
  return context;
}

}  // namespace ringside::dif
