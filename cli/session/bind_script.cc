#include "cli/session/bind_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "cli/options/option_values.h"
#include "cli/program/bind_program.h"
#include "cli/session/session_target.h"
#include "dif/engine/engine.h"
#include "dif/program/action_kind.h"
#include "dif/verify/verify.h"

namespace ringside::cli {
namespace {

std::string_view words(dif::BufferKind kind) {
  switch (kind) {
    case dif::BufferKind::Principal: return "buffer";
    case dif::BufferKind::Aggregation: return "aggregation";
    case dif::BufferKind::Dynamic: return "dynamic variable";
    case dif::BufferKind::Speculation: return "speculation";
  }
  return "buffer";
}

/// maxslow of a machine that was attached to.
constexpr unsigned kMostSlowOfOthers = 95;

/// The D variables that the machines have in common.
Result<std::shared_ptr<dif::SharedGlobals>> shared_globals(
    const std::vector<dif::VerifiedProgram>& programs, const SessionTargets& targets,
    const Settings& settings) {
  std::vector<const dif::Program*> bound;
  bound.reserve(programs.size());
  for (const dif::VerifiedProgram& program : programs) bound.push_back(&program.program());
  unsigned vcpus = 0;
  for (const SessionTarget& entry : targets) vcpus += entry.target->tracer().vcpu_count();
  auto shared = dif::share_globals(bound, settings.engine, vcpus);
  if (shared) return shared;
  return fail(shared.error().code, "could not enable tracing: " + shared.error().message);
}

/// -x bufresize and -x cpu, once it is known how many CPUs there are.
Result<dif::EngineOptions> fitted_buffers(const SessionTargets& targets, const SessionTarget& entry,
                                          const dif::Program& program, const Settings& settings) {
  dif::EngineOptions options = settings.engine;
  const unsigned vcpus = entry.target->tracer().vcpu_count();
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
  options.machine = entry.target->name();
  options.machine_number = entry.number;
  const vmm::Machine* const machine = entry.target->machine();
  options.machine_process = machine != nullptr ? machine->host_process() : 0;
  if (settings.quiet || settings.quiet_resize) return options;
  for (const dif::LoweredBuffer& buffer : plan->lowered) {
    targets.print_line(entry, lowered_text(buffer));
  }
  return options;
}

Result<void> bind(const Script& script, const SessionTargets& targets, SessionTarget& entry,
                  dif::VerifiedProgram verified, dif::GlobalsShare share,
                  const Settings& settings) {
  const dif::Program& program = verified.program();
  if (const auto found = settings.destructive ? std::nullopt : dif::first_destructive(program)) {
    const std::string place = script.place(found->line);
    return fail(ErrorCode::Unsupported,
                fmt::format("could not enable tracing: Destructive actions not allowed: {}(){}{} "
                            "needs -w",
                            found->name, place.empty() ? "" : " at ", place));
  }
  using Names = providers::Target::ProcessNames;
  const dif::EngineOptions options = TRY(fitted_buffers(targets, entry, program, settings));
  const Names names = settings.raw_user_addresses ? Names::Raw
                      : settings.demangle         ? Names::Demangled
                                                  : Names::AsInFile;
  entry.target->bind(std::move(verified), options, names, std::move(share));
  const std::string& refusal = entry.target->engine().jit_refusal();
  if (!refusal.empty() && !settings.quiet) {
    targets.print_line(entry, fmt::format("programs are interpreted, which takes longer: {}; -x "
                                          "jit=no asks for that without this message",
                                          refusal));
  }
  return {};
}

Result<void> check_destructive_actions(const SessionTarget& entry, const Settings& settings) {
  for (const dif::Clause& clause : entry.target->program().clauses) {
    for (const dif::Action& action : clause.actions) {
      if (dif::action_info(action.kind).changes != dif::Changes::Guest) continue;
      if (const auto why = entry.target->tracer().cannot(action.kind)) {
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
void announce(const Script& script, const SessionTargets& targets, const SessionTarget& entry,
              const std::vector<std::size_t>& by_clause) {
  struct Matches {
    std::size_t probes = 0;
    bool is_here = false, is_elsewhere = false;  // clauses for this machine, or for others
  };
  std::vector<Matches> by_program(script.count());
  const auto& clauses = entry.target->program().clauses;
  for (std::size_t i = 0; i < clauses.size(); ++i) {
    Matches& matches = by_program[script.program_of(clauses[i])];
    matches.probes += by_clause[i];
    (clauses[i].probes.empty() ? matches.is_elsewhere : matches.is_here) = true;
  }
  for (std::size_t i = 0; i < by_program.size(); ++i) {
    const Matches& matches = by_program[i];
    if (matches.is_elsewhere && !matches.is_here) continue;
    targets.print_line(entry, fmt::format("{} matched {} probe{}", script.label(i), matches.probes,
                                          matches.probes == 1 ? "" : "s"));
  }
}

/// The places that probes of this description lack.
void tell_gaps(const SessionTargets& targets, const SessionTarget& entry,
               const dif::ProbeDescription& pattern) {
  std::optional<providers::Refusal> first;
  std::size_t more = 0;
  entry.target->tracer().gaps(pattern, [&](const providers::Refusal& gap) {
    if (first) ++more;
    if (!first) first = gap;
  });
  if (!first) return;
  const std::string others = more > 0 ? fmt::format(", and {} more such places", more) : "";
  targets.print_line(entry, fmt::format("{} does not see all that happens: {}{} (-l -v tells each)",
                                        first->name.to_string(), first->reason, others));
}

/// Tells of places that enabled probes lack, for their counts are less than what happens: a line
/// for each description.
void tell_gaps(const SessionTargets& targets, const SessionTarget& entry) {
  std::set<std::string> asked;
  for (const dif::Clause& clause : entry.target->program().clauses) {
    for (const dif::ProbeDescription& pattern : clause.probes) {
      if (asked.insert(pattern.to_string()).second) tell_gaps(targets, entry, pattern);
    }
  }
}

/// With -F, that arrows will lack their other half. Who asked for one end alone knows.
void tell_unpaired_probes(const SessionTargets& targets, const SessionTarget& entry) {
  std::set<dif::ProbeId> seen;
  std::vector<dif::ProbeDescription> asked;
  UnpairedProbes unpaired;
  for (const dif::Clause& clause : entry.target->program().clauses) {
    for (const dif::ProbeDescription& pattern : clause.probes) {
      asked.push_back(pattern);
      const auto visit = [&](const providers::Probe& probe) {
        if (seen.insert(probe.id).second) unpaired.add(probe.name);
      };
      // An error here is one of enabling, too, which is told then.
      if (!entry.target->tracer().for_each_probe(pattern, visit)) return;
    }
  }
  const UnpairedProbes::Found found = unpaired.find(asked);
  if (found.count == 0) return;
  targets.print_line(
      entry, fmt::format("{} function{} one of entry and return alone, so {} arrows of -F have no "
                         "other half: there is no {} (-l -v tells each, with the reason)",
                         found.count, found.count == 1 ? " has" : "s have",
                         found.count == 1 ? "its" : "their", found.first.to_string()));
}

Result<void> enable(const Script& script, const SessionTargets& targets, SessionTarget& entry,
                    const Settings& settings) {
  using Matching = providers::Target::Matching;
  const Clock::time_point began = Clock::now();
  tell_gaps(targets, entry);
  if (settings.flow_indent) tell_unpaired_probes(targets, entry);
  // The compiler has seen to it that all match, but perhaps on another machine.
  const bool optional = settings.zero_matches || !script.is_saved();
  auto matched = entry.target->enable_all(optional ? Matching::Optional : Matching::Required);
  if (!matched) {
    const bool no_match = matched.error().code == ErrorCode::NotFound;
    return fail(matched.error().code, "could not enable tracing: " + matched.error().message +
                                          (no_match ? targets.way_to_types() : ""));
  }
  report_time(settings, "enabled", began);
  if (!settings.quiet) announce(script, targets, entry, *matched);
  return {};
}

}  // namespace

Result<void> limit_traps(SessionTargets& targets, const CommandLine& line) {
  for (std::size_t n = 0; n < targets.size(); ++n) {
    SessionTarget& entry = targets[n];
    providers::Budget budget = line.settings.budget;
    if (entry.target->held_kernel() != nullptr && budget.limits()) {
      return fail(ErrorCode::Unsupported,
                  "maxrate and maxslow cannot be kept while a kernel is traced from its first "
                  "instruction: trace it with --after-boot or -c");
    }
    const bool attached = n < line.machines.size() && line.machines[n].attach.has_value();
    if (attached && !budget.max_slow) budget.max_slow = kMostSlowOfOthers;
    entry.target->tracer().keep_to(budget);
  }
  return {};
}

std::string lowered_text(const dif::LoweredBuffer& buffer) {
  return fmt::format("{} size lowered to {}", words(buffer.kind), size_text(buffer.size));
}

void UnpairedProbes::add(const dif::ProbeDescription& probe) {
  const bool enters = probe.name == "entry";
  if (!enters && probe.name != "return") return;
  Ends& ends = functions_[{probe.provider, probe.module, probe.function}];
  ++(enters ? ends.entries : ends.returns);
}

UnpairedProbes::Found UnpairedProbes::find(std::span<const dif::ProbeDescription> asked) const {
  Found found;
  for (const auto& [name, ends] : functions_) {
    if (ends.entries == ends.returns) continue;
    const auto& [provider, module, function] = name;
    const dif::ProbeDescription missing{provider, module, function,
                                        ends.entries < ends.returns ? "entry" : "return"};
    const bool wanted = std::ranges::any_of(asked, [&](const dif::ProbeDescription& pattern) {
      return dif::matches(pattern, missing);
    });
    if (!wanted) continue;
    if (found.count++ == 0) found.first = missing;
  }
  return found;
}

Result<dif::VerifiedProgram> bound_program(const Script& script, const SessionTargets& targets,
                                           SessionTarget& entry) {
  const bool is_first = &entry == &targets.front() && !script.is_saved();
  auto bound = bind_program(*script.program(), *entry.target, *entry.environment, script.name(),
                            is_first ? CompiledFor::ThisKernel : CompiledFor::Any);
  if (!bound) bound.error().message += targets.way_to_types();
  return dif::verify_program(TRY(std::move(bound)));
}

Result<std::vector<dif::VerifiedProgram>> bound_programs(const Script& script,
                                                         SessionTargets& targets) {
  std::vector<dif::VerifiedProgram> programs;
  for (SessionTarget& entry : targets) {
    programs.push_back(TRY(targets.named(entry, bound_program(script, targets, entry))));
  }
  return programs;
}

Result<void> bind_targets(const Script& script, std::vector<dif::VerifiedProgram> programs,
                          SessionTargets& targets, const Settings& settings) {
  dif::GlobalsShare share;
  if (targets.several()) share.globals = TRY(shared_globals(programs, targets, settings));
  for (std::size_t i = 0; i < programs.size(); ++i) {
    SessionTarget& entry = targets[i];
    TRY(targets.named(entry,
                      bind(script, targets, entry, std::move(programs[i]), share, settings)));
    share.first_vcpu += entry.target->tracer().vcpu_count();
  }
  return {};
}

Result<void> enable_targets(const Script& script, SessionTargets& targets,
                            const Settings& settings) {
  for (SessionTarget& entry : targets) {
    TRY(targets.named(entry, check_destructive_actions(entry, settings)));
    TRY(targets.named(entry, enable(script, targets, entry, settings)));
  }
  return {};
}

}  // namespace ringside::cli
