// In this file, top to bottom: the end of a machine in words, waiting, the kernel, the command.
#include "cli/guest/guest.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "cli/guest/images.h"
#include "cli/messages/messages.h"
#include "vmm/attach/attach.h"
#include "vmm/base/end_order.h"
#include "vmm/base/printable.h"
#include "vmm/held_vcpu.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/linux/discovery/discover.h"
#include "vmm/linux/discovery/kernel_boot_watch.h"
#include "vmm/linux/health/storage_watch.h"
#include "vmm/linux/types/type_file.h"
#include "vmm/vcpu_exits.h"

namespace ringside::cli {
namespace {

using guest_linux::Kernel;
using guest_linux::TypeFile;

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Generous: TCG on a busy host has taken minutes to boot what takes seconds.
constexpr std::chrono::minutes kBootLimit{5};
constexpr std::chrono::minutes kAnswerLimit{2};
constexpr milliseconds kRetry{20};
/// A process of gigabytes that ends on a loaded host takes seconds to give its memory back.
constexpr int kEndTimeout = 20'000;  // ms

/// One guest that comes up. Every wait watches orders to end and the machine's end.
class Startup {
 public:
  Startup(vmm::Machine& machine, EndEvents& events, const TypeFile* types)
      : machine_(&machine), events_(&events), types_(types) {}

  /// Sleeps until `fd` (-1: nothing) is readable, which it says, or the time is over. An error when
  /// an order came or the machine ended.
  Result<bool> sleep(int fd, Clock::duration time);
  Result<GuestMessage> wait_message(GuestCommand& command, GuestMessage::Kind wanted,
                                    Clock::duration limit, std::string_view what);
  Result<std::unique_ptr<guest_linux::Kernel>> wait_kernel();
  /// Lets a held machine run until its kernel has unpacked and moved itself, and no further.
  Result<guest_linux::KernelBootWatch::BootedKernel> wait_arrival(const vmm::KernelFile& file);
  /// How long the search took that found the kernel.
  Clock::duration discovery() const { return discovery_; }

 private:
  vmm::Machine* machine_;
  EndEvents* events_;
  const TypeFile* types_;  // null: the kernel's own
  Clock::duration discovery_{};
};

Result<bool> Startup::sleep(int fd, Clock::duration time) {
  std::array<pollfd, 3> fds{
      {{events_->fd(), POLLIN, 0}, {machine_->status().event_fd(), POLLIN, 0}, {fd, POLLIN, 0}}};
  const std::int64_t limit = std::chrono::ceil<milliseconds>(time).count();
  ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(limit, 0)));
  if (end_order() != EndOrder::None) return fail(ErrorCode::Io, "interrupted before tracing began");
  if (machine_->state() != vmm::MachineState::Running) {
    return fail(ErrorCode::MachineGone, "the guest has ended");
  }
  return fds[2].revents != 0;
}

Result<GuestMessage> Startup::wait_message(GuestCommand& command, GuestMessage::Kind wanted,
                                           Clock::duration limit, std::string_view what) {
  const Clock::time_point deadline = Clock::now() + limit;
  for (;;) {
    const std::optional<GuestMessage> message = TRY(command.next_message());
    if (message && message->kind == wanted) return *message;
    if (message && message->kind == GuestMessage::Kind::Error) {
      return fail(ErrorCode::Io,
                  fmt::format("the guest cannot run the command: {}", message->text));
    }
    if (message) continue;  // a late line of an earlier exchange
    const Clock::duration left = deadline - Clock::now();
    if (left.count() <= 0) {
      return fail(ErrorCode::MachineGone,
                  fmt::format("the guest does not answer ({} in {} minutes); the last line of its "
                              "console: {}",
                              what, std::chrono::duration_cast<std::chrono::minutes>(limit).count(),
                              printable(machine_->status().console_tail())));
    }
    if (TRY(sleep(command.control_fd(), left))) TRY(command.read_control());
  }
}

