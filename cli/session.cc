// The session. In this file, top to bottom: attaching, compiling, enabling, tracing, the order of
// it all.
#include "cli/session.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/guest/guest.h"
#include "cli/guest/host_process.h"
#include "cli/guest/saved_guest.h"
#include "cli/list_probes.h"
#include "cli/messages.h"
#include "cli/options/buffer_sizes.h"
#include "cli/options/compile_options.h"
#include "cli/output/output.h"
#include "cli/output/stability_report.h"
#include "cli/output/target_view.h"
#include "cli/output/type_dictionary.h"
#include "cli/program/bind_program.h"
#include "cli/program/environment.h"
#include "cli/program/libraries.h"
#include "cli/program/machines_environment.h"
#include "cli/program/saved_program.h"
#include "cli/program/sources.h"
#include "cli/signals.h"
#include "cli/target_end.h"
#include "cli/trace_loop.h"
#include "dif/d/compile.h"
#include "dif/d/resolve/system_types.h"
#include "dif/engine/engine.h"
#include "dif/evaluate/variables.h"
#include "dif/program/action_kind.h"
#include "dif/program/listing.h"
#include "dif/verify/verify.h"
#include "providers/target.h"

namespace ringside::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// A target and what the session has to do with it.
struct Subject {
  std::unique_ptr<providers::Target> target;
  std::unique_ptr<vmm::PausedMachine> paused_at_arrival;  // until its probes stand
  std::optional<GuestCommand> command;                    // -c in the guest
  std::int64_t process = 0;                               // $target; 0 for none
  std::int32_t number = 0;                                // vmid
  std::optional<TracerEnvironment> environment;           // while programs are bound and enabled
  std::optional<TargetView> view;
};

/// One of the programs on one machine.
struct ProgramMatches {
  std::size_t probes = 0;
  bool is_here = false, is_elsewhere = false;  // it has clauses for this machine, or for others
};

class Session {
 public:
  Session(CommandLine line, Signals signals)
      : line_(std::move(line)),
        signals_(std::move(signals)),
        clock_(std::make_shared<providers::TscCalibration>()),
        stdout_(STDOUT_FILENO) {}

  Result<int> run();

 private:
  Result<void> attach();
  Result<void> attach_saved();
  Result<void> attach_to(Guest guest);
  void know_machines();
  void tell_omissions();
  Result<void> start_processes();
  Result<void> compile();
  Result<d::Compiled> compile_with(const std::vector<d::LibrarySource>& libraries);
  Result<void> write_types(const TypeGraph& types, TypeId first);
  Result<void> load();
  std::string label(std::size_t program) const;
  std::size_t program_count() const { return std::max<std::size_t>(sources_.program_count(), 1); }
  bool machines_are_there();
  Result<int> list();
  int tell_cleaned();

  Result<int> trace();
  Result<dif::VerifiedProgram> bound_program(Subject& subject);
  Result<void> save();
  Result<void> bind_all();
  Result<void> bind(Subject& subject, dif::VerifiedProgram verified, dif::GlobalsShare share);
  Result<std::shared_ptr<dif::SharedGlobals>> shared_globals(
      const std::vector<dif::VerifiedProgram>& programs);
  Result<dif::EngineOptions> fitted_buffers(const Subject& subject, const dif::Program& program);
  Result<void> check_destructive_actions(const Subject& subject) const;
  Result<void> enable_all(Subject& subject);
  void announce(const Subject& subject, const std::vector<ProgramMatches>& matched) const;
  void report_stability(const dif::Program& program);
  Result<int> trace_armed(Output& output);
  Result<void> start_all(TraceLoop& loop);
  Result<void> started(const Subject& subject, TraceLoop& loop, Result<void> step);
  void end_set_up();
  int end_status(TraceLoop& loop, EndReason reason);
  std::optional<int> exit_status() const;
  void report_time(std::string_view what, Clock::time_point since) const;
  Sink& sink() { return file_ ? *file_ : stdout_; }

