#include "providers/tracer/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dif/verify/verify.h"
#include "providers/context/linux_context.h"
#include "vmm/base/check.h"
#include "vmm/page_walk.h"

namespace ringside::providers {
namespace {

std::size_t count_different(std::vector<dif::ProbeId> ids) {
  std::ranges::sort(ids);
  return static_cast<std::size_t>(std::unique(ids.begin(), ids.end()) - ids.begin());
}

}  // namespace

Result<std::unique_ptr<Target>> Target::attach(TracedMachine& traced, TracerOptions options) {
  options.held = traced.held;
  options.saved = traced.saved;
  auto tracer = TRY(Tracer::attach(traced.machine.get(), traced.kernel.get(), options));
  return std::make_unique<Target>(std::move(traced), std::move(tracer), options.host_files);
}

Target::~Target() {
  tracer_->stop();
  if (traced_.machine) traced_.machine->shut_down();
}

void Target::bind(dif::VerifiedProgram program, const dif::EngineOptions& options,
                  ProcessNames names, dif::GlobalsShare share) {
  CHECK(engine_ == nullptr);
  engine_ = std::make_unique<dif::Engine>(std::move(program), options, tracer_->vcpu_count(),
                                          std::move(share));
  if (traced_.kernel && host_files_ && host_files_->any()) {
    const guest_linux::Kernel& kernel = *traced_.kernel;
    const auto pages = guest_linux::PageCacheLayout::from(kernel.types(), kernel.symbols());
    if (pages) stack_files_.emplace(StackFiles{*pages, guest_linux::LinuxPaths(kernel.types())});
  }
  if (traced_.kernel && names != ProcessNames::Raw) {
    using Form = guest_linux::UserNames::Form;
    user_names_ = guest_linux::UserNames::create(
        traced_.machine->memory(), *traced_.kernel,
        names == ProcessNames::Demangled ? Form::Demangled : Form::AsInFile, host_files_.get());
  }
}

void Target::serve_stacks() {
  if (!stack_files_ || !host_files_->unwind_tables().is_asked()) return;
  const vmm::GuestMemory& memory = traced_.machine->memory();
  const vmm::PageTableReader reader(memory, traced_.kernel->table_in(memory));
  using Opened = guest_linux::HostUnwindTables::Opened;
  host_files_->unwind_tables().serve(
      *host_files_,
      [&](const guest_linux::FileIdentity& file,
          const guest_linux::FilePathPlace& place) -> std::optional<Opened> {
        const auto pages = guest_linux::FilePages::of_inode(memory, reader, stack_files_->pages,
                                                            GuestVirt(file.inode));
        if (!pages) return std::nullopt;
        return Opened{*pages, guest_linux::file_path(reader, stack_files_->paths, place)};
      });
}

std::optional<GuestVirt> Target::find_task(const FollowedProcess& process) const {
  vmm::GuestMemory& memory = traced_.machine->memory();
  const vmm::PageTableReader reader(memory, traced_.kernel->table_in(memory));
  const auto found =
      guest_linux::find_process(reader, process.layout, process.init_task, process.pid);
  return found ? std::optional(found->task) : std::nullopt;
}

Result<void> Target::follow_process(std::int64_t pid) {
  const auto* const kernel = traced_.kernel.get();
  const auto layout =
      kernel != nullptr ? guest_linux::ProcessLayout::from(kernel->types()) : std::nullopt;
  const GuestVirt init_task = kernel != nullptr ? first_task(*kernel) : GuestVirt(0);
  if (!layout || init_task.raw() == 0) {
    return fail(ErrorCode::Unsupported, "-p: the guest's kernel does not tell its processes");
  }
  FollowedProcess process{*layout, init_task, static_cast<std::uint64_t>(pid), {}};
  const auto task = find_task(process);
  if (!task) return fail(ErrorCode::NotFound, fmt::format("-p: the guest has no process {}", pid));
  process.task = *task;
  followed_ = process;
  return {};
}

bool Target::process_ended() const {
  return followed_ && find_task(*followed_) != followed_->task;
}

/// Of a limit that is met: how much of the program is within it.
Error Target::beyond(const Error& limit, std::size_t asked,
                     const std::vector<dif::ProbeId>& enabled) const {
  const std::string_view way_out = traced_.machine ? traced_.machine->more_room() : "";
  return {limit.code, fmt::format("{} probes fit, {} asked: {}{}{}", count_different(enabled),
                                  asked, limit.message, way_out.empty() ? "" : "; ", way_out)};
}

namespace {

/// Whether a module that is loaded later may have probes that the description means. A function
/// that is named and found in the kernel itself is what was meant.
bool may_come_later(const dif::ProbeDescription& pattern, const std::vector<Probe>& now) {
  const bool is_of_fbt =
      dif::field_matches(pattern.provider, "fbt") &&
      (dif::field_matches(pattern.name, "entry") || dif::field_matches(pattern.name, "return"));
  const bool is_followed = is_of_fbt || pattern.provider == "instr";
  if (!is_followed || pattern.module == "vmlinux") return false;
  const bool any_function = pattern.function.empty() || dif::is_glob(pattern.function);
  return any_function || !pattern.module.empty() ||
         std::ranges::none_of(now,
                              [](const Probe& probe) { return probe.name.module == "vmlinux"; });
}

}  // namespace

/// The probes of each description of each clause, in this order.
Result<std::vector<Target::Matched>> Target::find_all(Matching matching) {
  std::vector<Matched> all;
  const auto& clauses = program().clauses;
  for (std::uint32_t i = 0; i < clauses.size(); ++i) {
    for (const dif::ProbeDescription& pattern : clauses[i].probes) {
      std::vector<Probe> probes;
      TRY(tracer_->for_each_probe(pattern,
                                  [&probes](const Probe& probe) { probes.push_back(probe); }));
      if (probes.empty() && matching == Matching::Required) {
        return fail(ErrorCode::NotFound,
                    fmt::format("{} does not match any probes", pattern.to_string()));
      }
      if (may_come_later(pattern, probes)) {
        tracer_->expect_modules();
        engine_->expect(i);
      }
      taken_ += probes.size() * dif::enabled_size(clauses[i]);
      if (taken_ > dif::kMostEnabled) {
        return fail(ErrorCode::Limit, fmt::format("too many clauses on too many probes, at {}; "
                                                  "trace fewer of them at once",
                                                  pattern.to_string()));
      }
      all.push_back({i, std::move(probes)});
    }
  }
  return all;
}

Result<std::vector<std::size_t>> Target::enable_all(Matching matching) {
  const auto all = TRY(find_all(matching));
  std::vector<dif::ProbeId> asked, enabled;
  for (const Matched& one : all) {
    for (const Probe& probe : one.probes) asked.push_back(probe.id);
  }
  const std::size_t count = count_different(std::move(asked));
  tracer_->expect_probes(count);
  std::vector<std::size_t> matched(program().clauses.size());
  for (const auto& [clause, probes] : all) {
    for (const Probe& probe : probes) {
      auto done = tracer_->enable(probe);
      if (!done && done.error().code == ErrorCode::Limit) {
        done.error() = beyond(done.error(), count, enabled);
      }
      TRY(done);
      enabled.push_back(probe.id);
      engine_->enable(clause, probe.id, probe.name);
    }
    matched[clause] += probes.size();
  }
  return matched;
}

/// How many more fire.
Result<std::size_t> Target::enable_in(const Tracer::LateModule& module) {
  std::vector<dif::Engine::Enabling> enablings;
  std::vector<Probe> probes;
  std::uint64_t taken = taken_;
  const auto& clauses = program().clauses;
  for (std::uint32_t i = 0; i < clauses.size(); ++i) {
    for (const dif::ProbeDescription& pattern : clauses[i].probes) {
      TRY(tracer_->for_each_probe_in(module, pattern, [&](const Probe& probe) {
        probes.push_back(probe);
        if (late_known_.contains(probe.id.value)) return;  // it was loaded before
        enablings.push_back({i, probe.id, probe.name});
        taken += dif::enabled_size(clauses[i]);
      }));
    }
  }
  if (taken > dif::kMostEnabled) {
    return fail(ErrorCode::Limit, "too many clauses on too many probes; trace fewer of them");
  }
  taken_ = taken;
  engine_->enable_beside_firings(enablings);
  std::vector<dif::ProbeId> ids;
  for (const Probe& probe : probes) {
    late_known_.insert(probe.id.value);
    ids.push_back(probe.id);
  }
  TRY(tracer_->add_probes(probes));
  return count_different(std::move(ids));
}

void Target::admit_modules() {
  while (const auto module = tracer_->take_module()) {
    tracer_->let_go(*module, enable_in(*module));
  }
}

/// Not more than 2 % of the time: a guest may have many processes.
void Target::follow_files() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLook = std::chrono::seconds(1);
  constexpr int kShare = 50;
  const auto began = Clock::now();
  if (began < next_follow_) return;
  tracer_->follow_files();
  const auto ended = Clock::now();
  next_follow_ = ended + std::max<Clock::duration>(kLook, kShare * (ended - began));
}

void Target::end_set_up() {
  if (traced_.kernel) traced_.kernel->end_set_up();
}

}  // namespace ringside::providers
