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

#include "cli/guest/guest.h"
#include "cli/guest/host_process.h"
#include "cli/list_probes.h"
#include "cli/messages.h"
#include "cli/options/buffer_sizes.h"
#include "cli/options/compile_options.h"
#include "cli/output/output.h"
#include "cli/output/stability_report.h"
#include "cli/output/type_dictionary.h"
#include "cli/program/bind_program.h"
#include "cli/program/environment.h"
#include "cli/program/libraries.h"
#include "cli/program/saved_program.h"
#include "cli/program/sources.h"
#include "cli/signals.h"
#include "cli/trace_loop.h"
#include "dif/d/compile.h"
#include "dif/d/resolve/system_types.h"
#include "dif/engine/engine.h"
#include "dif/evaluate/variables.h"
#include "dif/program/action_kind.h"
#include "dif/program/listing.h"
#include "dif/verify/stack_use.h"
#include "dif/verify/verify.h"
#include "providers/tracer.h"
#include "vmm/linux/processes/user_names.h"

namespace ringside::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// The engine's tables as the output wants them.
class EngineView : public ProgramView {
 public:
  EngineView(const dif::Engine& engine, const Guest& guest, guest_linux::UserNames* user_names,
             std::string machine)
      : engine_(&engine),
        kernel_(guest.kernel.get()),
        user_names_(user_names),
        target_(static_cast<std::uint64_t>(guest.target)),
        machine_(std::move(machine)) {}
  std::string machine() const override { return machine_; }
  const dif::Program& program() const override { return engine_->program(); }
  const dif::EcbInfo& ecb(dif::EcbId id) const override { return engine_->ecb(id); }
  const dif::ProbeDescription& probe_name(dif::ProbeId probe) const override {
    return engine_->probe_name(probe);
  }
  std::string describe(GuestVirt address) const override {
    return kernel_ != nullptr ? kernel_->symbols().describe(address)
                              : fmt::format("0x{:x}", address.raw());
  }
  /// Process 0 (of %A, which is given a bare address) is the session's own.
  std::string describe_user(std::uint64_t pid, GuestVirt address) const override {
    return user_names_ != nullptr ? user_names_->describe(pid != 0 ? pid : target_, address)
                                  : ProgramView::describe_user(pid, address);
  }

 private:
  const dif::Engine* engine_;
  const guest_linux::Kernel* kernel_;
  guest_linux::UserNames* user_names_;
  const std::uint64_t target_;
  const std::string machine_;
};

class Session {
 public:
  Session(CommandLine line, Signals signals)
      : line_(std::move(line)), signals_(std::move(signals)), stdout_(STDOUT_FILENO) {}
  ~Session();

  Result<int> run();

 private:
  Result<void> attach();
  void tell_omissions();
  Result<void> start_processes();
  Result<void> compile();
  Result<void> write_types(TypeId first);
  Result<void> load();
  std::string label(std::size_t program) const;
  std::size_t program_count() const { return std::max<std::size_t>(sources_.program_count(), 1); }

  Result<int> trace();
  Result<void> fit_buffers(const dif::Program& program);
  Result<void> check_destructive_actions() const;
  Result<void> enable_all();
  void announce(const std::vector<std::size_t>& matched) const;
  void report_stability(const dif::Program& program);
  Result<int> trace_armed(Output& output);
  void end_set_up();
  int end_status(EndReason reason);
  void report_death() const;
  TraceLoop::Parts loop_parts(Output& output);
  void report_time(std::string_view what, Clock::time_point since) const;
  Sink& sink() { return file_ ? *file_ : stdout_; }

  CommandLine line_;
  Signals signals_;
  Sink stdout_;
  std::optional<Sink> file_;  // -o
  Guest guest_;
  HostProcesses processes_;
  std::unique_ptr<providers::Tracer> tracer_;
  std::optional<TracerEnvironment> environment_;
  Sources sources_;
  std::optional<dif::Program> program_;
  std::unique_ptr<dif::Engine> engine_;
  std::unique_ptr<guest_linux::UserNames> user_names_;  // null without a Linux that can tell them,
                                                        // and with noresolve
};