  /// The beginning of a line about this target: "NAME: " where there are several.
  std::string line_start(const Subject& subject) const {
    return subjects_.size() > 1 ? subject.target->name() + ": " : std::string();
  }
  void say_of(const Subject& subject, const std::string& text) const {
    say(line_start(subject) + text);
  }
  template <class T>
  Result<T> named(const Subject& subject, Result<T> result) const {
    if (!result) result.error().message = line_start(subject) + result.error().message;
    return result;
  }

  CommandLine line_;
  Signals signals_;
  std::shared_ptr<providers::TscCalibration> clock_;  // of all targets
  Sink stdout_;
  std::optional<Sink> file_;  // -o
  HostProcesses processes_;
  std::vector<Subject> subjects_;
  std::optional<MachinesEnvironment> environment_;  // of all subjects, as long as they have theirs
  std::optional<dif::Program> program_;             // for all subjects, until it is bound
  Sources sources_;
};

void Session::report_time(std::string_view what, Clock::time_point since) const {
  if (!line_.settings.debug) return;
  const std::chrono::duration<double, std::milli> spent = Clock::now() - since;
  say(fmt::format("{} in {:.1f} ms", what, spent.count()));
}

std::string kernel_name(const guest_linux::Kernel& kernel) {
  const std::string_view release = kernel.release();
  return release.empty() ? "a kernel" : fmt::format("Linux {}", release);
}

/// --core: nothing is started, and nothing but dtrace's probes fires.
Result<void> Session::attach_saved() {
  SavedGuest saved = TRY(open_saved_guest(line_.core_file));
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
  return attach_to(std::move(guest));
}

Result<void> Session::attach() {
  if (!line_.core_file.empty()) return attach_saved();
  if (line_.machines.empty()) {
    TRY(start_processes());
    return attach_to({});
  }
  const Clock::time_point began = Clock::now();
  std::vector<Guest> guests = TRY(start_guests(line_, signals_));
  for (const Guest& guest : guests) {
    const vmm::Machine& machine = *guest.traced.machine;
    report_time(fmt::format("{} on {} with {} vCPUs is {}", kernel_name(*guest.traced.kernel),
                            machine.kind(), machine.vcpu_count(),
                            guest.traced.held != nullptr ? "held" : "up"),
                began);
    report_time("symbols and types known", Clock::now() - guest.discovery);
  }
  for (Guest& guest : guests) TRY(attach_to(std::move(guest)));
  tell_omissions();
  return {};
}

void Session::know_machines() {
  std::vector<MachinesEnvironment::Machine> machines;
  for (Subject& subject : subjects_) {
    machines.push_back({subject.target->name(), &*subject.environment});
  }
  environment_.emplace(std::move(machines));
}

Result<void> Session::attach_to(Guest guest) {
  const Clock::time_point began = Clock::now();
  providers::TracerOptions options;
  options.channel = line_.settings.channel;
  options.poll_threads = line_.settings.poll_threads;
  options.calibration = clock_;
  const auto number = static_cast<std::int32_t>(subjects_.size());
  Subject& subject = subjects_.emplace_back();
  subject.number = number;
  subject.command = std::move(guest.command);
  subject.paused_at_arrival = std::move(guest.paused_at_arrival);
  subject.process = guest.traced.machine ? guest.command_pid : processes_.target();
  subject.target = TRY(providers::Target::attach(std::move(guest.traced), options));
  const providers::Target& target = *subject.target;
  subject.environment.emplace(target.tracer(), target.kernel(),
                              target.machine() != nullptr ? &target.machine()->memory() : nullptr,
                              subject.process);
  report_time("attached", began);
  return {};
}

/// Tells, once, which parts are left out of a guest that shows too much.
void Session::tell_omissions() {
  for (const Subject& subject : subjects_) {
    if (subject.target->kernel() == nullptr) continue;
    for (const std::string& omission : subject.target->kernel()->take_omissions()) {
      say_of(subject, omission);
    }
  }
}

/// -c and -p on this host, before any thread of ours runs.
Result<void> Session::start_processes() {
  for (const std::string& command : line_.commands) {
    TRY(processes_.create(command, line_.settings));
  }
  for (const std::int64_t pid : line_.processes) TRY(processes_.grab(pid));
  return {};
}

