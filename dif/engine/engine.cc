// The vCPUs' states and what goes on between them: taking, cleaning. One firing: clause_runner.cc.
//
// Taking: `half` says which of its two collections a firing fills; each firing reads it once,
// under its firing lock. After a change, a vCPU whose lock was free once has nobody in the old
// half. Cleaning (of erased variables) is due at cleanrate, by the firings' time; the first firing
// that sees so cleans. It cannot wait for other vCPUs, so those that fire just then are marked, and
// clean what is theirs when they fire next.
#include "dif/engine/engine.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "dif/engine/clause_runner.h"
#include "dif/engine/fire_context.h"
#include "dif/evaluate/variables.h"
#include "dif/verify/kept_arguments.h"
#include "dif/verify/verify.h"
#include "vmm/base/check.h"

namespace ringside::dif {

namespace {

constexpr std::uint32_t kMostSpeculations = 1 << 16;  // each has a buffer for every vCPU
constexpr std::uint32_t kMostSpeculationBuffers = 1 << 18;

/// Options come from the user; the tables need a little room to work at all.
EngineOptions usable(EngineOptions options, unsigned vcpus) {
  options.speculations = std::min(
      {options.speculations, kMostSpeculations, std::max(kMostSpeculationBuffers / vcpus, 1u)});
  options.buffer_resize = BufferResize::Auto;
  options.string_size = usable_string_size(options.string_size);
  options.scratch_size = std::clamp<std::size_t>(
      options.scratch_size, std::size_t{8} * options.string_size, std::size_t{1} << 30);
  return options;
}

}  // namespace

std::uint64_t enabled_size(const Clause& clause) {
  constexpr std::uint64_t kPair = 4;  // as much as four values
  std::uint64_t size = kPair;
  for (const Action& action : clause.actions) size += action.arguments.size();
  return size;
}

/// The state that one vCPU's firings have for themselves.
struct alignas(64) VcpuState {
  VcpuState(Firings& firings, unsigned vcpu, std::array<std::span<std::byte>, 2> memory)
      : records{buffer(firings, memory[0]), buffer(firings, memory[1])},
        halves{output(firings, records[0]), output(firings, records[memory[1].empty() ? 0 : 1])},
        runner(firings, vcpu) {}

  static RecordBuffer buffer(const Firings& firings, std::span<std::byte> memory) {
    return {memory, firings.enablings.options().buffer_policy, firings.enablings.shapes()};
  }

  static VcpuOutput output(const Firings& firings, RecordBuffer& records) {
    return {firings.enablings.options(), firings.enablings.program().clauses.size(), records};
  }

  BriefLock firing_lock;
  std::atomic<bool> has_to_clean = false;
  std::array<RecordBuffer, 2> records;  // ring and fill: the first one only
  std::array<VcpuOutput, 2> halves;
  ClauseRunner runner;
};

struct Engine::State {
  State(VerifiedProgram verified, const EngineOptions& wanted, unsigned vcpus, GlobalsShare share)
      : program(std::move(verified)),
        plan(*plan_buffers(usable(wanted, vcpus), vcpus)),  // it lowers, so it does not fail
        firings(program.program(), plan.options, vcpus, std::move(share)),
        order_room(room_for_orders(program.program(), plan.options)),
        memory(vcpu_memory() * vcpus * (switches() ? 2 : 1)),
        kept_arguments(program.program()) {
    CHECK(check_storage(program.program(), plan.options.string_size));  // the caller's business
    const std::size_t copies = vcpus * std::size_t{switches() ? 2U : 1U};
    const std::size_t size = std::min(vcpu_memory(), memory.bytes().size() / copies);
    for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu) {
      const auto first = memory.bytes().subspan(vcpu * size, size);
      const auto second =
          switches() ? memory.bytes().subspan((vcpus + vcpu) * size, size) : std::span<std::byte>();
      vcpu_states.push_back(std::make_unique<VcpuState>(firings, vcpu, std::array{first, second}));
    }
    keep_room(std::min(order_room, size));
  }

  bool switches() const { return plan.options.buffer_policy == BufferPolicy::Switch; }

  /// Which of a vCPU's collections firings fill; under its firing lock.
  VcpuOutput& filled(VcpuState& vcpu_state) const {
    return vcpu_state.halves[half.load(std::memory_order_acquire)];
  }

  /// Of one principal buffer.
  std::size_t vcpu_memory() const { return plan.options.buffer_size + order_room; }

  void keep_room(std::size_t bytes) {
    for (const auto& vcpu_state : vcpu_states) {
      for (RecordBuffer& buffer : vcpu_state->records) buffer.set_reserve(bytes);
    }
  }
  void keep_room_for_end() {
    if (!switches()) keep_room(firings.enablings.end_reserve());
  }