Session::~Session() {
  if (tracer_) tracer_->stop();
  if (guest_.machine) guest_.machine->shut_down();
}

void Session::report_time(std::string_view what, Clock::time_point since) const {
  if (!line_.settings.debug) return;
  const std::chrono::duration<double, std::milli> spent = Clock::now() - since;
  say(fmt::format("{} in {:.1f} ms", what, spent.count()));
}

std::string kernel_name(const Guest& guest) {
  const std::string_view release = guest.kernel->release();
  return release.empty() ? "a kernel" : fmt::format("Linux {}", release);
}

Result<void> Session::attach() {
  if (line_.machine.wanted()) {
    const Clock::time_point began = Clock::now();
    guest_ = TRY(start_guest(line_, signals_));
    report_time(
        fmt::format("{} on {} with {} vCPUs is {}", kernel_name(guest_), guest_.machine->kind(),
                    guest_.machine->vcpu_count(), guest_.held != nullptr ? "held" : "up"),
        began);
    report_time("symbols and types known", Clock::now() - guest_.discovery);
  } else {
    TRY(start_processes());
  }
  const Clock::time_point began = Clock::now();
  providers::TracerOptions options;
  options.channel = line_.settings.channel;
  options.poll_threads = line_.settings.poll_threads;
  options.held = guest_.held;
  tracer_ = TRY(providers::Tracer::attach(guest_.machine.get(), guest_.kernel.get(), options));
  environment_.emplace(*tracer_, guest_.kernel.get(),
                       guest_.machine ? &guest_.machine->memory() : nullptr);
  report_time("attached", began);
  tell_omissions();
  return {};
}

/// What of a guest that shows too much is left out, once.
void Session::tell_omissions() {
  if (!guest_.kernel) return;
  for (const std::string& omission : guest_.kernel->take_omissions()) say(omission);
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
  auto libraries = TRY(load_libraries(line_.settings, own_library_folder()));
  const std::int64_t target = guest_.target != 0 ? guest_.target : processes_.target();
  const d::CompileOptions options =
      compile_options(line_, sources_.label(0), target, std::move(libraries));
  const Clock::time_point began = Clock::now();
  d::add_system_types(environment_->types());
  const TypeId first_of_program = environment_->types().next_id();
  auto compiled = d::compile(sources_.text(), options, *environment_);
  if (!compiled) {
    return fail(ErrorCode::Compile, sources_.explain(compiled.error(), line_.settings.error_tags));
  }
  if (line_.settings.show_desugared) {
    stdout_.write(compiled->desugared);
    stdout_.flush();
  }
  report_time("compiled", began);
  program_ = std::move(compiled->program);
  return write_types(first_of_program);
}

/// -x ctypes and -x dtypes: the types from number `first` on.
Result<void> Session::write_types(TypeId first) {
  const Settings& settings = line_.settings;
  const TypeGraph& types = environment_->types();
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
  return {};
}

std::string Session::label(std::size_t program) const {
  return line_.dof_file.empty() ? sources_.label(program)
                                : fmt::format("program '{}'", line_.dof_file);
}