Result<void> Session::compile() {
  sources_ =
      TRY(Sources::load(line_.programs, line_.settings.preprocessor, line_.settings.error_tags));
  const auto libraries = TRY(load_libraries(line_.settings, own_library_folder()));
  TypeGraph& types = environment_->types();
  d::add_system_types(types);
  const TypeId first_of_program = types.next_id();
  auto compiled = TRY(compile_with(libraries));
  if (line_.settings.show_desugared) {
    stdout_.write(compiled.desugared);
    stdout_.flush();
  }
  program_ = std::move(compiled.program);
  if (subjects_.size() > 1) TRY(record_kernel(*program_, *subjects_.front().target));
  return write_types(types, first_of_program);
}

/// Once, with the first machine's kernel: what it contains of a kernel it contains by name.
Result<d::Compiled> Session::compile_with(const std::vector<d::LibrarySource>& libraries) {
  std::vector<std::int64_t> processes;
  for (const Subject& subject : subjects_) processes.push_back(subject.process);
  const d::CompileOptions options = compile_options(line_, sources_.label(0), processes, libraries);
  const Clock::time_point began = Clock::now();
  auto compiled = d::compile(sources_.text(), options, *environment_);
  if (!compiled) {
    return fail(ErrorCode::Compile, sources_.explain(compiled.error(), line_.settings.error_tags));
  }
  report_time("compiled", began);
  return std::move(*compiled);
}

/// -x ctypes and -x dtypes: the types from number `first` on.
Result<void> Session::write_types(const TypeGraph& types, TypeId first) {
  const Settings& settings = line_.settings;
  if (!settings.c_dictionary.empty()) {
    TRY(write_dictionary(settings.c_dictionary, c_dictionary(types, first)));
  }
  if (!settings.d_dictionary.empty()) {
    TRY(write_dictionary(settings.d_dictionary,
                         d_dictionary(types, first, settings.engine.string_size)));
  }
  return {};
}

/// A program that was compiled before: its options, then as if it had been compiled now.
Result<void> Session::load() {
  program_ = TRY(load_program(line_.dof_file));
  for (const auto& [name, value] : program_->options) {
    auto done = apply_option(line_.settings, name, value, OptionSource::SavedProgram);
    if (!done) {
      return fail(done.error().code, fmt::format("{}: failed to set option '{}': {}",
                                                 line_.dof_file, name, done.error().message));
    }
  }
  if (line_.settings.zero_matches || line_.task == CommandLine::Task::List) return {};
  for (const dif::Clause& clause : program_->clauses) {
    for (const dif::ProbeDescription& probe : clause.probes) {
      const std::string why = environment_->why_no_machine(probe);
      if (why.empty()) continue;
      return fail(ErrorCode::NotFound,
                  fmt::format("could not enable tracing: {} does not match any probes: {}",
                              probe.to_string(), why));
    }
  }
  return {};
}

std::string Session::label(std::size_t program) const {
  return line_.dof_file.empty() ? sources_.label(program)
                                : fmt::format("program '{}'", line_.dof_file);
}

Result<void> Session::enable_all(Subject& subject) {
  using Matching = providers::Target::Matching;
  const Clock::time_point began = Clock::now();
  // The compiler has seen to it that all match, but perhaps on another machine.
  const bool optional = line_.settings.zero_matches || line_.dof_file.empty();
  auto matched = subject.target->enable_all(optional ? Matching::Optional : Matching::Required);
  if (!matched) {
    return fail(matched.error().code, "could not enable tracing: " + matched.error().message);
  }
  report_time("enabled", began);
  std::vector<ProgramMatches> by_program(program_count());
  const auto& clauses = subject.target->program().clauses;
  for (std::size_t i = 0; i < clauses.size(); ++i) {
    ProgramMatches& program = by_program[sources_.program_of(clauses[i].line)];
    program.probes += (*matched)[i];
    (clauses[i].probes.empty() ? program.is_elsewhere : program.is_here) = true;
  }
  announce(subject, by_program);
  return {};
}