Result<std::unique_ptr<guest_linux::Kernel>> Startup::wait_kernel() {
  const Clock::time_point deadline = Clock::now() + kBootLimit;
  for (;;) {
    const Clock::time_point began = Clock::now();
    auto kernel = guest_linux::discover_kernel(*machine_, guest_linux::Boot::Finished, types_);
    if (kernel) discovery_ = Clock::now() - began;
    if (kernel || kernel.error().code != ErrorCode::NotFound) return kernel;
    if (began > deadline) {
      return fail(
          kernel.error().code,
          "no running Linux was found in the guest within 5 minutes: " + kernel.error().message);
    }
    // A scan of a large guest takes a while; never spend more than half the time on it.
    TRY(sleep(-1, std::max<Clock::duration>(kRetry, Clock::now() - began)));
  }
}

Result<guest_linux::KernelBootWatch::BootedKernel> Startup::wait_arrival(
    const vmm::KernelFile& file) {
  const auto arrival = TRY(guest_linux::KernelBootWatch::watch(*machine_));
  machine_->vcpus().release();
  const Clock::time_point deadline = Clock::now() + kBootLimit;
  do {
    if (TRY(sleep(arrival->fd(), deadline - Clock::now()))) return arrival->take(file);
  } while (Clock::now() < deadline);
  return fail(ErrorCode::NotFound,
              fmt::format("the kernel in {} has not unpacked itself within 5 minutes; leave "
                          "--boot bzimage away",
                          file.name()));
}

/// As CommandLine has it, of a machine whose name may not be known yet.
std::string line_start(const CommandLine& line, const MachineOptions& machine) {
  return line.line_start(machine.name.empty() ? machine.attach->text : machine.name);
}

/// The machine as the command line asks for it, with the image's files and our own ears for news.
Result<MachineOptions> with_files(const CommandLine& line, MachineOptions machine) {
  if (!machine.image.empty()) {
    const Image image = TRY(find_image(machine.image, image_folders()));
    machine.guest.kernel = image.kernel;
    machine.guest.initrd = image.initrd;
  }
  if (!line.settings.boot_arguments.empty()) {
    if (!machine.guest.append.empty()) machine.guest.append += ' ';
    machine.guest.append += line.settings.boot_arguments;
  }
  const auto tell = [start = line_start(line, machine)](std::string_view news) {
    say(start + std::string(news));
  };
  if (!line.settings.quiet) machine.guest.progress = tell;
  machine.kvm.warn = tell;
  return machine;
}

Result<void> bring_up(Guest& guest, vmm::CommandPort fds, const CommandLine& line,
                      const MachineOptions& options, CommandStart start, Startup& startup) {
  GuestCommand port(fds);
  // Another's initrd need not know the port, so it is waited for only where it is needed or ours.
  if (!options.image.empty() || !line.commands.empty()) {
    TRY(startup.wait_message(port, GuestMessage::Kind::Ready, kBootLimit, "no 'ready'"));
  }
  guest.traced.kernel = TRY(startup.wait_kernel());
  guest.discovery = startup.discovery();
  if (line.commands.empty()) return {};
  using Errors = GuestCommand::Errors;
  const auto ask = [&](Errors errors) -> Result<GuestMessage> {
    TRY(port.request(line.commands.front(), errors));
    return startup.wait_message(port, GuestMessage::Kind::Pid, kAnswerLimit, "no 'pid'");
  };
  auto answer = ask(Errors::Apart);
  if (!answer && port.lacks_request()) answer = ask(Errors::Together);  // an older image
  if (answer && start == CommandStart::Begun) {
    TRY(port.begin());
    answer = startup.wait_message(port, GuestMessage::Kind::Pid, kAnswerLimit, "no 'pid'");
    if (!answer && port.lacks_request()) {
      return fail(ErrorCode::Unsupported,
                  "the image cannot stop a program before its first instruction, as probes of "
                  "$target need it: build it anew (images/build)");
    }
  }
  guest.command_pid = TRY(answer).number;
  guest.command.emplace(std::move(port));
  return {};
}

}  // namespace

