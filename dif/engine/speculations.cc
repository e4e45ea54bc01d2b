#include "dif/engine/speculations.h"

#include <algorithm>

namespace ringside::dif {

Speculations::Speculations(const EngineOptions& options, unsigned vcpus, const RecordShapes& shapes)
    : SpeculationIds(options.speculations),
      memory_(std::size_t{options.speculations} * vcpus * options.speculation_size) {
  if (options.speculations == 0) return;
  buffers_.resize(options.speculations);
  const std::size_t size =
      std::min(options.speculation_size, memory_.bytes().size() / options.speculations / vcpus);
  std::size_t at = 0;
  for (std::vector<RecordBuffer>& buffers : buffers_) {
    buffers.reserve(vcpus);
    for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu, at += size) {
      buffers.emplace_back(memory_.bytes().subspan(at, size), BufferPolicy::Switch, shapes);
    }
  }
}

RecordBuffer* Speculations::speculate(std::uint64_t id, std::uint32_t vcpu) {
  if (state(id) == SpeculationState::Inactive) return nullptr;
  set_state(id, SpeculationState::Recording);
  return &buffers_[id - 1][vcpu];
}

bool Speculations::commit(std::uint64_t id, RecordBuffer& principal, std::uint64_t now, Room room) {
  if (state(id) == SpeculationState::Inactive) return true;
  const bool fits = principal.append_group(buffers_[id - 1], now, room);
  discard(id);
  return fits;
}

void Speculations::discard(std::uint64_t id) {
  if (state(id) == SpeculationState::Inactive) return;
  for (RecordBuffer& buffer : buffers_[id - 1]) buffer.clear();
  set_state(id, SpeculationState::Inactive);
}

}  // namespace ringside::dif
