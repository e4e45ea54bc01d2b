// One guest of the images, booted for a whole suite of tests, and commands run in it over its
// command port: the guest's own word on what we read out of its memory.
// Used by the tests of this folder only. Does not: trace anything.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/guest/guest_command.h"
#include "cli/guest/images.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"

namespace ringside::live {

/// The image of that name in $RINGSIDE_IMAGES, else in images/ of the build folder that this
/// program lies in. NotFound: build it with images/build.
Result<cli::Image> find_live_image(std::string_view name);

struct LiveSettings {
  std::string append;  // to the kernel's command line
  bool as_is = false;  // with nothing set aside for the shim
};

class LiveGuest {
 public:
  /// Returns once the command port is ready and the running kernel was found in memory. A guest
  /// that QEMU's TCG loses while it boots, before anything could be traced, is started again, a few
  /// times in all (figures: images/README.md), and stderr tells of it.
  static Result<std::unique_ptr<LiveGuest>> boot(const cli::Image& image, unsigned vcpus,
                                                 const LiveSettings& settings = {});
  LiveGuest(const LiveGuest&) = delete;
  LiveGuest& operator=(const LiveGuest&) = delete;
  ~LiveGuest() { machine_->shut_down(); }

  vmm::Machine& machine() { return *machine_; }
  guest_linux::Kernel& kernel() { return *kernel_; }

  /// Runs a command to its end and returns what it printed; a status other than 0 is an error.
  Result<std::string> run(std::string_view command);
  /// Lets a command begin; returns its pid. finish() has to follow.
  Result<std::int64_t> start(std::string_view command);
  Result<std::string> finish();

 private:
  static Result<std::unique_ptr<LiveGuest>> boot_once(const cli::Image& image, unsigned vcpus,
                                                      const LiveSettings& settings);
  explicit LiveGuest(std::unique_ptr<vmm::Machine> machine, cli::GuestCommand port)
      : machine_(std::move(machine)), port_(port) {}

  Result<cli::GuestMessage> wait_for(cli::GuestMessage::Kind wanted);
  Result<void> find_kernel();

  std::unique_ptr<vmm::Machine> machine_;
  std::unique_ptr<guest_linux::Kernel> kernel_;
  cli::GuestCommand port_;
  std::string output_;
};

}  // namespace ringside::live
