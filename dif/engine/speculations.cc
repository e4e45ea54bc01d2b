#include "dif/engine/speculations.h"

#include <algorithm>

#include "dif/evaluate/vcpu_output.h"

namespace ringside::dif {

namespace {

bool is_active(SpeculationState state) {
  return state == SpeculationState::Active || state == SpeculationState::ActiveOne ||
         state == SpeculationState::ActiveMany;
}

}  // namespace

Speculations::Speculations(const EngineOptions& options, unsigned vcpus, const RecordShapes& shapes)
    : memory_(std::size_t{options.speculations} * vcpus * options.speculation_size) {
  if (options.speculations == 0) return;
  speculations_.resize(options.speculations);
  const std::size_t size =
      std::min(options.speculation_size, memory_.bytes().size() / options.speculations / vcpus);
  std::size_t at = 0;
  for (Speculation& speculation : speculations_) {
    speculation.buffers.reserve(vcpus);
    for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu, at += size) {
      speculation.buffers.emplace_back(memory_.bytes().subspan(at, size), BufferPolicy::Switch,
                                       shapes);
    }
  }
}

const Speculations::Speculation* Speculations::find(std::uint64_t id) const {
  return id >= 1 && id <= speculations_.size() ? &speculations_[id - 1] : nullptr;
}

Speculations::Speculation* Speculations::find_active(std::uint64_t id) {
  return is_active(state(id)) ? &speculations_[id - 1] : nullptr;
}

bool Speculations::Speculation::has_others_than(std::uint32_t one) const {
  return state == SpeculationState::ActiveMany ||
         (state == SpeculationState::ActiveOne && vcpu != one);
}

SpeculationState Speculations::state(std::uint64_t id) const {
  const Speculation* const found = find(id);
  return found != nullptr ? found->state : SpeculationState::Inactive;
}

bool Speculations::records(std::uint64_t id) const {
  const SpeculationState now = state(id);
  return now == SpeculationState::ActiveOne || now == SpeculationState::ActiveMany;
}

std::uint64_t Speculations::allocate() {
  bool all_active = true;
  for (std::size_t i = 0; i < speculations_.size(); ++i) {
    SpeculationState& state = speculations_[i].state;
    if (state == SpeculationState::Inactive) {
      state = SpeculationState::Active;
      return i + 1;
    }
    all_active = all_active && is_active(state);
  }
  ++(all_active ? unavailable_ : busy_);
  return 0;
}

RecordBuffer* Speculations::speculate(std::uint64_t id, std::uint32_t vcpu) {
  Speculation* const found = find_active(id);
  if (found == nullptr) return nullptr;
  if (found->state == SpeculationState::Active) {
    found->state = SpeculationState::ActiveOne;
    found->vcpu = vcpu;
  } else if (found->vcpu != vcpu) {
    found->state = SpeculationState::ActiveMany;
  }
  return &found->buffers[vcpu];
}

void Speculations::copy(Speculation& speculation, std::uint32_t vcpu, VcpuOutput& out) {
  RecordBuffer& buffer = speculation.buffers[vcpu];
  if (!out.records().append(buffer, out.room())) out.drop_record();
  buffer.clear();
}

void Speculations::commit(std::uint64_t id, std::uint32_t vcpu, VcpuOutput& out) {
  Speculation* const found = find_active(id);
  if (found == nullptr) return;
  const bool elsewhere = found->has_others_than(vcpu);
  copy(*found, vcpu, out);
  found->state = elsewhere ? SpeculationState::CommittingMany : SpeculationState::Inactive;
  if (elsewhere) ++to_copy_;
}

void Speculations::discard(std::uint64_t id, std::uint32_t vcpu) {
  Speculation* const found = find_active(id);
  if (found == nullptr) return;
  const bool elsewhere = found->has_others_than(vcpu);
  found->buffers[vcpu].clear();
  found->state = elsewhere ? SpeculationState::Discarding : SpeculationState::Inactive;
}

void Speculations::copy_committed(std::uint32_t vcpu, VcpuOutput& out) {
  for (Speculation& speculation : speculations_) {
    if (speculation.state == SpeculationState::CommittingMany) copy(speculation, vcpu, out);
  }
}

void Speculations::clean() {
  for (Speculation& speculation : speculations_) {
    const bool committing = speculation.state == SpeculationState::CommittingMany;
    if (!committing && speculation.state != SpeculationState::Discarding) continue;
    const auto empty = [](const RecordBuffer& buffer) { return buffer.empty(); };
    if (committing && !std::ranges::all_of(speculation.buffers, empty)) continue;
    for (RecordBuffer& buffer : speculation.buffers) buffer.clear();
    speculation.state = SpeculationState::Inactive;
    if (committing) --to_copy_;
  }
}

}  // namespace ringside::dif