/// Enables every clause on every probe that it matches, in the program's order.
Result<void> Session::enable_all() {
  const Clock::time_point began = Clock::now();
  std::uint64_t taken = 0;
  std::vector<std::size_t> matched(program_count());
  const auto& clauses = engine_->program().clauses;
  for (std::uint32_t i = 0; i < clauses.size(); ++i) {
    for (const dif::ProbeDescription& pattern : clauses[i].probes) {
      std::vector<providers::Probe> probes;
      TRY(tracer_->for_each_probe(pattern,
                                  [&](const providers::Probe& probe) { probes.push_back(probe); }));
      // The compiler has seen to this, but perhaps on another machine.
      if (probes.empty() && !line_.settings.zero_matches && !line_.dof_file.empty()) {
        return fail(ErrorCode::NotFound,
                    fmt::format("could not enable tracing: {} does not match any probes",
                                pattern.to_string()));
      }
      taken += probes.size() * dif::enabled_size(clauses[i]);
      if (taken > dif::kMostEnabled) {
        return fail(ErrorCode::Limit,
                    fmt::format("could not enable tracing: too many clauses on too many probes, at "
                                "{}; trace fewer of them at once",
                                pattern.to_string()));
      }
      for (const providers::Probe& probe : probes) {
        TRY(tracer_->enable(probe));
        engine_->enable(i, probe.id, probe.name);
      }
      matched[sources_.program_of(clauses[i].line)] += probes.size();
    }
  }
  report_time("enabled", began);
  announce(matched);
  return {};
}

void Session::announce(const std::vector<std::size_t>& matched) const {
  if (line_.settings.quiet) return;
  for (std::size_t i = 0; i < matched.size(); ++i) {
    say(fmt::format("{} matched {} probe{}", label(i), matched[i], matched[i] == 1 ? "" : "s"));
  }
}

/// What -v says of each program, of all its clauses together.
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

TraceLoop::Parts Session::loop_parts(Output& output) {
  TraceLoop::Parts parts;
  parts.engine = engine_.get();
  parts.tracer = tracer_.get();
  parts.output = &output;
  parts.settings = &line_.settings;
  parts.signals = &signals_;
  parts.trace_sink = &sink();
  parts.command_sink = &stdout_;
  parts.watched_fd = file_ ? -1 : STDOUT_FILENO;
  parts.machine = guest_.machine.get();
  parts.command = guest_.command ? &*guest_.command : nullptr;
  parts.processes = &processes_;
  if (dif::records_user_code(engine_->program())) parts.user_names = user_names_.get();
  return parts;
}

/// The exit status for how tracing ended; tells what the user has to know of it.
int Session::end_status(EndReason reason) {
  if (!sink().problem().empty()) {
    say(fmt::format("cannot write output: {}", sink().problem()));
    return kExitFailure;
  }
  if (reason == EndReason::MachineEnded) {
    await_end(*guest_.machine);
    // A guest that was run for its boot's sake may end when it has booted.
    const bool fine =
        guest_.held != nullptr && guest_.machine->state() == vmm::MachineState::PoweredOff;
    say("tracing ended: " + describe_end(*guest_.machine));
    if (!fine) report_death();
    return fine ? engine_->exit_status().value_or(kExitOk) : kExitFailure;
  }
  if (reason == EndReason::KernelGone) {
    say("tracing ended: " + tracer_->loss().value_or("the guest's kernel is gone"));
    return kExitFailure;
  }
  return engine_->exit_status().value_or(kExitOk);
}

/// What a machine whose vCPUs we run knows of its own end, and what fired last before it.
void Session::report_death() const {
  if (guest_.machine->exits() == nullptr) return;
  // The first line has been told with the end itself.
  const std::string words = guest_.machine->status().last_words();
  const std::size_t rest = words.find('\n');
  if (rest != std::string::npos) say(words.substr(rest + 1));
  std::string names;
  for (const dif::ProbeId probe : tracer_->last_firings()) {
    names += (names.empty() ? "" : ", ") + engine_->probe_name(probe).to_string();
  }
  if (!names.empty()) say("the last probes that fired, the very last first: " + names);
}

/// Nothing will be compiled or enabled any more.
void Session::end_set_up() {
  tell_omissions();
  environment_.reset();
  if (guest_.kernel) guest_.kernel->end_set_up();
  malloc_trim(0);
}

