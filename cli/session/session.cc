// The session. In this file, top to bottom: attaching, tracing, listing, the order of it all.
#include "cli/session/session.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/guest/guest.h"
#include "cli/guest/host_process.h"
#include "cli/guest/saved_guest.h"
#include "cli/messages/messages.h"
#include "cli/messages/progress.h"
#include "cli/messages/signals.h"
#include "cli/output/output.h"
#include "cli/program/defined_probes.h"
#include "cli/program/environment.h"
#include "cli/program/libraries.h"
#include "cli/program/machines_environment.h"
#include "cli/program/saved_program.h"
#include "cli/session/bind_script.h"
#include "cli/session/list_probes.h"
#include "cli/session/script.h"
#include "cli/session/session_target.h"
#include "cli/session/trace_loop.h"
#include "cli/session/watched_target.h"
#include "cli/statistics/figures_file.h"
#include "dif/program/listing.h"
#include "providers/tracer/target.h"
#include "vmm/base/end_order.h"
#include "vmm/base/own_folder.h"

namespace ringside::cli {
namespace {

class Session {
 public:
  Session(CommandLine line, Signals& signals)
      : line_(std::move(line)),
        signals_(signals),
        clock_(std::make_shared<providers::TscCalibration>()),
        stdout_(STDOUT_FILENO),
        targets_(line_.names_machines()),
        script_(line_) {}

  Result<int> run();

 private:
  Result<int> do_task();
  Error or_lost_machine(Error error);
  Result<void> attach();
  Result<void> attach_saved();
  static Result<void> check_not_interrupted();
  providers::TrapForm traps_in(const MachineOptions& machine) const;
  Result<void> attach_to(Guest guest, providers::TrapForm traps);
  Result<std::shared_ptr<const providers::DefinedProbes>> defined_probes(const Guest& guest);
  void make_environment();
  Result<void> start_processes();
  Result<int> list();
  int tell_cleaned();

  Result<int> trace();
  Result<void> save();
  void list_instructions();
  void report_clocks() const;
  void report_figures(const TraceLoop& loop) const;
  void leave_figures(TraceLoop& loop);
  void report_stability(const dif::Program& program);
  void say_how_to_end() const;
  Result<int> trace_armed(Output& output);
  Result<void> start_all(TraceLoop& loop);
  Result<void> started(const SessionTarget& entry, TraceLoop& loop, Result<void> step);
  void end_set_up();
  int end_status(TraceLoop& loop, EndReason reason);
  Sink& sink() { return file_ ? *file_ : stdout_; }

