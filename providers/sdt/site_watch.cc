#include "providers/sdt/site_watch.h"

#include <utility>

#include "vmm/arch/arch.h"

namespace ringside::providers {

void StackPointerSet::put(std::uint64_t stack) {
  for (auto& mark : marks_) {
    if (mark.load(std::memory_order_relaxed) == stack) return;
  }
  for (auto& mark : marks_) {
    std::uint64_t none = 0;
    if (mark.compare_exchange_strong(none, stack)) return;
  }
  marks_[oldest_.fetch_add(1, std::memory_order_relaxed) % kMost].store(stack);
}

bool StackPointerSet::take(std::uint64_t stack) {
  for (auto& mark : marks_) {
    std::uint64_t found = stack;
    if (mark.load(std::memory_order_relaxed) == stack && mark.compare_exchange_strong(found, 0)) {
      return true;
    }
  }
  return false;
}

SiteWatch::SiteWatch(GuestVirt site, Slice slice, const SitePlacement& placement,
                     std::uint64_t stack_bytes, const CpuNumber& cpu)
    : site_(site),
      slice_(std::move(slice)),
      before_(placement.before),
      where_(placement.where),
      comes_back_(placement.comes_back),
      stack_bytes_(stack_bytes),
      cpu_(cpu),
      at_place_(*this,
                where_ == SitePlacement::Where::Before ? &SiteWatch::before : &SiteWatch::after,
                SiteFilter::Reads::SiteAndBlock),
      at_target_(*this, &SiteWatch::target, SiteFilter::Reads::Block),
      at_edge_(*this, &SiteWatch::edge, SiteFilter::Reads::Nothing) {}

RecordedFilter SiteWatch::recorded(SiteFilter::Reads reads) const {
  if (reads == SiteFilter::Reads::Nothing) return {};
  const bool at_place = reads == SiteFilter::Reads::SiteAndBlock;
  SliceNeeds needs(cpu_);
  SliceNeeds::State state = SliceNeeds::first();
  if (at_place) needs.load(state, SliceNeeds::Value::of(site_.raw()), 1);
  if (at_place && where_ == SitePlacement::Where::Before) needs.step(state, before_);
  const auto addresses = slice_.add_to(needs, std::move(state));
  RecordedFilter all;
  all.codes.push_back({needs.plan(), needs.needs()});
  for (std::size_t n = 0; n < addresses.size(); ++n) all.words.at(n) = {0, addresses[n]};
  return all;
}

SiteWatch::State SiteWatch::state(const ArgumentMoment& at) const {
  const auto opcode = load<std::byte>(at.kernel, site_);
  if (!opcode) return State::Off;
  if (arch::is_jump(*opcode)) return State::On;
  return *opcode == arch::kBreakpoint ? State::BeingSwitched : State::Off;
}

/// Evaluates the block. Where that fails now, the guest itself would have gone on to its calls:
/// that is a firing, whose arguments are not known.
bool SiteWatch::evaluate(const ArgumentMoment& at, disasm::Evaluation& state,
                         FilterValues& out) const {
  const auto end = slice_.run(state, at.kernel, out);
  if (!end) out.fault = end.error();
  return !end || *end == Slice::End::Calls;
}

bool SiteWatch::after(const ArgumentMoment& at, FilterValues& out) const {
  const std::uint64_t stack = at.registers.*arch::kStackPointer;
  const bool by_edge = where_ == SitePlacement::Where::Edges && by_edge_.take(stack);
  const bool by_target = comes_back_ && by_target_.take(stack);
  if (by_edge) return false;
  switch (state(at)) {
    case State::On: return false;
    case State::BeingSwitched:
      if (by_target) return false;
      break;
    case State::Off: break;
  }
  disasm::Evaluation here(at.registers, at.kernel);
  return evaluate(at, here, out);
}

bool SiteWatch::before(const ArgumentMoment& at, FilterValues& out) const {
  disasm::Evaluation here(at.registers, at.kernel);
  const auto done = here.step(before_);
  const std::uint64_t stack = here.registers().*arch::kStackPointer;
  // The vCPU writes the same once we are gone: an argument may lead there (try_to_wake_up() sets
  // the task's state right before it tells of it), and has the value before.
  here.settle_outside(GuestVirt(stack - stack % stack_bytes_), stack_bytes_);
  if (state(at) == State::On) {
    fired_.take(stack);
    return false;
  }
  // It may be a jump by the time that the site runs.
  fired_.put(stack);
  if (done) return evaluate(at, here, out);
  out.fault = done.error();
  return true;
}

bool SiteWatch::target(const ArgumentMoment& at, FilterValues& out) const {
  const std::uint64_t stack = at.registers.*arch::kStackPointer;
  if (where_ == SitePlacement::Where::Before && fired_.take(stack)) return false;
  if (where_ != SitePlacement::Where::Before && comes_back_) by_target_.put(stack);
  disasm::Evaluation here(at.registers, at.kernel);
  return evaluate(at, here, out);
}

bool SiteWatch::edge(const ArgumentMoment& at, FilterValues&) const {
  by_edge_.put(at.registers.*arch::kStackPointer);
  return false;
}

}  // namespace ringside::providers
