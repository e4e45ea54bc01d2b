// In this file, top to bottom: attaching, the program, arming, the end of a machine.
#include "cli/session/tracing.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "cli/guest/saved_guest.h"
#include "cli/messages/messages.h"
#include "cli/program/defined_probes.h"
#include "cli/program/libraries.h"
#include "cli/session/bind_script.h"
#include "cli/session/watched_target.h"
#include "vmm/base/end_order.h"
#include "vmm/base/own_folder.h"

namespace ringside::cli {
namespace {

std::string kernel_name(const guest_linux::Kernel* kernel) {
  if (kernel == nullptr) return "something that is no Linux";
  const std::string_view release = kernel->release();
  return release.empty() ? "a kernel" : fmt::format("Linux {}", release);
}

}  // namespace

/// --core: nothing is started, and nothing but dtrace's probes fires.
Result<void> Tracing::attach_saved() {
  show_progress("reading " + line_.core_file);
  SavedGuest saved = TRY(open_saved_guest(line_.core_file, line_.types_file));
  if (!saved.kernel) {
    Error error = std::move(saved.kernel).error();
    error.message = line_.core_file + ": " + error.message;
    return tl::make_unexpected(std::move(error));
  }
  Guest guest;
  guest.traced.name = line_.core_file;
  guest.traced.machine = std::move(saved.machine);
  guest.traced.kernel = std::move(*saved.kernel);
  guest.traced.saved = true;
  return attach_to(std::move(guest), providers::TrapForm::Breakpoints);
}

Result<void> Tracing::attach() {
  if (!line_.core_file.empty()) return attach_saved();
  if (line_.machines.empty()) {
    TRY(start_processes());
    return attach_to({}, providers::TrapForm::Breakpoints);
  }
  const Clock::time_point began = Clock::now();
  if (std::ranges::any_of(line_.machines, &MachineOptions::outlives_us)) {
    events_.owe_guest(
        "ended at once: breakpoints and the stub may have stayed in the guest; "
        "`ringside clean` takes them out");
  }
  std::vector<Guest> guests = TRY(start_guests(
      line_, events_, script_.probes_target() ? CommandStart::Begun : CommandStart::Waiting));
  show_progress("looking for probes");
  for (const Guest& guest : guests) {
    const vmm::Machine& machine = *guest.traced.machine;
    report_time(line_.settings,
                fmt::format("{} on {} with {} vCPUs is {}", kernel_name(guest.traced.kernel.get()),
                            machine.kind(), machine.vcpu_count(),
                            guest.traced.held != nullptr ? "held" : "up"),
                began);
    report_time(line_.settings, "symbols and types known", Clock::now() - guest.discovery);
  }
  for (std::size_t n = 0; n < guests.size(); ++n) {
    TRY(check_not_interrupted());
    TRY(attach_to(std::move(guests[n]), traps_in(line_.machines[n])));
  }
  targets_.tell_omissions();
  return {};
}

/// Between the steps before a trace begins, each of which may take seconds.
Result<void> Tracing::check_not_interrupted() {
  if (end_order() == EndOrder::None) return {};
  return fail(ErrorCode::Io, "interrupted before tracing began");
}

void Tracing::make_environment() {
  std::vector<MachinesEnvironment::Machine> machines;
  for (SessionTarget& entry : targets_) {
    machines.push_back({entry.target->name(), &*entry.environment});
  }
  environment_.emplace(std::move(machines));
}

/// Where nothing else is asked for, a machine that may go on without us has only breakpoints: of a
/// ringside that is killed they leave one byte each, and the pause that places them reads no
/// stacks.
providers::TrapForm Tracing::traps_in(const MachineOptions& machine) const {
  const bool jumps = line_.settings.jump_probes.value_or(!machine.outlives_us());
  return jumps ? providers::TrapForm::JumpsWhereTheyMay : providers::TrapForm::Breakpoints;
}

/// Null where no function of a kernel can be probed. With -x nolibs programs do without libraries,
/// and the probes are there all the same.
Result<std::shared_ptr<const providers::DefinedProbes>> Tracing::defined_probes(
    const Guest& guest) {
  const bool runs = guest.traced.kernel != nullptr && guest.traced.held == nullptr &&
                    !guest.traced.saved && line_.task != CommandLine::Task::Clean;
  if (!runs) return nullptr;
  if (libraries_ == nullptr) {
    Settings settings = line_.settings;
    settings.no_libraries = false;
    libraries_ = std::make_shared<const std::vector<d::LibrarySource>>(
        TRY(load_libraries(settings, data_folder("lib"), LibraryReader::Tracer)));
  }
  return read_defined_probes(libraries_, *guest.traced.kernel, line_.settings.error_tags);
}

Result<void> Tracing::attach_to(Guest guest, providers::TrapForm traps) {
  const Clock::time_point began = Clock::now();
  providers::TracerOptions options;
  options.only_to_clean = line_.task == CommandLine::Task::Clean;
  options.channel = line_.settings.channel;
  options.poll_threads = line_.settings.poll_threads;
  options.traps = traps;
  options.recording = line_.settings.recording;
  options.record_full = line_.settings.record_full;
  options.calibration = clock_;
  options.defined = TRY(defined_probes(guest));
  options.host_files =
      TRY(guest_linux::HostFiles::open({.sysroots = line_.settings.sysroots,
                                        .uses_servers = guest_linux::Debuginfod::is_wanted(),
                                        .is_verbose = line_.verbose,
                                        .show = show_progress}));
  const bool is_guests = guest.traced.machine != nullptr && !line_.processes.empty();
  const std::int64_t process = is_guests              ? line_.processes.front()
                               : guest.traced.machine ? guest.command_pid
                                                      : processes_.target();
  const std::string whose = line_.line_start(guest.traced.name);
  auto attached = providers::Target::attach(guest.traced, options);
  if (!attached) {
    Error error = std::move(attached).error();
    if (guest.traced.machine) error = or_lost(std::move(error), *guest.traced.machine);
    error.message = whose + error.message;
    return tl::make_unexpected(std::move(error));
  }
  if (is_guests) TRY((*attached)->follow_process(process));
  targets_.add(std::move(*attached), std::move(guest), process);
  report_time(line_.settings, "attached", began);
  return {};
}

/// -c and -p on this host, before any thread of ours runs.
Result<void> Tracing::start_processes() {
  for (const std::string& command : line_.commands) {
    TRY(processes_.create(command, line_.settings));
  }
  for (const std::int64_t pid : line_.processes) TRY(processes_.grab(pid));
  return {};
}

Result<void> Tracing::compile(Sink& desugared) {
  make_environment();
  return script_.make(targets_, *environment_, desugared);
}

Result<void> Tracing::verify() {
  const Settings& settings = line_.settings;
  if (settings.format == OutputFormat::Perfetto || settings.record_threads) script_.tell_threads();
  programs_ = TRY(bound_programs(script_, targets_));
  script_.release_program();
  return {};
}

Result<void> Tracing::enable(Sink& sink, std::unique_ptr<RecordWriter> writer) {
  TRY(bind_targets(script_, std::exchange(programs_, {}), targets_, line_.settings));
  std::vector<const ProgramView*> views;
  for (const SessionTarget& entry : targets_) views.push_back(&entry.view);
  output_.emplace(TRY(Output::create(views, line_.settings, sink, std::move(writer))));
  output_->set_places([this](int line) { return script_.place(line); });
  return enable_targets(script_, targets_, line_.settings);
}

Result<void> Tracing::arm(TraceLoop::Streams streams, Sink& commands) {
  std::vector<WatchedTarget> targets;
  for (SessionTarget& entry : targets_) {
    targets.emplace_back(*entry.target, entry.command ? &*entry.command : nullptr, commands);
  }
  loop_.emplace(std::move(targets), processes_, *output_, line_.settings, events_, streams, *clock_,
                tell_end);
  leave_figures();
  TRY(limit_traps(targets_, line_));
  TRY(check_not_interrupted());
  TRY(start_all());
  end_set_up();
  return {};
}

void Tracing::let_go() {
  if (!targets_.exit_status()) {
    for (SessionTarget& entry : targets_) entry.paused_at_arrival.reset();
  }
  processes_.go();
  // One that cannot be told to go has ended, which the loop sees.
  for (SessionTarget& entry : targets_) {
    if (entry.command) (void)entry.command->go();
  }
}

/// Nothing will be compiled or enabled any more.
void Tracing::end_set_up() {
  targets_.tell_omissions();
  environment_.reset();
  for (SessionTarget& entry : targets_) {
    entry.environment.reset();
    entry.target->end_set_up();
  }
  malloc_trim(0);
}

/// Every BEGIN has fired before any probe stands; all stand when it returns, or the error says why
/// not.
Result<void> Tracing::start_all() {
  const Clock::time_point began = Clock::now();
  for (const SessionTarget& entry : targets_) TRY(started(entry, entry.target->begin()));
  for (const SessionTarget& entry : targets_) {
    if (targets_.several() && targets_.exit_status()) break;  // one machine's BEGIN has ended all
    TRY(started(entry, entry.target->tracer().arm()));
  }
  report_time(line_.settings, "armed", began);
  report_pauses(line_.settings, targets_);
  return {};
}

Result<void> Tracing::started(const SessionTarget& entry, Result<void> step) {
  if (step) return step;
  // BEGIN may have printed something already, unless its records were refused.
  if (entry.target->engine().records_fit()) loop_->finish(EndReason::Exit);
  return fail(step.error().code, fmt::format("{}could not enable tracing: {}",
                                             targets_.line_start(entry), step.error().message));
}

/// For `ringside stats`, and with -v at the end.
void Tracing::leave_figures() {
  if (line_.verbose) loop_->record_figures();
  if (line_.machines.empty()) return;
  auto file = FiguresFile::create(runtime_folder());
  if (file) {
    loop_->leave_figures_in(figures_.emplace(std::move(*file)));
  } else if (line_.verbose) {
    say("`ringside stats` will not know of this trace: " + file.error().message);
  }
}

/// A read that fails because a machine ends says nothing about its kernel.
Error Tracing::or_lost_machine(Error error) {
  for (const SessionTarget& entry : targets_) {
    vmm::Machine* const machine = entry.target->machine();
    if (machine == nullptr || !is_ending(*machine)) continue;
    if (machine->status().was_ended_by_us()) continue;
    error = or_lost(std::move(error), *machine);
    error.message = targets_.line_start(entry) + error.message;
    return error;
  }
  return error;
}

bool Tracing::has_left_breakpoints() const {
  return std::ranges::any_of(targets_, [](const SessionTarget& entry) {
    return entry.target->tracer().has_left_breakpoints();
  });
}

}  // namespace ringside::cli