  CommandLine line_;
  Signals& signals_;
  std::shared_ptr<providers::TscCalibration> clock_;  // of all targets
  Sink stdout_;
  std::optional<Sink> file_;  // -o
  HostProcesses processes_;
  SessionTargets targets_;
  std::shared_ptr<const std::vector<d::LibrarySource>> libraries_;  // those that define probes
  std::optional<MachinesEnvironment> environment_;  // of all targets, as long as they have theirs
  Script script_;
  std::optional<FiguresFile> figures_;  // while machines are traced
};

// A heat map has a column for each print, a counter of Perfetto's a value. With dtrace's second,
// prints in between would show nothing new.
constexpr std::chrono::milliseconds kTakesForPictures{20};

std::string kernel_name(const guest_linux::Kernel* kernel) {
  if (kernel == nullptr) return "something that is no Linux";
  const std::string_view release = kernel->release();
  return release.empty() ? "a kernel" : fmt::format("Linux {}", release);
}

/// --core: nothing is started, and nothing but dtrace's probes fires.
Result<void> Session::attach_saved() {
  Progress::of_stderr().show("reading " + line_.core_file);
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

Result<void> Session::attach() {
  if (!line_.core_file.empty()) return attach_saved();
  if (line_.machines.empty()) {
    TRY(start_processes());
    return attach_to({}, providers::TrapForm::Breakpoints);
  }
  const Clock::time_point began = Clock::now();
  if (std::ranges::any_of(line_.machines, &MachineOptions::outlives_us)) {
    signals_.owe_guest(
        "ended at once: breakpoints and the stub may have stayed in the guest; "
        "`ringside clean` takes them out");
  }
  std::vector<Guest> guests = TRY(start_guests(
      line_, signals_, script_.probes_target() ? CommandStart::Begun : CommandStart::Waiting));
  Progress::of_stderr().show("looking for probes");
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
Result<void> Session::check_not_interrupted() {
  if (end_order() == EndOrder::None) return {};
  return fail(ErrorCode::Io, "interrupted before tracing began");
}

void Session::make_environment() {
  std::vector<MachinesEnvironment::Machine> machines;
  for (SessionTarget& entry : targets_) {
    machines.push_back({entry.target->name(), &*entry.environment});
  }
  environment_.emplace(std::move(machines));
}

/// Where nothing else is asked for, a machine that may go on without us has only breakpoints: of a
/// ringside that is killed they leave one byte each, and the pause that places them reads no
/// stacks.
providers::TrapForm Session::traps_in(const MachineOptions& machine) const {
  const bool jumps = line_.settings.jump_probes.value_or(!machine.outlives_us());
  return jumps ? providers::TrapForm::JumpsWhereTheyMay : providers::TrapForm::Breakpoints;
}

/// Null where no function of a kernel can be probed. With -x nolibs programs do without libraries,
/// and the probes are there all the same.
Result<std::shared_ptr<const providers::DefinedProbes>> Session::defined_probes(
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

Result<void> Session::attach_to(Guest guest, providers::TrapForm traps) {
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
                                        .show = [](const std::string& what) {
                                          Progress& progress = Progress::of_stderr();
                                          what.empty() ? progress.clear() : progress.show(what);
                                        }}));
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
Result<void> Session::start_processes() {
  for (const std::string& command : line_.commands) {
    TRY(processes_.create(command, line_.settings));
  }
  for (const std::int64_t pid : line_.processes) TRY(processes_.grab(pid));
  return {};
}

void Session::report_stability(const dif::Program& program) {
  sink().write(script_.stability(program));
  sink().flush();
}

/// The exit status for how tracing ended; tells what the user has to know of it.
int Session::end_status(TraceLoop& loop, EndReason reason) {
  if (!sink().problem().empty()) {
    say(fmt::format("cannot write output: {}", sink().problem()));
    return kExitFailure;
  }
  if (!loop.output_is_whole()) return kExitFailure;
  const bool machine_ended = reason == EndReason::MachineEnded;
  if (machine_ended || reason == EndReason::MachineLeft || reason == EndReason::KernelGone) {
    tell_end(loop.last_target(), reason);
    const bool fine = machine_ended && ended_well(loop.last_target().target());
    if (!fine) return kExitFailure;
  }
  // The guest is not as it was found, which stderr has told.
  if (std::ranges::any_of(targets_, [](const SessionTarget& entry) {
        return entry.target->tracer().has_left_breakpoints();
      })) {
    return kExitFailure;
  }
  // A user who waited for all of several machines has not got all of them.
  return targets_.exit_status().value_or(loop.lost_target() ? kExitFailure : kExitOk);
}

/// Nothing will be compiled or enabled any more.
void Session::end_set_up() {
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
Result<void> Session::start_all(TraceLoop& loop) {
  const Clock::time_point began = Clock::now();
  for (const SessionTarget& entry : targets_) TRY(started(entry, loop, entry.target->begin()));
  for (const SessionTarget& entry : targets_) {
    if (targets_.several() && targets_.exit_status()) break;  // one machine's BEGIN has ended all
    TRY(started(entry, loop, entry.target->tracer().arm()));
  }
  report_time(line_.settings, "armed", began);
  report_pauses(line_.settings, targets_);
  return {};
}

Result<void> Session::started(const SessionTarget& entry, TraceLoop& loop, Result<void> step) {
  if (step) return step;
  // BEGIN may have printed something already, unless its records were refused.
  if (entry.target->engine().records_fit()) loop.finish(EndReason::Exit);
  return fail(step.error().code, fmt::format("{}could not enable tracing: {}",
                                             targets_.line_start(entry), step.error().message));
}

/// On a terminal, where nothing that was asked for ends the trace: else a user would wait for it.
void Session::say_how_to_end() const {
  const bool silent = line_.settings.quiet || !Progress::of_stderr().is_terminal();
  const bool ends = !line_.commands.empty() || !line_.processes.empty() || !line_.core_file.empty();
  if (silent || ends || line_.common.kvm.terminal) return;
  const auto& clauses = targets_.front().target->program().clauses;
  const bool exits = std::ranges::any_of(clauses, [](const dif::Clause& clause) {
    return std::ranges::any_of(clause.actions, [](const dif::Action& action) {
      return action.kind == dif::ActionKind::Exit;
    });
  });
  if (!exits) say("tracing; Ctrl-C ends it");
}

Result<int> Session::trace_armed(Output& output) {
  std::vector<WatchedTarget> targets;
  for (SessionTarget& entry : targets_) {
    targets.emplace_back(*entry.target, entry.command ? &*entry.command : nullptr, stdout_);
  }
  TraceLoop loop(std::move(targets), processes_, output, line_.settings, signals_,
                 {sink(), file_ ? -1 : STDOUT_FILENO}, *clock_, tell_end);
  leave_figures(loop);
  TRY(limit_traps(targets_, line_));
  TRY(check_not_interrupted());
  TRY(start_all(loop));
  end_set_up();
  say_how_to_end();
  if (!targets_.exit_status()) {
    for (SessionTarget& entry : targets_) entry.paused_at_arrival.reset();
  }
  processes_.go();
  // One that cannot be told to go has ended, which the loop sees.
  for (SessionTarget& entry : targets_) {
    if (entry.command) (void)entry.command->go();
  }
  // A saved guest does not run: nothing fires any more, so nobody has to be interrupted.
  const EndReason reason = line_.core_file.empty() ? loop.run() : EndReason::Exit;
  const Clock::time_point ended = Clock::now();
  loop.finish(reason);
  report_time(line_.settings, "left", ended);
  report_pauses(line_.settings, targets_);
  report_clocks();
  report_figures(loop);
  return end_status(loop, reason);
}

/// For -v.
void Session::report_clocks() const {
  if (!line_.verbose) return;
  for (const SessionTarget& entry : targets_) {
    if (entry.target->machine() != nullptr) {
      targets_.print_line(entry, entry.target->tracer().clock());
    }
  }
}

/// For -v.
void Session::report_figures(const TraceLoop& loop) const {
  if (!line_.verbose) return;
  const std::vector<Figures> all = loop.figures();
  for (std::size_t n = 0; n < all.size(); ++n) {
    const SessionTarget& entry = *std::next(targets_.begin(), static_cast<std::ptrdiff_t>(n));
    for (const std::string& line : figures_lines(all[n])) targets_.print_line(entry, line);
    const std::string waits = waits_drawing(all[n].trace.kernel.waits);
    if (!waits.empty()) targets_.print_line(entry, waits);
  }
}

/// For `ringside stats`, and with -v at the end.
void Session::leave_figures(TraceLoop& loop) {
  if (line_.verbose) loop.record_figures();
  if (line_.machines.empty()) return;
  auto file = FiguresFile::create(runtime_folder());
  if (file) {
    loop.leave_figures_in(figures_.emplace(std::move(*file)));
  } else if (line_.verbose) {
    say("`ringside stats` will not know of this trace: " + file.error().message);
  }
}

/// -S
void Session::list_instructions() {
  if (!line_.settings.show_dif) return;
  Sink errors(STDERR_FILENO);
  errors.set_raw_text(line_.settings.raw_text);
  errors.write(dif::list_program(*script_.program()));
  errors.flush();
}

Result<void> Session::save() {
  SessionTarget& entry = targets_.front();
  TRY(script_.record_kernel_of(*entry.target));
  TRY(bound_program(script_, targets_, entry));
  list_instructions();
  return save_program(*script_.program(), line_.output_file);
}

Result<int> Session::trace() {
  if (line_.task == CommandLine::Task::Save) {
    TRY(save());
    return kExitOk;
  }
  if (!line_.output_file.empty()) {
    const bool whole = is_drawn_whole(line_.settings.format);
    file_.emplace(TRY(whole ? Sink::fill(line_.output_file) : Sink::append_to(line_.output_file)));
    file_->set_raw_text(line_.settings.raw_text);
  }
  const bool perfetto = line_.settings.format == OutputFormat::Perfetto;
  if (perfetto || line_.settings.format == OutputFormat::Heatmap) {
    auto& interval = line_.settings.aggregate_interval;
    interval = std::min<std::chrono::nanoseconds>(interval, kTakesForPictures);
  }
  list_instructions();
  if (perfetto || line_.settings.record_threads) script_.tell_threads();
  auto programs = TRY(bound_programs(script_, targets_));
  script_.release_program();
  if (line_.task == CommandLine::Task::CompileOnly) {
    if (line_.verbose) report_stability(programs.front().program());
    return kExitOk;
  }
  TRY(bind_targets(script_, std::move(programs), targets_, line_.settings));
  std::vector<const ProgramView*> views;
  for (const SessionTarget& entry : targets_) views.push_back(&entry.view);
  Output output = TRY(Output::create(views, line_.settings, sink()));
  output.set_places([this](int line) { return script_.place(line); });
  TRY(enable_targets(script_, targets_, line_.settings));
  const dif::Program& program = targets_.front().target->program();
  if (line_.verbose) report_stability(program);
  if (program.clauses.empty()) return fail(ErrorCode::NotFound, "no probes matched");
  return trace_armed(output);
}

Result<int> Session::list() {
  Progress& progress = Progress::of_stderr();
  // On a terminal the rows themselves show how far it is.
  if (isatty(STDOUT_FILENO) == 0) progress.show("listing the probes");
  const bool all =
      TRY(list_probes(script_.program(), targets_, *environment_, stdout_, line_.verbose));
  progress.clear();
  for (const SessionTarget& entry : targets_) {
    for (const std::string& notice : entry.target->host_files()->take_notices()) {
      targets_.print_line(entry, notice);
    }
  }
  return all ? kExitOk : kExitFailure;
}

/// `clean`: attaching has done it.
int Session::tell_cleaned() {
  for (const SessionTarget& entry : targets_) {
    const auto notices = entry.target->tracer().take_notices();
    for (const std::string& notice : notices) targets_.print_line(entry, notice);
    if (notices.empty())
      targets_.print_line(entry, "nothing of an earlier ringside is in the guest");
  }
  return kExitOk;
}

Result<int> Session::do_task() {
  const bool nothing = line_.programs.empty() && line_.dof_file.empty();
  if (nothing && line_.task == CommandLine::Task::CompileOnly) {
    if (line_.settings.library_folders.empty()) return kExitOk;
    // The libraries are judged as they are for a program, which is empty here.
    line_.programs.push_back({ProgramSource::Kind::Name, ""});
    line_.settings.empty = true;
  }
  TRY(script_.read());
  auto attached = attach();
  Progress::of_stderr().clear();
  TRY(attached);
  if (line_.task == CommandLine::Task::Clean) return tell_cleaned();
  make_environment();
  TRY(script_.make(targets_, *environment_, stdout_));
  stdout_.set_raw_text(line_.settings.raw_text);  // a pragma may have asked for it
  return line_.task == CommandLine::Task::List ? list() : trace();
}

/// A read that fails because a machine ends says nothing about its kernel.
Error Session::or_lost_machine(Error error) {
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

Result<int> Session::run() {
  auto status = do_task();
  if (status) return status;
  return tl::make_unexpected(or_lost_machine(std::move(status).error()));
}

int run_one(CommandLine line, Signals& signals) {
  Session session(std::move(line), signals);
  const auto status = session.run();
  if (!status) {
    say(status.error().message);
    return kExitFailure;
  }
  return *status;
}

/// `clean`: one machine after the other, so that what is wrong with one does not keep the others
/// as they are.
int clean_each(CommandLine line, Signals& signals) {
  const std::vector<MachineOptions> machines = std::exchange(line.machines, {});
  line.one_of_several = true;
  int worst = kExitOk;
  for (const MachineOptions& machine : machines) {
    line.machines = {machine};
    worst = std::max(worst, run_one(line, signals));
    if (end_order() != EndOrder::None) break;
  }
  return worst;
}

}  // namespace

int run_session(CommandLine line) {
  auto signals = Signals::block();
  if (!signals) {
    say(signals.error().message);
    return kExitFailure;
  }
  if (line.task == CommandLine::Task::Clean && line.machines.size() > 1) {
    return clean_each(std::move(line), *signals);
  }
  return run_one(std::move(line), *signals);
}

}  // namespace ringside::cli
