#include "cli/output/target_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "cli/messages/messages.h"
#include "vmm/base/end_order.h"
#include "vmm/base/printable.h"
#include "vmm/linux/vmcoreinfo.h"
#include "vmm/page_walk.h"
#include "vmm/saved/core_writer.h"

namespace ringside::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMebibyte = 1 << 20;
/// Nobody wants to watch a copy that is over sooner.
constexpr std::chrono::milliseconds kFirstProgress{500};

/// A line on the terminal that is written over.
class ProgressLine {
 public:
  ~ProgressLine() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  void show(const std::string& path, std::uint64_t done, std::uint64_t all) {
    if (!terminal_ || Clock::now() - began_ < kFirstProgress) return;
    shown_ = true;
    fmt::print(stderr, "\r{}: snapshot(): {:3}% of {}", program_name(),
               all == 0 ? 100 : done * 100 / all, terminal_text(path, Breaks::Escaped));
    std::fflush(stderr);
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  const Clock::time_point began_ = Clock::now();
  bool shown_ = false;
};

}  // namespace

Result<std::string> TargetView::snapshot(const std::string& path) const {
  vmm::Machine* const machine = target_->machine();
  providers::FiringPause* const firing_pause = target_->tracer().firing_pause();
  if (machine == nullptr || firing_pause == nullptr) {
    return fail(ErrorCode::Unsupported, "there is no machine to write to " + path);
  }
  const Clock::time_point began = Clock::now();
  const EndOrder before = end_order();  // a snapshot in END may come after an order
  auto paused = vmm::PausedMachine::pause(*machine);
  if (!paused) {
    return fail(paused.error().code,
                fmt::format("cannot write {}: the machine cannot be paused: {}", path,
                            paused.error().message));
  }
  const std::vector<Registers> vcpus = TRY(firing_pause->registers(*paused));
  const std::string info = target_->kernel() != nullptr
                               ? guest_linux::read_vmcoreinfo(machine->memory(), *target_->kernel())
                               : std::string();
  ProgressLine line;
  const auto written = TRY(
      vmm::write_elf_core(*paused, {vcpus, info}, path, [&](std::uint64_t done, std::uint64_t all) {
        line.show(path, done, all);
        return end_order() == before;
      }));
  const std::chrono::duration<double> took = Clock::now() - began;
  return fmt::format(
      "{}: {:.0f} MiB of memory, {:.0f} MiB stored, {} vCPU{}; the guest stood "
      "still for {:.2f} s",
      path, static_cast<double>(written.memory) / kMebibyte,
      static_cast<double>(written.stored) / kMebibyte, vcpus.size(), vcpus.size() == 1 ? "" : "s",
      took.count());
}

std::string TargetView::describe(GuestVirt address) const {
  const guest_linux::Kernel* const kernel = target_->kernel();
  return kernel != nullptr ? kernel->symbols().describe(address)
                           : fmt::format("0x{:x}", address.raw());
}

std::string TargetView::describe_user(std::uint64_t pid, GuestVirt address) const {
  guest_linux::UserNames* const names = target_->user_names();
  return names != nullptr ? names->describe(pid != 0 ? pid : process_, address)
                          : ProgramView::describe_user(pid, address);
}

}  // namespace ringside::cli