bool await_end(vmm::Machine& machine) {
  pollfd event{machine.status().event_fd(), POLLIN, 0};
  const bool runs = machine.state() == vmm::MachineState::Running;
  if (runs && event.fd >= 0) ::poll(&event, 1, kEndTimeout);
  return machine.state() != vmm::MachineState::Running;
}

bool is_ending(vmm::Machine& machine) {
  if (machine.state() != vmm::MachineState::Running) return true;
  std::byte first{};
  return !machine.memory().read(GuestPhys(0), std::span(&first, 1)) && await_end(machine);
}

std::string describe_end(vmm::Machine& machine) {
  std::string text, cause = machine.status().exit_reason();
  switch (machine.state()) {
    case vmm::MachineState::Running: return "the guest runs";
    case vmm::MachineState::PoweredOff: text = "the guest powered itself off"; break;
    case vmm::MachineState::Rebooted: text = "the guest rebooted"; break;
    case vmm::MachineState::Panicked: text = "the guest panicked"; break;
    case vmm::MachineState::Died:
      text = machine.is_others() && !cause.empty() ? std::exchange(cause, {})
                                                   : fmt::format("{} died", machine.kind());
  }
  if (!cause.empty()) text += ": " + cause;
  std::string tail = machine.status().console_tail();
  while (!tail.empty() && (tail.back() == '\n' || tail.back() == '\r')) tail.pop_back();
  std::size_t start = tail.find_last_of('\n');
  // A backtrace and more follow a panic's reason.
  const std::size_t panic = tail.rfind("Kernel panic");
  if (machine.state() == vmm::MachineState::Panicked && panic != std::string::npos) {
    tail.erase(std::min(tail.find_first_of("\r\n", panic), tail.size()));
    start = tail.find_last_of('\n');
  }
  const std::string last = printable(start == std::string::npos ? tail : tail.substr(start + 1));
  if (!last.empty()) text += fmt::format("; the last line of its console: {}", last);
  return text;
}

Error or_lost(Error error, vmm::Machine& machine) {
  const bool told = error.code == ErrorCode::MachineGone && await_end(machine);
  if (!told && !is_ending(machine)) return error;
  if (machine.status().was_ended_by_us()) return error;
  return {ErrorCode::MachineGone, "lost before tracing began: " + describe_end(machine)};
}

namespace {

Result<vmm::StartedGuest> start_in_qemu(const MachineOptions& machine) {
  vmm::QemuConfig config = machine.qemu;
  switch (machine.choice) {
    case MachineChoice::QemuKvm: config.accelerator = vmm::AcceleratorChoice::Kvm; break;
    case MachineChoice::Qemu: config.accelerator = vmm::AcceleratorChoice::Tcg; break;
    default: config.accelerator = vmm::AcceleratorChoice::Auto;
  }
  auto started = vmm::start_qemu(machine.guest, config);
  if (started || started.error().code != ErrorCode::MachineGone) return started;
  // QEMU's own words about a bad kernel do not say which file they mean, nor what it is.
  const auto file = vmm::KernelFile::open(machine.guest.kernel);
  if (file) return started;
  const Error& error = started.error();
  return fail(error.code, fmt::format("{}; {}", error.message, file.error().message));
}

/// A machine that waits before its first instruction, and its kernel by its file.
Result<void> hold(Guest& guest, MachineOptions options, EndEvents& events, const TypeFile* types) {
  const auto file = std::make_shared<const vmm::KernelFile>(
      TRY(vmm::open_kernel(options.guest.kernel, options.kvm.boot)));
  options.kvm.kernel_file = file;
  options.kvm.hold = true;
  guest.traced.machine = TRY(vmm::start_kvm(options.guest, options.kvm)).machine;
  vmm::Machine& machine = *guest.traced.machine;
  guest_linux::KaslrOffset move;
  if (vmm::relocates_itself(*file, options.guest.append)) {
    if (const auto why = machine.exits()->cannot(vmm::VcpuEvent::Kind::MsrWrite)) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("a kernel that moves itself cannot be followed: {}; give it "
                              "-x bootargs=nokaslr",
                              *why));
    }
    auto arrived = Startup(machine, events, types).wait_arrival(*file);
    if (!arrived) return tl::unexpected(or_lost(std::move(arrived).error(), machine));
    guest.paused_at_arrival = std::make_unique<vmm::PausedMachine>(std::move(arrived->paused));
    move = arrived->move;
  }
  const auto began = Clock::now();
  auto kernel = TRY(guest_linux::kernel_from_file(*file, move, types));
  guest.discovery = Clock::now() - began;
  guest.traced.held = kernel.get();
  guest.traced.kernel = std::move(kernel);
  return {};
}

