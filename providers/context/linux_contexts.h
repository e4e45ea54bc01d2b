// The Linux contexts of a machine's vCPUs, one each. Whoever fires on a vCPU, by a trap, a sample
// or an event, uses that vCPU's, in its turn (dif/engine/engine.h): so none is ever used twice at
// once. Fire context: operator[] yes; everything else no.
#pragma once

#include <deque>

#include "providers/context/linux_context.h"

namespace ringside::providers {

class LinuxContexts {
 public:
  /// `parts` are what each LinuxContext is made of.
  template <class... Parts>
  explicit LinuxContexts(unsigned vcpus, Parts&&... parts) {
    for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu) contexts_.emplace_back(parts...);
  }

  LinuxContext& operator[](std::uint32_t vcpu) { return contexts_[vcpu]; }
  unsigned size() const { return static_cast<unsigned>(contexts_.size()); }
  auto begin() { return contexts_.begin(); }
  auto end() { return contexts_.end(); }

 private:
  std::deque<LinuxContext> contexts_;
};

}  // namespace ringside::providers
