#include "cli/session/bind_script.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "cli/options/buffer_sizes.h"
#include "cli/program/bind_program.h"
#include "cli/session/phase_time.h"
#include "dif/engine/engine.h"
#include "dif/evaluate/variables.h"
#include "dif/program/action_kind.h"

namespace ringside::cli {
namespace {

/// The D variables that the machines have in common.
Result<std::shared_ptr<dif::SharedGlobals>> shared_globals(
    const std::vector<dif::VerifiedProgram>& programs, const Subjects& subjects,
    const Settings& settings) {
  std::vector<const dif::Program*> bound;
  bound.reserve(programs.size());
  for (const dif::VerifiedProgram& program : programs) bound.push_back(&program.program());
  unsigned vcpus = 0;
  for (const Subject& subject : subjects) vcpus += subject.target->tracer().vcpu_count();
  auto shared = dif::share_globals(bound, settings.engine, vcpus);
  if (shared) return shared;
  return fail(shared.error().code, "could not enable tracing: " + shared.error().message);
}

/// -x bufresize and -x cpu, once it is known how many CPUs there are.
Result<dif::EngineOptions> fitted_buffers(const Subjects& subjects, const Subject& subject,
                                          const dif::Program& program, const Settings& settings) {
  dif::EngineOptions options = settings.engine;
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
  if (settings.quiet || settings.quiet_resize) return options;
  for (const dif::LoweredBuffer& buffer : plan->lowered) {
    subjects.print_line(subject, lowered_text(buffer));
  }
  return options;
}

Result<void> bind(const Subjects& subjects, Subject& subject, dif::VerifiedProgram verified,
                  dif::GlobalsShare share, const Settings& settings) {
  const dif::Program& program = verified.program();
  if (!settings.destructive && dif::is_destructive(program)) {
    return fail(ErrorCode::Unsupported,
                "could not enable tracing: Destructive actions not allowed");
  }
  using Names = providers::Target::ProcessNames;
  const dif::EngineOptions options = TRY(fitted_buffers(subjects, subject, program, settings));
  subject.target->bind(std::move(verified), options,
                       settings.raw_user_addresses ? Names::Raw : Names::LookedUp,
                       std::move(share));
  return {};
}

Result<void> check_destructive_actions(const Subject& subject, const Settings& settings) {
  for (const dif::Clause& clause : subject.target->program().clauses) {
    for (const dif::Action& action : clause.actions) {
      if (dif::action_info(action.kind).changes != dif::Changes::Guest) continue;
      if (const auto why = subject.target->tracer().cannot(action.kind)) {
        return fail(ErrorCode::Unsupported, "could not enable tracing: " + *why);
      }
      const bool at_end = settings.engine.buffer_policy != dif::BufferPolicy::Switch;
      if (action.kind == dif::ActionKind::Snapshot && at_end) {
        return fail(ErrorCode::Unsupported,
                    "could not enable tracing: snapshot() acts when its record is read, which "
                    "bufpolicy=ring and fill put off to the end: use bufpolicy=switch");
      }
    }
  }
  return {};
}

/// Tells how many probes each program has on this machine, for which `by_clause` has them.
void announce(const Script& script, const Subjects& subjects, const Subject& subject,
              const std::vector<std::size_t>& by_clause) {
  struct Matches {
    std::size_t probes = 0;
    bool is_here = false, is_elsewhere = false;  // clauses for this machine, or for others
  };
  std::vector<Matches> by_program(script.count());
  const auto& clauses = subject.target->program().clauses;
  for (std::size_t i = 0; i < clauses.size(); ++i) {
    Matches& matches = by_program[script.program_of(clauses[i])];
    matches.probes += by_clause[i];
    (clauses[i].probes.empty() ? matches.is_elsewhere : matches.is_here) = true;
  }
  for (std::size_t i = 0; i < by_program.size(); ++i) {
    const Matches& matches = by_program[i];
    if (matches.is_elsewhere && !matches.is_here) continue;
    subjects.print_line(subject, fmt::format("{} matched {} probe{}", script.label(i),
                                             matches.probes, matches.probes == 1 ? "" : "s"));
  }
}

/// Tells of places that enabled probes lack, for their counts are less than what happens.
void tell_gaps(const Subjects& subjects, const Subject& subject) {
  std::optional<providers::Refusal> first;
  std::size_t more = 0;
  for (const dif::Clause& clause : subject.target->program().clauses) {
    for (const dif::ProbeDescription& pattern : clause.probes) {
      subject.target->tracer().gaps(pattern, [&](const providers::Refusal& gap) {
        if (first) ++more;
        if (!first) first = gap;
      });
    }
  }
  if (!first) return;
  const std::string others = more > 0 ? fmt::format(", and {} more such places", more) : "";
  subjects.print_line(subject,
                      fmt::format("{} does not see all that happens: {}{} (-l -v tells each)",
                                  first->name.to_string(), first->reason, others));
}

Result<void> enable(const Script& script, const Subjects& subjects, Subject& subject,
                    const Settings& settings) {
  using Matching = providers::Target::Matching;
  const Clock::time_point began = Clock::now();
  tell_gaps(subjects, subject);
  // The compiler has seen to it that all match, but perhaps on another machine.
  const bool optional = settings.zero_matches || !script.is_saved();
  auto matched = subject.target->enable_all(optional ? Matching::Optional : Matching::Required);
  if (!matched) {
    return fail(matched.error().code, "could not enable tracing: " + matched.error().message);
  }
  report_time(settings, "enabled", began);
  if (!settings.quiet) announce(script, subjects, subject, *matched);
  return {};
}

}  // namespace

Result<dif::VerifiedProgram> bound_program(const Script& script, const Subjects& subjects,
                                           Subject& subject) {
  const bool is_first = &subject == &subjects.front() && !script.is_saved();
  return dif::verify_program(
      TRY(bind_program(*script.program(), *subject.target, *subject.environment, script.name(),
                       is_first ? CompiledFor::ThisKernel : CompiledFor::Any)));
}

Result<std::vector<dif::VerifiedProgram>> bound_programs(const Script& script, Subjects& subjects) {
  std::vector<dif::VerifiedProgram> programs;
  for (Subject& subject : subjects) {
    programs.push_back(TRY(subjects.named(subject, bound_program(script, subjects, subject))));
  }
  return programs;
}

Result<void> bind_targets(std::vector<dif::VerifiedProgram> programs, Subjects& subjects,
                          const Settings& settings) {
  dif::GlobalsShare share;
  if (subjects.several()) share.globals = TRY(shared_globals(programs, subjects, settings));
  for (std::size_t i = 0; i < programs.size(); ++i) {
    Subject& subject = subjects[i];
    TRY(subjects.named(subject, bind(subjects, subject, std::move(programs[i]), share, settings)));
    share.first_vcpu += subject.target->tracer().vcpu_count();
  }
  return {};
}

Result<void> enable_targets(const Script& script, Subjects& subjects, const Settings& settings) {
  for (Subject& subject : subjects) {
    TRY(subjects.named(subject, check_destructive_actions(subject, settings)));
    TRY(subjects.named(subject, enable(script, subjects, subject, settings)));
  }
  return {};
}

}  // namespace ringside::cli