Result<int> Session::trace_armed(Output& output) {
  TraceLoop loop(loop_parts(output));
  const Clock::time_point began = Clock::now();
  if (auto started = tracer_->start(*engine_); !started) {
    // BEGIN may have printed something already, unless its records were refused.
    if (engine_->records_fit()) loop.finish(EndReason::Exit);
    return fail(started.error().code, "could not enable tracing: " + started.error().message);
  }
  report_time("armed", began);
  end_set_up();
  if (!engine_->exit_status()) guest_.standstill.reset();
  EndReason reason = EndReason::MachineEnded;
  processes_.go();
  if (!guest_.command || guest_.command->go()) reason = loop.run();
  loop.finish(reason);
  return end_status(reason);
}

/// -x bufresize and -x cpu, once it is known how many CPUs there are.
Result<void> Session::fit_buffers(const dif::Program& program) {
  dif::EngineOptions& options = line_.settings.engine;
  const unsigned vcpus = tracer_->vcpu_count();
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
  if (line_.settings.quiet || line_.settings.quiet_resize) return {};
  for (const dif::LoweredBuffer& buffer : plan->lowered) say(lowered_text(buffer));
  return {};
}

/// Refuses what the machine cannot do before tracing starts, not at the first firing.
Result<void> Session::check_destructive_actions() const {
  for (const dif::Clause& clause : engine_->program().clauses) {
    for (const dif::Action& action : clause.actions) {
      if (dif::action_info(action.kind).changes != dif::Changes::Guest) continue;
      if (const auto why = tracer_->cannot(action.kind)) {
        return fail(ErrorCode::Unsupported, "could not enable tracing: " + *why);
      }
    }
  }
  return {};
}

Result<int> Session::trace() {
  if (line_.task == CommandLine::Task::Save) TRY(record_kernel(*program_, guest_));
  const std::string name = line_.dof_file.empty() ? "the program" : line_.dof_file;
  auto verified = dif::verify_program(TRY(bind_program(*program_, guest_, *environment_, name)));
  if (!verified) return tl::make_unexpected(std::move(verified).error());
  if (line_.settings.show_dif) std::fputs(dif::list_program(*program_).c_str(), stderr);
  if (line_.task == CommandLine::Task::Save) {
    TRY(save_program(*program_, line_.output_file));
    return kExitOk;
  }
  program_.reset();
  if (!line_.output_file.empty()) file_.emplace(TRY(Sink::append_to(line_.output_file)));
  if (line_.task == CommandLine::Task::CompileOnly) {
    if (line_.verbose) report_stability(verified->program());
    return kExitOk;
  }
  if (!line_.settings.destructive && dif::is_destructive(verified->program())) {
    return fail(ErrorCode::Unsupported,
                "could not enable tracing: Destructive actions not allowed");
  }
  TRY(fit_buffers(verified->program()));
  engine_ = std::make_unique<dif::Engine>(std::move(*verified), line_.settings.engine,
                                          tracer_->vcpu_count());
  if (guest_.kernel && !line_.settings.raw_user_addresses) {
    user_names_ = guest_linux::UserNames::create(guest_.machine->memory(), *guest_.kernel);
  }
  const EngineView view(*engine_, guest_, user_names_.get(), line_.machine.name());
  Output output = TRY(Output::create(view, line_.settings, sink()));
  TRY(check_destructive_actions());
  TRY(enable_all());
  if (line_.verbose) report_stability(engine_->program());
  if (engine_->program().clauses.empty()) {
    return fail(ErrorCode::NotFound, "no probes matched");
  }
  return trace_armed(output);
}

Result<int> Session::run() {
  const bool nothing = line_.programs.empty() && line_.dof_file.empty();
  if (nothing && line_.task == CommandLine::Task::CompileOnly) return kExitOk;
  TRY(attach());
  if (!line_.programs.empty()) TRY(compile());
  if (!line_.dof_file.empty()) TRY(load());
  if (line_.task != CommandLine::Task::List) return trace();
  const bool all = TRY(list_probes(program_ ? &*program_ : nullptr, *tracer_, *environment_,
                                   stdout_, line_.verbose));
  return all ? kExitOk : kExitFailure;
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
