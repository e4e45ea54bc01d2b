#include "cli/why/why.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "cli/guest/saved_guest.h"
#include "cli/messages/messages.h"
#include "cli/output/sink.h"
#include "vmm/attach/attach.h"
#include "vmm/attach/host_share.h"
#include "vmm/linux/discovery/discover.h"
#include "vmm/linux/health/health.h"
#include "vmm/linux/health/storage_watch.h"
#include "vmm/linux/types/type_file.h"

namespace ringside::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// A machine to look at, and what it is called.
struct Patient {
  std::unique_ptr<vmm::Machine> machine;
  std::string name;
  guest_linux::ExamineOptions options;
  Result<std::unique_ptr<guest_linux::Kernel>> kernel;
};

/// A thread that seems held back after a short time is watched for long enough.
std::vector<std::string> held_back_since(const vmm::HostShare& first, pid_t process) {
  auto now = vmm::HostShare::look(process);
  const auto apart = now.since(first);
  if (apart < vmm::HostShare::kLeast) {
    if (now.held_back_since(first).empty()) return {};
    std::this_thread::sleep_for(vmm::HostShare::kLeast - apart);
    now = vmm::HostShare::look(process);
  }
  return now.held_back_since(first);
}

Result<Patient> find_patient(const HealthQuestion& asked) {
  if (!asked.core_file.empty()) {
    auto guest = TRY(open_saved_guest(asked.core_file, asked.types_file));
    return Patient{std::move(guest.machine),
                   asked.core_file,
                   {guest_linux::GuestSource::Saved, {}, {}, {}, {}},
                   std::move(guest.kernel)};
  }
  const auto target = TRY(vmm::parse_attach_target(asked.target));
  auto observed = TRY(vmm::look_at(target));
  const pid_t process = observed.machine->host_process();
  const auto ask_host = [process, first = vmm::HostShare::look(process)] {
    return held_back_since(first, process);
  };
  const auto types = TRY(guest_linux::TypeFile::open_if_named(asked.types_file));
  auto kernel = guest_linux::discover_kernel(*observed.machine, guest_linux::Boot::AnyStage,
                                             types ? &*types : nullptr);
  if (!kernel && types) return tl::unexpected(std::move(kernel).error());
  return Patient{std::move(observed.machine),
                 std::move(observed.name),
                 {guest_linux::GuestSource::Runs, std::move(observed.stopped_by),
                  std::move(observed.limits), std::move(observed.throttled_drives), ask_host},
                 std::move(kernel)};
}

/// A stop would wait for the storage as the guest does, and the monitor with it.
void look_without_stop_where_storage_hangs(Patient& patient, guest_linux::Kernel& kernel) {
  if (patient.options.life != guest_linux::GuestSource::Runs) return;
  if (patient.options.stopped_by) return;
  guest_linux::StorageWatch storage(patient.machine->memory(), kernel);
  const auto answers = storage.await(guest_linux::StorageWatch::kSlow);
  if (answers || !patient.machine->vcpus().look_while_they_run()) return;
  patient.options.limits.push_back(vmm::not_stopped_because(answers.error().message));
}

}  // namespace

Result<Examined> examine_machine(const HealthQuestion& asked) {
  Patient patient = TRY(find_patient(asked));
  if (asked.found) asked.found();
  guest_linux::Kernel* kernel = patient.kernel ? patient.kernel->get() : nullptr;
  if (kernel != nullptr) look_without_stop_where_storage_hangs(patient, *kernel);
  const std::string trouble = patient.kernel ? std::string() : patient.kernel.error().message;
  auto health = guest_linux::examine(*patient.machine, kernel, trouble, patient.options);
  patient.machine->shut_down();  // turns away from one that runs
  if (!health) return tl::make_unexpected(std::move(health).error());
  return Examined{std::move(patient.name), std::move(*health)};
}

namespace {

Result<void> report(const CommandLine& line) {
  const auto began = Clock::now();
  const auto tell_time = [&](std::string_view what) {
    if (!line.settings.debug) return;
    const std::chrono::duration<double, std::milli> spent = Clock::now() - began;
    say(fmt::format("{} after {:.1f} ms", what, spent.count()));
  };
  const std::string target = line.arguments.empty() ? std::string() : line.arguments.front();
  show_progress(fmt::format("looking at {}", line.core_file.empty() ? target : line.core_file));
  const auto examined = examine_machine(
      {target, line.core_file, line.types_file, [&] { tell_time("kernel found"); }});
  show_progress({});
  TRY(examined);
  tell_time("examined");
  Sink sink(STDOUT_FILENO);
  if (!line.output_file.empty()) sink = TRY(Sink::append_to(line.output_file));
  sink.set_raw_text(line.settings.raw_text);
  if (line.settings.format == OutputFormat::Text) {
    sink.write(health_text(examined->name, examined->health));
  } else {
    const int indent = line.settings.format == OutputFormat::Json ? 2 : -1;
    // A terminal gets JSON's own spelling of control characters, not the sink's.
    const bool ascii = sink.escapes();
    sink.write(health_tree(examined->name, examined->health)
                   .dump(indent, ' ', ascii, Tree::error_handler_t::replace) +
               "\n");
  }
  if (!sink.flush() && !sink.problem().empty()) {
    return fail(ErrorCode::Io, "cannot write output: " + sink.problem());
  }
  return {};
}

}  // namespace

int run_why(const CommandLine& line) {
  const auto done = report(line);
  if (done) return kExitOk;
  say(done.error().message);
  return kExitFailure;
}

}  // namespace ringside::cli
