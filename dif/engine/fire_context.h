// Fire context: the host code from taking a trap (or being told of a breakpoint or an event) to
// answering it. A guest CPU stands still meanwhile, so the time spent here is the guest's. Every
// byte that it gave us may be a lie. Code in fire context does not allocate, log, throw or touch
// files; takes no lock but a BriefLock; does not loop without a bound; reads the guest only by copy
// through a GuestReader; on trouble it returns a Fault or bumps a counter. Headers whose first
// comment says "Fire context: yes" may be used there.
//
// FireScope marks it, so that a test can replace operator new and find code that allocates
// (dif/testing/no_allocation.cc).
#pragma once

#include <utility>

namespace ringside::dif {

/// Lives as long as one trap is served, or one firing evaluated, on this thread. Nests.
class FireScope {
 public:
  FireScope() : outer_(std::exchange(firing, true)) {}
  ~FireScope() { firing = outer_; }
  FireScope(const FireScope&) = delete;
  FireScope& operator=(const FireScope&) = delete;

 private:
  friend bool in_fire_context();
  inline static constinit thread_local bool firing = false;

  bool outer_;
};

/// True on a thread that is evaluating a firing.
inline bool in_fire_context() {
  return FireScope::firing;
}

}  // namespace ringside::dif
