// The sink of firings (the engine in the product, a recorder in tests), and the gate that stops
// firings.
// Used by everything that fires: dispatcher, timers, sampler, fire loop.
// Fire context: yes.
#pragma once

#include "dif/evaluate/guest_context.h"
#include "dif/program/probe_description.h"
#include "vmm/base/brief_lock.h"

namespace ringside::providers {

struct FiringVcpu;

class ProbeSink {
 public:
  virtual ~ProbeSink() = default;
  /// The thread that fires on this vCPU holds it, from before it checks gates and contexts.
  virtual BriefLock& firing_lock(std::uint32_t vcpu) = 0;
  /// Returns when every firing that holds its lock now is over.
  virtual void wait_for_firings() = 0;
  /// Under the firing lock of the record's vCPU.
  virtual void fire(dif::ProbeId probe, const dif::FireRecord& record,
                    const dif::GuestContext& guest) = 0;
  /// The vCPU number under which BEGIN, END and tick fire, which happen on no vCPU.
  virtual std::uint32_t host_vcpu() const { return 0; }
  /// Under the firing lock of this CPU, which fired: it is not to go on before the consumer has
  /// seen the records (dif::GuestContext::keep_still()).
  virtual void keep(std::uint32_t cpu, const FiringVcpu& kept) { (void)cpu, (void)kept; }
  /// After that firing, before the vCPU goes on. Not in fire context.
  virtual void settle(std::uint32_t cpu) { (void)cpu; }
  /// exit() was called: nothing but END will be evaluated any more.
  virtual bool finished() const = 0;
};

/// Lets firings through only while tracing runs: nothing fires before open() or after close().
/// Looked at under a firing lock: after close() and wait_for_firings() firings are over.
class FireGate {
 public:
  virtual ~FireGate() = default;
  virtual void open() = 0;
  virtual void close() = 0;
};

}  // namespace ringside::providers
