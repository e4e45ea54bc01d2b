// The probes of the clause that is compiled, and the signature that they share, which gives args[]
// its types. A clause whose descriptions share no signature is compiled once for each description.
#pragma once

#include <optional>
#include <vector>

#include "dif/d/resolve/environment.h"
#include "dif/d/types/types.h"

namespace ringside::d {

class ClauseProbes {
 public:
  ClauseProbes(Environment& environment, const Types& types)
      : environment_(environment), types_(types) {}

  void enter(std::vector<dif::ProbeDescription> probes);
  /// D_ARGS_MULTI where the probes differ in their arguments, D_ARGS_NONE where there are none.
  Checked<ProbeSignature> signature(const Location& at);
  /// Whether some of the descriptions have other arguments than the rest.
  bool differ(const std::vector<dif::ProbeDescription>& probes) const;

 private:
  Checked<ProbeSignature> find_signature(const Location& at) const;
  bool agree(const ProbeSignature& a, const ProbeSignature& b) const;

  Environment& environment_;
  const Types& types_;
  std::vector<dif::ProbeDescription> probes_;
  std::optional<Checked<ProbeSignature>> known_;
};

}  // namespace ringside::d
