#include "dif/engine/speculations.h"

#include <algorithm>

namespace ringside::dif {

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

SpeculationState Speculations::state(std::uint64_t id) const {
  const bool known = id >= 1 && id <= speculations_.size();
  return known ? speculations_[id - 1].state : SpeculationState::Inactive;
}

Speculations::Speculation* Speculations::find_active(std::uint64_t id) {
  return state(id) != SpeculationState::Inactive ? &speculations_[id - 1] : nullptr;
}

std::uint64_t Speculations::allocate() {
  for (std::size_t i = 0; i < speculations_.size(); ++i) {
    if (speculations_[i].state != SpeculationState::Inactive) continue;
    speculations_[i].state = SpeculationState::Active;
    return i + 1;
  }
  ++unavailable_;
  return 0;
}

RecordBuffer* Speculations::speculate(std::uint64_t id, std::uint32_t vcpu) {
  Speculation* const found = find_active(id);
  if (found == nullptr) return nullptr;
  found->state = SpeculationState::Recording;
  return &found->buffers[vcpu];
}

bool Speculations::commit(std::uint64_t id, RecordBuffer& principal, std::uint64_t now, Room room) {
  Speculation* const found = find_active(id);
  if (found == nullptr) return true;
  const bool fits = principal.append_group(found->buffers, now, room);
  discard(id);
  return fits;
}

void Speculations::discard(std::uint64_t id) {
  Speculation* const found = find_active(id);
  if (found == nullptr) return;
  for (RecordBuffer& buffer : found->buffers) buffer.clear();
  found->state = SpeculationState::Inactive;
}

}  // namespace ringside::dif
