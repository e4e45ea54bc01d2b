#include "tests/live/live_guest.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <filesystem>

#include "vmm/base/printable.h"
#include "vmm/linux/discovery/discover.h"
#include "vmm/qemu/start_qemu.h"

namespace ringside::live {
namespace {

using Kind = cli::GuestMessage::Kind;
using Clock = std::chrono::steady_clock;

// A loaded machine under TCG has taken minutes for what takes seconds.
constexpr std::chrono::minutes kTimeout{4};
constexpr int kRetryMs = 50;
constexpr int kBoots = 3;

}  // namespace

Result<cli::Image> find_live_image(std::string_view name) {
  auto folders = cli::image_folders();
  std::error_code failure;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failure);
  // This program is BUILD/tests/live/NAME.
  if (!failure) {
    folders.push_back((self.parent_path().parent_path().parent_path() / "images").string());
  }
  return cli::find_image(name, folders);
}

Result<std::unique_ptr<LiveGuest>> LiveGuest::boot(const cli::Image& image, unsigned vcpus,
                                                   const LiveSettings& settings) {
  for (int left = kBoots - 1;; --left) {
    auto guest = boot_once(image, vcpus, settings);
    if (guest || left == 0 || guest.error().code != ErrorCode::MachineGone) return guest;
    fmt::print(stderr, "started again: {}\n", guest.error().message);
  }
}

Result<std::unique_ptr<LiveGuest>> LiveGuest::boot_once(const cli::Image& image, unsigned vcpus,
                                                        const LiveSettings& settings) {
  vmm::GuestConfig config;
  config.kernel = image.kernel;
  config.initrd = image.initrd;
  config.vcpus = vcpus;
  config.append = settings.append;
  vmm::QemuConfig qemu;
  qemu.as_is = settings.as_is;
  auto started = TRY(vmm::start_qemu(config, qemu));
  std::unique_ptr<LiveGuest> guest(
      new LiveGuest(std::move(started.machine), cli::GuestCommand(started.command_port)));
  TRY(guest->wait_for(Kind::Ready));
  TRY(guest->find_kernel());
  return guest;
}

Result<void> LiveGuest::find_kernel() {
  const auto deadline = Clock::now() + kTimeout;
  for (;;) {
    auto kernel = guest_linux::discover_kernel(*machine_);
    if (kernel) {
      kernel_ = std::move(*kernel);
      return {};
    }
    const bool may_come = kernel.error().code == ErrorCode::NotFound && Clock::now() < deadline;
    if (!may_come) return tl::make_unexpected(std::move(kernel).error());
    ::poll(nullptr, 0, kRetryMs);
  }
}

Result<cli::GuestMessage> LiveGuest::wait_for(Kind wanted) {
  const auto deadline = Clock::now() + kTimeout;
  for (;;) {
    const auto message = TRY(port_.next_message());
    if (message && message->kind == wanted) return *message;
    if (message) {
      return fail(ErrorCode::Io, fmt::format("the guest answered out of turn: {}", message->text));
    }
    std::array<pollfd, 3> fds{{{port_.control_fd(), POLLIN, 0},
                               {port_.output_fd(), POLLIN, 0},
                               {machine_->status().event_fd(), POLLIN, 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || ::poll(fds.data(), fds.size(), static_cast<int>(left.count())) == 0 ||
        machine_->state() != vmm::MachineState::Running) {
      return fail(ErrorCode::MachineGone, "no answer; the guest's console: " +
                                              printable(machine_->status().console_tail()));
    }
    if (fds[1].revents != 0) port_.read_output(output_);
    if (fds[0].revents == 0) continue;
    if (auto read = port_.read_control(); !read) {
      return fail(read.error().code,
                  fmt::format("{}; the guest's console: {}", read.error().message,
                              printable(machine_->status().console_tail())));
    }
  }
}

Result<std::int64_t> LiveGuest::start(std::string_view command) {
  output_.clear();
  TRY(port_.request(command, cli::GuestCommand::Errors::Together));
  const auto answer = TRY(wait_for(Kind::Pid));
  TRY(port_.go());
  return answer.number;
}

Result<std::string> LiveGuest::finish() {
  const auto end = TRY(wait_for(Kind::Exit));
  port_.read_output(output_);  // the guest drained the line before it said so
  if (end.number != 0) {
    return fail(ErrorCode::Io, fmt::format("status {}: {}", end.number, output_));
  }
  return std::move(output_);
}

Result<std::string> LiveGuest::run(std::string_view command) {
  TRY(start(command));
  return finish();
}

}  // namespace ringside::live
