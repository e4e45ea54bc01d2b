// Decides for a vCPU's arrival at the place of a static tracepoint whether it is a firing, and
// computes the arguments. The bytes of the site tell whether the tracepoint is off (a nop), on (a
// jump, and the target fires) or just being switched (an int3 of the kernel's own, which leads to
// one or the other). Which way a vCPU came is noted by its stack pointer, which tells tasks and
// interrupts apart on any CPU. Fire context: fires() yes; making one no.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "providers/context/binding.h"
#include "providers/sdt/site_placement.h"
#include "providers/sdt/slice.h"
#include "providers/sdt/slice_needs.h"

namespace ringside::providers {

/// Stack pointers of tasks and interrupts that are between two places. If there are too many, the
/// oldest are forgotten.
class StackPointerSet {
 public:
  void put(std::uint64_t stack);
  /// Whether it was there; it is not any more.
  bool take(std::uint64_t stack);

 private:
  static constexpr std::size_t kMost = 32;
  std::array<std::atomic<std::uint64_t>, kMost> marks_{};
  std::atomic<std::uint32_t> oldest_ = 0;
};

class SiteWatch {
 public:
  /// `stack_bytes`: of a kernel stack, which is aligned to them.
  SiteWatch(GuestVirt site, Slice slice, const SitePlacement& placement, std::uint64_t stack_bytes,
            const CpuNumber& cpu);
  SiteWatch(const SiteWatch&) = delete;
  SiteWatch& operator=(const SiteWatch&) = delete;

  /// For the place that the stand has, for the target, for an edge.
  const TrapFilter& at_place() const { return at_place_; }
  const TrapFilter& at_target() const { return at_target_; }
  const TrapFilter& at_edge() const { return at_edge_; }

 private:
  class SiteFilter : public TrapFilter {
   public:
    using Fires = bool (SiteWatch::*)(const ArgumentMoment&, FilterValues&) const;
    /// The memory that `fires` reads: the tracepoint's site tells whether it is on.
    enum class Reads : std::uint8_t { Nothing, Block, SiteAndBlock };
    SiteFilter(const SiteWatch& watch, Fires fires, Reads reads)
        : watch_(watch), fires_(fires), reads_(reads) {}
    bool fires(const ArgumentMoment& at, FilterValues& out) const override {
      return (watch_.*fires_)(at, out);
    }
    RecordedFilter recorded() const override { return watch_.recorded(reads_); }

   private:
    const SiteWatch& watch_;
    const Fires fires_;
    const Reads reads_;
  };
  enum class State : std::uint8_t { Off, On, BeingSwitched };

  State state(const ArgumentMoment& at) const;
  bool after(const ArgumentMoment& at, FilterValues& out) const;
  bool before(const ArgumentMoment& at, FilterValues& out) const;
  bool target(const ArgumentMoment& at, FilterValues& out) const;
  bool edge(const ArgumentMoment& at, FilterValues& out) const;
  bool evaluate(const ArgumentMoment& at, disasm::Evaluation& state, FilterValues& out) const;
  RecordedFilter recorded(SiteFilter::Reads reads) const;

  const GuestVirt site_;
  const Slice slice_;
  const disasm::Operation before_;
  const SitePlacement::Where where_;
  const bool comes_back_;  // the target's code may come to where we stand after the site
  const std::uint64_t stack_bytes_;
  const CpuNumber cpu_;
  /// For After and Edges: came by the target, by an edge. For Before: has fired.
  mutable StackPointerSet by_target_, by_edge_, fired_;
  const SiteFilter at_place_, at_target_, at_edge_;
};

}  // namespace ringside::providers