void Session::announce(const Subject& subject, const std::vector<ProgramMatches>& matched) const {
  if (line_.settings.quiet) return;
  for (std::size_t i = 0; i < matched.size(); ++i) {
    if (matched[i].is_elsewhere && !matched[i].is_here) continue;
    say_of(subject, fmt::format("{} matched {} probe{}", label(i), matched[i].probes,
                                matched[i].probes == 1 ? "" : "s"));
  }
}

/// Prints the stability of each program for -v, of all its clauses together.
void Session::report_stability(const dif::Program& program) {
  struct Least {
    dif::Attributes description, statements;
  };
  constexpr dif::Attributes kMost{dif::Stability::Standard, dif::Stability::Standard,
                                  dif::DependencyClass::Common};
  std::vector<std::optional<Least>> all(program_count());
  for (const dif::Clause& clause : program.clauses) {
    auto& least = all[sources_.program_of(clause.line)];
    if (!least) least = Least{kMost, kMost};
    least->description = dif::least(least->description, clause.description_attributes);
    least->statements = dif::least(least->statements, clause.statement_attributes);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) continue;
    const std::string name =
        line_.dof_file.empty() ? sources_.report_label(i) : "program " + line_.dof_file;
    sink().write(stability_report(name, all[i]->description, all[i]->statements));
  }
  sink().flush();
}

std::optional<int> Session::exit_status() const {
  for (const Subject& subject : subjects_) {
    if (const auto status = subject.target->engine().exit_status()) return status;
  }
  return std::nullopt;
}

/// The exit status for how tracing ended; tells what the user has to know of it.
int Session::end_status(TraceLoop& loop, EndReason reason) {
  if (!sink().problem().empty()) {
    say(fmt::format("cannot write output: {}", sink().problem()));
    return kExitFailure;
  }
  const bool machine_ended = reason == EndReason::MachineEnded;
  if (machine_ended || reason == EndReason::MachineLeft || reason == EndReason::KernelGone) {
    tell_end(loop.last_target(), reason);
    const bool fine = machine_ended && ended_well(loop.last_target().target());
    if (!fine) return kExitFailure;
  }
  // Whoever waited for all of several has not got what he asked for.
  return exit_status().value_or(loop.lost_target() ? kExitFailure : kExitOk);
}

/// Nothing will be compiled or enabled any more.
void Session::end_set_up() {
  tell_omissions();
  environment_.reset();
  for (Subject& subject : subjects_) {
    subject.environment.reset();
    subject.target->end_set_up();
  }
  malloc_trim(0);
}

/// Every BEGIN has fired before any probe stands; all stand when it returns, or the error says why
/// not.
Result<void> Session::start_all(TraceLoop& loop) {
  const Clock::time_point began = Clock::now();
  for (const Subject& subject : subjects_) TRY(started(subject, loop, subject.target->begin()));
  for (const Subject& subject : subjects_) {
    if (subjects_.size() > 1 && exit_status()) break;  // one machine's BEGIN has ended all
    TRY(started(subject, loop, subject.target->tracer().arm()));
  }
  report_time("armed", began);
  return {};
}

Result<void> Session::started(const Subject& subject, TraceLoop& loop, Result<void> step) {
  if (step) return step;
  // BEGIN may have printed something already, unless its records were refused.
  if (subject.target->engine().records_fit()) loop.finish(EndReason::Exit);
  return fail(step.error().code, fmt::format("{}could not enable tracing: {}", line_start(subject),
                                             step.error().message));
}

Result<int> Session::trace_armed(Output& output) {
  std::vector<WatchedTarget> targets;
  for (Subject& subject : subjects_) {
    targets.emplace_back(*subject.target, subject.command ? &*subject.command : nullptr, stdout_);
  }
  TraceLoop loop(std::move(targets), processes_, output, line_.settings, signals_,
                 {sink(), file_ ? -1 : STDOUT_FILENO}, *clock_, tell_end);
  TRY(start_all(loop));
  end_set_up();
  if (!exit_status()) {
    for (Subject& subject : subjects_) subject.paused_at_arrival.reset();
  }
  processes_.go();
  // One that cannot be told to go has ended, which the loop sees.
  for (Subject& subject : subjects_) {
    if (subject.command) (void)subject.command->go();
  }
  const EndReason reason = loop.run();
  loop.finish(reason);
  return end_status(loop, reason);
}