  /// A clause is often enabled on thousands of probes, and judged once.
  const RecordNeeds& needs_of(const Ecb& ecb, const KeptArguments& kept) {
    std::optional<RecordNeeds>& known = record_needs[{ecb.info.clause, kept}];
    if (!known) {
      known = dif::record_needs(*ecb.clause, firings.enablings.options().string_size, kept);
    }
    return *known;
  }
  KeptArguments kept_until(const EnabledProbe& probe) const;

  bool is_due(std::uint64_t now);
  void clean(std::uint32_t vcpu);
  void clean_own(std::uint32_t vcpu);
  TraceData take(bool all_records);

  static constexpr std::uint64_t kNever = UINT64_MAX;

  VerifiedProgram program;
  BufferPlan plan;
  Firings firings;
  std::size_t order_room;  // of each principal buffer, beside its size
  LazyMemory memory;       // of all vCPUs' records
  std::vector<std::unique_ptr<VcpuState>> vcpu_states;
  const KeptArgumentFinder kept_arguments;
  std::map<std::pair<std::uint32_t, KeptArguments>, std::optional<RecordNeeds>>
      record_needs;  // by clause, of those asked about
  std::atomic<unsigned> half = 0;
  std::atomic<std::uint64_t> cleaned = kNever;  // when, by the firings' time
};

/// A clock that went backward by more than the interval counts as due, too. Answers one firing
/// only.
bool Engine::State::is_due(std::uint64_t now) {
  std::uint64_t last = cleaned.load(std::memory_order_relaxed);
  if (last == kNever) {
    cleaned.compare_exchange_strong(last, now, std::memory_order_relaxed);
    return false;
  }
  const std::uint64_t since = now - last;
  const bool backward = since > UINT64_MAX / 2;
  if ((backward ? 0 - since : since) < plan.options.clean_interval) return false;
  return cleaned.compare_exchange_strong(last, now, std::memory_order_relaxed);
}

/// Under the vCPU's firing lock, before it fires.
void Engine::State::clean(std::uint32_t vcpu) {
  clean_own(vcpu);
  for (std::uint32_t other = 0; other < vcpu_states.size(); ++other) {
    if (other == vcpu) continue;
    VcpuState& vcpu_state = *vcpu_states[other];
    vcpu_state.has_to_clean.store(true, std::memory_order_relaxed);
    if (!vcpu_state.firing_lock.try_lock()) continue;
    const std::lock_guard lock(vcpu_state.firing_lock, std::adopt_lock);
    clean_own(other);
  }
}

/// Cleans the vCPU's own state, under its firing lock.
void Engine::State::clean_own(std::uint32_t vcpu) {
  VcpuState& vcpu_state = *vcpu_states[vcpu];
  vcpu_state.has_to_clean.store(false, std::memory_order_relaxed);
  firings.shared.variables.clean(firings.shared.first_vcpu + vcpu);
}

TraceData Engine::State::take(bool all_records) {
  TraceData trace_data;
  // Before the change: whoever begins after it sees the exit, too.
  trace_data.finished = firings.exit_status().has_value();
  const unsigned old = half.load(std::memory_order_relaxed);
  half.store(old ^ 1, std::memory_order_release);
  std::vector<RecordBuffer*> buffers;
  for (std::uint32_t vcpu = 0; vcpu < vcpu_states.size(); ++vcpu) {
    VcpuState& vcpu_state = *vcpu_states[vcpu];
    const std::lock_guard lock(vcpu_state.firing_lock);
    if (vcpu_state.records[0].filled()) trace_data.filled.push_back(vcpu);
    buffers.push_back(&vcpu_state.records[switches() ? old : 0]);
  }
  for (std::uint32_t vcpu = 0; vcpu < vcpu_states.size(); ++vcpu) {
    vcpu_states[vcpu]->halves[old].take(vcpu, trace_data);
  }
  order_faults(trace_data);
  if (all_records || switches()) take_records(buffers, plan.options.temporal, trace_data);
  trace_data.storage.resize(vcpu_states.size());
  return trace_data;
}

Engine::Engine(VerifiedProgram program, const EngineOptions& options, unsigned vcpus,
               GlobalsShare share)
    : state_(std::make_unique<State>(std::move(program), options, std::max(vcpus, 1u),
                                     std::move(share))) {}

Engine::~Engine() = default;

const Program& Engine::program() const {
  return state_->program.program();
}

EcbId Engine::enable(std::uint32_t clause, ProbeId probe, const ProbeDescription& name) {
  const EcbId ecb = state_->firings.enablings.enable(clause, probe, name);
  for (const auto& vcpu_state : state_->vcpu_states) vcpu_state->runner.make_room();
  state_->keep_room_for_end();
  return ecb;
}

void Engine::expect(std::uint32_t clause) {
  state_->firings.enablings.expect(clause);
}

void Engine::enable_beside_firings(std::span<const Enabling> enablings) {
  std::vector<std::unique_lock<BriefLock>> locks;
  for (const auto& vcpu_state : state_->vcpu_states) locks.emplace_back(vcpu_state->firing_lock);
  for (const Enabling& one : enablings) {
    state_->firings.enablings.enable(one.clause, one.probe, one.name);
  }
  for (const auto& vcpu_state : state_->vcpu_states) vcpu_state->runner.make_room();
  state_->keep_room_for_end();
}