/// A stop would wait for the storage, and the guest would stand still then.
void stop_only_where_storage_answers(vmm::Machine& machine, const guest_linux::Kernel& kernel) {
  static constexpr milliseconds kLimit{500};
  const auto storage = std::make_shared<guest_linux::StorageWatch>(machine.memory(), kernel);
  machine.vcpus().set_stop_check([storage] {
    return vmm::HeldVcpu::is_held() ? storage->look_once(kLimit) : storage->await(kLimit);
  });
}

/// The owner's name for a machine; a number tells it from others of that name, as it does for those
/// on the command line.
std::string free_name(const std::string& wanted, const std::vector<Guest>& guests,
                      const CommandLine& line) {
  const auto taken = [&](const std::string& name) {
    return std::ranges::any_of(guests,
                               [&](const Guest& each) { return each.traced.name == name; }) ||
           std::ranges::any_of(line.machines, [&](const auto& each) { return each.name == name; });
  };
  std::string name = wanted;
  for (unsigned n = 2; taken(name); ++n) name = fmt::format("{}-{}", wanted, n);
  return name;
}

/// A machine that runs already, and the kernel in it, which must have booted.
Result<void> attach_to(Guest& guest, const MachineOptions& options,
                       const std::vector<Guest>& guests, const CommandLine& line,
                       const TypeFile* types) {
  const bool plug_card = options.plug_card && line.task != CommandLine::Task::Clean;
  auto attached =
      TRY(vmm::attach(*options.attach, plug_card ? vmm::CardUse::PluggedIn : vmm::CardUse::None));
  if (guest.traced.name.empty()) guest.traced.name = free_name(attached.name, guests, line);
  guest.traced.machine = std::move(attached.machine);
  if (attached.let_go_of) {
    say(fmt::format("{}a ringside that was killed (process {}) had left it paused: it goes on",
                    line.line_start(guest.traced.name), *attached.let_go_of));
  }
  if (attached.stopped_by && line.task == CommandLine::Task::Trace) {
    say(fmt::format("{}{}: tracing waits", line.line_start(guest.traced.name),
                    *attached.stopped_by));
  }
  const auto began = Clock::now();
  auto kernel =
      guest_linux::discover_kernel(*guest.traced.machine, guest_linux::Boot::Finished, types);
  if (kernel) {
    guest.traced.kernel = std::move(*kernel);
    stop_only_where_storage_answers(*guest.traced.machine, *guest.traced.kernel);
  } else if (is_ending(*guest.traced.machine) || line.task == CommandLine::Task::Clean ||
             types != nullptr) {
    return tl::unexpected(or_lost(std::move(kernel).error(), *guest.traced.machine));
  } else {
    say(fmt::format("{}: only probes that need no Linux (dtrace, profile): {}", guest.traced.name,
                    kernel.error().message));
  }
  guest.discovery = Clock::now() - began;
  return {};
}

