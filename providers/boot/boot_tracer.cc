#include "providers/boot/boot_tracer.h"

#include <utility>

#include "providers/boot/boot_trace.h"
#include "providers/functions/fbt.h"
#include "providers/functions/syscall_provider.h"

namespace ringside::providers {

void BootTracer::add_providers(Registry& registry) {
  if (kernel_.is_linux()) {
    registry.add(std::make_unique<SyscallProvider>(kernel_.text(), kernel_, points_));
  }
  registry.add(std::make_unique<FbtProvider>(kernel_.text(), kernel_, points_));
}

std::unique_ptr<KernelTrace> BootTracer::begin(ProbeSink& sink, GuestClock& clock, Stacks stacks) {
  return std::make_unique<BootTrace>(*this, sink, clock, stacks);
}

void BootTracer::notice(std::string text) {
  const std::lock_guard lock(notices_lock_);
  notices_.push_back(std::move(text));
}

std::vector<std::string> BootTracer::take_notices() {
  const std::lock_guard lock(notices_lock_);
  return std::exchange(notices_, {});
}

}  // namespace ringside::providers
