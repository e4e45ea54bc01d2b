// The probes of the clause that is compiled, and the one signature that they share: args[] is typed
// by it.
#pragma once

#include <optional>
#include <vector>

#include "dif/d/compile.h"
#include "dif/d/types/types.h"

namespace ringside::d {

class ClauseProbes {
 public:
  ClauseProbes(Environment& environment, const Types& types)
      : environment_(environment), types_(types) {}

  void enter(std::vector<dif::ProbeDescription> probes);
  /// D_ARGS_MULTI where the probes differ in their arguments, D_ARGS_NONE where there are none.
  Checked<ProbeSignature> signature(const Location& at);

 private:
  Checked<ProbeSignature> find_signature(const Location& at) const;

  Environment& environment_;
  const Types& types_;
  std::vector<dif::ProbeDescription> probes_;
  std::optional<Checked<ProbeSignature>> known_;
};

}  // namespace ringside::d
