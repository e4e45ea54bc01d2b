// The engine's two threads and the hand-over between them; the firing itself is clause_runner.cc.
//
// There are two collections. Firings fill collections[active]; the consumer owns the other one
// from the moment a request is served until it asks again, when it has emptied it. Serving is
// flipping `active`. Whoever turns Asked into Serving flips: the fire thread, or the consumer once
// the fire thread has stopped; so a fire thread that stops while it is asked leaves nobody waiting.
// Ring and fill buffers do not flip: they stay with `active` until take_quiescent().
#include "dif/engine/engine.h"

#include <algorithm>
#include <atomic>

#include "dif/engine/clause_runner.h"
#include "dif/evaluate/variables.h"
#include "dif/verify/verify.h"
#include "vmm/base/check.h"

namespace ringside::dif {

namespace {

enum class Request : std::uint32_t { Idle, Asked, Serving, Served };

constexpr std::uint32_t kMostSpeculations = 1 << 16;  // each has a buffer for every vCPU
constexpr std::uint32_t kMostSpeculationBuffers = 1 << 18;

/// Options come from the user; the tables need a little room to work at all.
EngineOptions usable(EngineOptions options, unsigned vcpus) {
  options.speculations = std::min(
      {options.speculations, kMostSpeculations, std::max(kMostSpeculationBuffers / vcpus, 1u)});
  options.buffer_resize = BufferResize::Auto;
  options.string_size = std::clamp<std::uint32_t>(options.string_size, 2, 1 << 20);
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

struct Engine::State {
  State(VerifiedProgram verified, const EngineOptions& wanted, unsigned vcpus)
      : program(std::move(verified)),
        plan(*plan_buffers(usable(wanted, vcpus), vcpus)),  // it lowers, so it does not fail
        runner(program.program(), plan.options, vcpus, shapes),
        collections{Collection(plan.options, vcpus, shapes),
                    Collection(plan.options, vcpus, shapes)} {
    CHECK(check_storage(program.program(), plan.options.string_size));  // the caller's business
  }

  bool switches() const { return plan.options.buffer_policy == BufferPolicy::Switch; }

  /// Hands over when somebody asked and nobody else is at it.
  void serve() {
    Request asked = Request::Asked;
    if (!request.compare_exchange_strong(asked, Request::Serving)) return;
    flip();
    if (!switches()) collections[active ^ 1].leave_records_to(collections[active]);
    request.store(Request::Served);
    request.notify_one();
  }

  void flip() {
    runner.copy_committed(collections[active]);
    active ^= 1;
  }

  Harvest harvest_inactive() {
    Harvest harvest = collections[active ^ 1].harvest();
    harvest.finished = runner.exit_status().has_value();
    return harvest;
  }

  void keep_room_for_end() {
    for (Collection& collection : collections) collection.set_reserve(runner.end_reserve());
  }

  VerifiedProgram program;
  BufferPlan plan;
  RecordShapes shapes;  // by EcbId; complete before the first firing
  ClauseRunner runner;
  std::array<Collection, 2> collections;
  unsigned active = 0;
  std::atomic<Request> request = Request::Idle;
  std::atomic<bool> stopped = false;
};

Engine::Engine(VerifiedProgram program, const EngineOptions& options, unsigned vcpus)
    : state_(std::make_unique<State>(std::move(program), options, std::max(vcpus, 1u))) {}

Engine::~Engine() = default;

const Program& Engine::program() const {
  return state_->program.program();
}

EcbId Engine::enable(std::uint32_t clause, ProbeId probe, const ProbeDescription& name) {
  const EcbId ecb = state_->runner.enable(clause, probe, name);
  state_->keep_room_for_end();
  return ecb;
}

const std::vector<LoweredBuffer>& Engine::lowered() const {
  return state_->plan.lowered;
}

const EcbInfo& Engine::ecb(EcbId id) const {
  return state_->runner.ecb(id);
}

bool Engine::records_fit() const {
  return state_->runner.records_fit();
}

const ProbeDescription& Engine::probe_name(ProbeId probe) const {
  return state_->runner.probe_name(probe);
}

void Engine::set_error_probe(ProbeId probe) {
  state_->runner.set_error_probe(probe);
}

void Engine::fire(ProbeId probe, const FireRecord& record, const GuestContext& guest) {
  state_->runner.fire(probe, record, guest, state_->collections[state_->active]);
}

std::optional<int> Engine::exit_status() const {
  return state_->runner.exit_status();
}

void Engine::set_end_probe(ProbeId probe) {
  state_->runner.set_end_probe(probe);
  state_->keep_room_for_end();
}

std::optional<std::uint64_t> Engine::next_recorded_process() {
  return state_->runner.recorded_processes().next();
}

void Engine::serve_requests() {
  if (state_->request.load(std::memory_order_relaxed) == Request::Asked) state_->serve();
}

void Engine::stop_serving() {
  state_->stopped = true;
  state_->serve();
}

Harvest Engine::take() {
  state_->request = Request::Asked;
  if (state_->stopped) state_->serve();
  for (Request now; (now = state_->request.load()) != Request::Served;) {
    state_->request.wait(now);
  }
  state_->request = Request::Idle;
  return state_->harvest_inactive();
}

Harvest Engine::take_quiescent() {
  State& state = *state_;
  state.flip();
  Harvest harvest = state.harvest_inactive();
  // The buffers that were emptied are those that firings fill.
  if (!state.switches()) {
    state.collections[state.active ^ 1].leave_records_to(state.collections[state.active]);
  }
  return harvest;
}

}  // namespace ringside::dif