/// -x bufresize and -x cpu, once it is known how many CPUs there are.
Result<dif::EngineOptions> Session::fitted_buffers(const Subject& subject,
                                                   const dif::Program& program) {
  dif::EngineOptions options = line_.settings.engine;
  const unsigned vcpus = subject.target->tracer().vcpu_count();
  if (options.cpu && *options.cpu >= vcpus) {
    return fail(ErrorCode::Usage, fmt::format("could not enable tracing: there is no CPU {}; the "
                                              "last one is {}",
                                              *options.cpu, vcpus - 1));
  }
  TRY(dif::check_storage(program, options.string_size));
  const auto plan = dif::plan_buffers(options, vcpus);
  if (!plan) {
    return fail(ErrorCode::Limit,
                fmt::format("could not enable tracing: {}", std::strerror(ENOMEM)));
  }
  options = plan->options;
  options.machine = subject.target->name();
  options.machine_number = subject.number;
  const vmm::Machine* const machine = subject.target->machine();
  options.machine_process = machine != nullptr ? machine->host_process() : 0;
  if (line_.settings.quiet || line_.settings.quiet_resize) return options;
  for (const dif::LoweredBuffer& buffer : plan->lowered) say_of(subject, lowered_text(buffer));
  return options;
}

/// Refuses what the machine cannot do before tracing starts, not at the first firing.
Result<void> Session::check_destructive_actions(const Subject& subject) const {
  for (const dif::Clause& clause : subject.target->program().clauses) {
    for (const dif::Action& action : clause.actions) {
      if (dif::action_info(action.kind).changes != dif::Changes::Guest) continue;
      if (const auto why = subject.target->tracer().cannot(action.kind)) {
        return fail(ErrorCode::Unsupported, "could not enable tracing: " + *why);
      }
    }
  }
  return {};
}

/// The program with everything of the subject's kernel in it that it names, fit to run.
Result<dif::VerifiedProgram> Session::bound_program(Subject& subject) {
  const std::string name = line_.dof_file.empty() ? "the program" : line_.dof_file;
  const bool is_first = &subject == &subjects_.front() && line_.dof_file.empty();
  return dif::verify_program(
      TRY(bind_program(*program_, *subject.target, *subject.environment, name,
                       is_first ? CompiledFor::ThisKernel : CompiledFor::Any)));
}

Result<void> Session::save() {
  Subject& subject = subjects_.front();
  TRY(record_kernel(*program_, *subject.target));
  TRY(bound_program(subject));
  if (line_.settings.show_dif) std::fputs(dif::list_program(*program_).c_str(), stderr);
  return save_program(*program_, line_.output_file);
}

/// From the program to targets that are bound to it, unless it is only to be compiled.
Result<void> Session::bind_all() {
  std::vector<dif::VerifiedProgram> programs;
  for (Subject& subject : subjects_) {
    programs.push_back(TRY(named(subject, bound_program(subject))));
  }
  program_.reset();
  if (line_.task == CommandLine::Task::CompileOnly) {
    if (line_.verbose) report_stability(programs.front().program());
    return {};
  }
  dif::GlobalsShare share;
  if (subjects_.size() > 1) share.globals = TRY(shared_globals(programs));
  for (std::size_t i = 0; i < programs.size(); ++i) {
    Subject& subject = subjects_[i];
    TRY(named(subject, bind(subject, std::move(programs[i]), share)));
    share.first_vcpu += subject.target->tracer().vcpu_count();
  }
  return {};
}

/// The D variables that the machines have in common.
Result<std::shared_ptr<dif::SharedGlobals>> Session::shared_globals(
    const std::vector<dif::VerifiedProgram>& programs) {
  std::vector<const dif::Program*> bound;
  for (const dif::VerifiedProgram& program : programs) bound.push_back(&program.program());
  unsigned vcpus = 0;
  for (const Subject& subject : subjects_) vcpus += subject.target->tracer().vcpu_count();
  auto shared = dif::share_globals(bound, line_.settings.engine, vcpus);
  if (shared) return shared;
  return fail(shared.error().code, "could not enable tracing: " + shared.error().message);
}

