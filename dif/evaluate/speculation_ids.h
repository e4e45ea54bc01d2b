// The ids of speculations and the state of each: speculation() takes a free one here. The engine,
// which keeps their buffers, does the rest (dif/engine/speculations.h).
// Fire context: yes, but for the constructor. All calls need the program lock (shared_locks.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ringside::dif {

enum class SpeculationState : std::uint8_t {
  Inactive,
  Active,     // nobody speculated yet
  Recording,  // somebody did
};

class SpeculationIds {
 public:
  explicit SpeculationIds(std::size_t count = 0) : states_(count) {}

  /// speculation(): an id from 1 up, or 0 when none is free, which is counted.
  std::uint64_t allocate() {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (states_[i] != SpeculationState::Inactive) continue;
      states_[i] = SpeculationState::Active;
      return i + 1;
    }
    ++unavailable_;
    return 0;
  }
  std::size_t count() const { return states_.size(); }
  SpeculationState state(std::uint64_t id) const {
    return id >= 1 && id <= states_.size() ? states_[id - 1] : SpeculationState::Inactive;
  }
  /// Calls of allocate() that found none, since the last call.
  std::uint64_t take_unavailable() { return std::exchange(unavailable_, 0); }

 protected:
  /// Of an id that there is.
  void set_state(std::uint64_t id, SpeculationState state) { states_[id - 1] = state; }

 private:
  std::vector<SpeculationState> states_;
  std::uint64_t unavailable_ = 0;
};

}  // namespace ringside::dif