/// One machine may be named in several ways, and nothing is touched before that is known.
Result<void> check_each_is_another(const std::vector<MachineOptions>& machines) {
  if (machines.size() < 2) return {};
  std::map<pid_t, std::string> named;
  for (const MachineOptions& machine : machines) {
    const auto pid = machine.attach ? vmm::find_process(*machine.attach) : std::nullopt;
    if (!pid) continue;
    const auto [first, is_new] = named.emplace(*pid, machine.attach->text);
    if (is_new) continue;
    return fail(
        ErrorCode::Invalid,
        fmt::format("'{}' and '{}' are the same machine, process {}: name each machine once",
                    printable(first->second), printable(machine.attach->text), *pid));
  }
  return {};
}

/// Those that run already come first: what is wrong with one is known before others are started.
Result<void> attach_all(std::vector<Guest>& guests, const CommandLine& line,
                        const TypeFile* types) {
  TRY(check_each_is_another(line.machines));
  for (std::size_t i = 0; i < guests.size(); ++i) {
    const MachineOptions& machine = line.machines[i];
    if (!machine.attach) continue;
    show_progress(fmt::format("attaching to {}", machine.attach->text));
    auto done = attach_to(guests[i], machine, guests, line, types);
    if (done) continue;
    done.error().message = line_start(line, machine) + done.error().message;
    return done;
  }
  return {};
}

/// Every machine begins to boot before one is waited for.
Result<void> start_all(std::vector<Guest>& guests, const CommandLine& line, EndEvents& events,
                       CommandStart start) {
  const auto named = [&line](Error error, const MachineOptions& machine) {
    error.message = line_start(line, machine) + error.message;
    return tl::make_unexpected(std::move(error));
  };
  const auto file = TRY(TypeFile::open_if_named(line.types_file));
  const TypeFile* const types = file ? &*file : nullptr;
  for (const MachineOptions& machine : line.machines) {
    guests.emplace_back().traced.name = machine.name;
  }
  TRY(attach_all(guests, line, types));
  std::vector<vmm::CommandPort> ports(guests.size());
  for (std::size_t i = 0; i < guests.size(); ++i) {
    const MachineOptions& machine = line.machines[i];
    Guest& guest = guests[i];
    if (machine.attach) continue;
    auto options = with_files(line, machine);
    if (!options) return named(std::move(options).error(), machine);
    if (line.from_start()) {
      if (auto held = hold(guest, std::move(*options), events, types); !held) {
        return named(std::move(held).error(), machine);
      }
      continue;
    }
    auto started = options->choice == MachineChoice::Kvm
                       ? vmm::start_kvm(options->guest, options->kvm)
                       : start_in_qemu(*options);
    if (!started) return named(std::move(started).error(), machine);
    guest.traced.machine = std::move(started->machine);
    ports[i] = started->command_port;
  }
  const auto is_attached = [](const MachineOptions& machine) { return machine.attach.has_value(); };
  if (line.from_start() || std::ranges::all_of(line.machines, is_attached)) return {};
  for (std::size_t i = 0; i < guests.size(); ++i) {
    if (line.machines[i].attach) continue;
    show_progress(fmt::format("waiting for {} to boot", line.machines[i].name));
    Startup startup(*guests[i].traced.machine, events, types);
    if (auto up = bring_up(guests[i], ports[i], line, line.machines[i], start, startup); !up) {
      return named(or_lost(std::move(up).error(), *guests[i].traced.machine), line.machines[i]);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Guest>> start_guests(const CommandLine& line, EndEvents& events,
                                        CommandStart start) {
  std::vector<Guest> guests;
  if (auto started = start_all(guests, line, events, start); !started) {
    for (Guest& guest : guests) {
      guest.paused_at_arrival.reset();
      if (guest.traced.machine) guest.traced.machine->shut_down();
    }
    return tl::make_unexpected(std::move(started).error());
  }
  return guests;
}

}  // namespace ringside::cli