Result<void> Session::bind(Subject& subject, dif::VerifiedProgram verified,
                           dif::GlobalsShare share) {
  const dif::Program& program = verified.program();
  if (!line_.settings.destructive && dif::is_destructive(program)) {
    return fail(ErrorCode::Unsupported,
                "could not enable tracing: Destructive actions not allowed");
  }
  using Names = providers::Target::ProcessNames;
  const dif::EngineOptions options = TRY(fitted_buffers(subject, program));
  subject.target->bind(std::move(verified), options,
                       line_.settings.raw_user_addresses ? Names::Raw : Names::LookedUp,
                       std::move(share));
  subject.view.emplace(*subject.target, subject.process);
  return {};
}

Result<int> Session::trace() {
  if (line_.task == CommandLine::Task::Save) {
    TRY(save());
    return kExitOk;
  }
  if (!line_.output_file.empty()) file_.emplace(TRY(Sink::append_to(line_.output_file)));
  if (line_.settings.show_dif) std::fputs(dif::list_program(*program_).c_str(), stderr);
  TRY(bind_all());
  if (line_.task == CommandLine::Task::CompileOnly) return kExitOk;
  std::vector<const ProgramView*> views;
  for (const Subject& subject : subjects_) views.push_back(&*subject.view);
  Output output = TRY(Output::create(views, line_.settings, sink()));
  for (Subject& subject : subjects_) {
    TRY(named(subject, check_destructive_actions(subject)));
    TRY(named(subject, enable_all(subject)));
  }
  const dif::Program& program = subjects_.front().target->program();
  if (line_.verbose) report_stability(program);
  if (program.clauses.empty()) return fail(ErrorCode::NotFound, "no probes matched");
  return trace_armed(output);
}

/// Whether each description is for a machine that is there; says which is not.
bool Session::machines_are_there() {
  bool all = true;
  for (const dif::Clause& clause : program_ ? program_->clauses : std::vector<dif::Clause>()) {
    for (const dif::ProbeDescription& pattern : clause.probes) {
      const std::string why = environment_->why_no_machine(pattern);
      if (why.empty()) continue;
      say(fmt::format("failed to match {}: No probe matches description ({})", pattern.to_string(),
                      why));
      all = false;
    }
  }
  return all;
}

Result<int> Session::list() {
  bool all = machines_are_there();
  for (Subject& subject : subjects_) {
    if (subjects_.size() > 1) stdout_.write(subject.target->name() + ":\n");
    const bool found = TRY(list_probes(program_ ? &*program_ : nullptr, *subject.target,
                                       *subject.environment, stdout_, line_.verbose));
    all = all && found;
  }
  return all ? kExitOk : kExitFailure;
}

/// `clean`: attaching has done it.
int Session::tell_cleaned() {
  for (const Subject& subject : subjects_) {
    const auto notices = subject.target->tracer().take_notices();
    for (const std::string& notice : notices) say_of(subject, notice);
    if (notices.empty()) say_of(subject, "nothing of an earlier ringside is in the guest");
  }
  return kExitOk;
}

Result<int> Session::run() {
  const bool nothing = line_.programs.empty() && line_.dof_file.empty();
  if (nothing && line_.task == CommandLine::Task::CompileOnly) return kExitOk;
  TRY(attach());
  if (line_.task == CommandLine::Task::Clean) return tell_cleaned();
  know_machines();
  if (!line_.programs.empty()) TRY(compile());
  if (!line_.dof_file.empty()) TRY(load());
  return line_.task == CommandLine::Task::List ? list() : trace();
}

}  // namespace

int run_session(CommandLine line) {
  auto signals = Signals::block();
  if (!signals) {
    say(signals.error().message);
    return kExitFailure;
  }
  Session session(std::move(line), std::move(*signals));
  const auto status = session.run();
  if (!status) {
    say(status.error().message);
    return kExitFailure;
  }
  return *status;
}

}  // namespace ringside::cli