const std::vector<LoweredBuffer>& Engine::lowered() const {
  return state_->plan.lowered;
}

const EcbInfo& Engine::ecb(EcbId id) const {
  return state_->firings.enablings.info(id);
}

const std::string& Engine::jit_refusal() const {
  return state_->firings.shared.code.refusal();
}

bool Engine::records_fit() const {
  return state_->firings.enablings.records_fit();
}

const ProbeDescription& Engine::probe_name(ProbeId probe) const {
  const EnabledProbe* const found = state_->firings.enablings.find(probe);
  CHECK(found != nullptr);
  return found->name;
}

void Engine::set_error_probe(ProbeId probe) {
  state_->firings.enablings.set_error_probe(probe);
}

void Engine::unmute_error_probe() {
  state_->firings.enablings.let_error_fire(true);
}

void Engine::mute_error_probe() {
  state_->firings.enablings.let_error_fire(false);
}

/// The arguments that variables of a thread hold at a call's return since its entry.
KeptArguments Engine::State::kept_until(const EnabledProbe& probe) const {
  if (!kept_arguments.any() || probe.name.name != "return") return {};
  ProbeDescription entrys = probe.name;
  entrys.name = "entry";
  const EnabledProbe* const entry = firings.enablings.find(entrys);
  if (entry == nullptr) return {};
  std::vector<std::uint32_t> clauses;
  for (const Ecb* const ecb : entry->ecbs) clauses.push_back(ecb->info.clause);
  return kept_arguments.find(probe.name.provider, clauses);
}

RecordNeeds Engine::record_needs(ProbeId probe, EntryArguments entrys) {
  const Enablings& enablings = state_->firings.enablings;
  const auto needs_at = [&](const EnabledProbe* enabled) {
    std::optional<RecordNeeds> needs;
    const bool are_kept = enabled != nullptr && entrys == EntryArguments::Kept;
    const KeptArguments kept = are_kept ? state_->kept_until(*enabled) : KeptArguments();
    for (std::size_t n = 0; enabled != nullptr && n < enabled->ecbs.size(); ++n) {
      const RecordNeeds& of_clause = state_->needs_of(*enabled->ecbs[n], kept);
      needs ? void(*needs |= of_clause) : void(needs = of_clause);
    }
    return needs.value_or(RecordNeeds());
  };
  RecordNeeds needs = needs_at(enablings.find(probe));
  // The arguments of ERROR describe the fault, which is known later only.
  RecordNeeds of_error = needs_at(enablings.error_probe());
  of_error.arguments = 0;
  if (of_error.follows_arguments()) {
    of_error.obstacle = "ERROR looks at the memory that its arguments name";
  }
  needs.add_looks(of_error);
  return needs;
}

void Engine::set_end_probe(ProbeId probe) {
  state_->firings.enablings.set_end_probe(probe);
  state_->keep_room_for_end();
}

BriefLock& Engine::firing_lock(std::uint32_t vcpu) {
  CHECK(vcpu < state_->vcpu_states.size());
  return state_->vcpu_states[vcpu]->firing_lock;
}

void Engine::wait_for_firings() {
  for (const auto& vcpu_state : state_->vcpu_states)
    const std::lock_guard lock(vcpu_state->firing_lock);
}

std::uint32_t Engine::host_vcpu() const {
  const auto cpu = state_->plan.options.cpu;
  return cpu && *cpu < state_->vcpu_states.size() ? *cpu : 0;
}

void Engine::fire(ProbeId probe, const FireRecord& record, const GuestContext& guest) {
  State& state = *state_;
  const auto cpu = state.plan.options.cpu;
  if (cpu && record.vcpu != *cpu) return;
  CHECK(record.vcpu < state.vcpu_states.size());
  const FireScope scope;
  VcpuState& vcpu_state = *state.vcpu_states[record.vcpu];
  if (state.is_due(record.timestamp) || state.firings.shared.variables.runs_short()) {
    state.clean(record.vcpu);
  } else if (vcpu_state.has_to_clean.load(std::memory_order_relaxed)) {
    state.clean_own(record.vcpu);
  }
  vcpu_state.runner.fire(probe, record, guest, state.filled(vcpu_state));
}

std::optional<int> Engine::exit_status() const {
  return state_->firings.exit_status();
}

std::optional<std::uint64_t> Engine::next_recorded_process() {
  for (const auto& vcpu_state : state_->vcpu_states) {
    if (const auto pid = vcpu_state->runner.recorded_processes().next()) return pid;
  }
  return std::nullopt;
}

TraceData Engine::take() {
  return state_->take(false);
}

TraceData Engine::take_quiescent() {
  return state_->take(true);
}

}  // namespace ringside::dif
