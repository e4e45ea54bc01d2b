#include "dif/evaluate/subroutines.h"

namespace ringside::dif {

CallResult Subroutines::call(Subroutine which, CallArguments a) {
  const SubroutineInfo& info = subroutine_info(which);
  if (a.size() < info.least || a.size() > info.most) return raise(FaultKind::IllegalOperation);
  memory_.release_staging();
  switch (which) {
// clang-format off
#define DIF_SUBROUTINE(name, id, text, result, least, most, a1, a2, a3, changes, call, reason) \
    case Subroutine::name: return groups_.call(a);
#include "dif/program/builtin.def"
    // clang-format on
  }
  return raise(FaultKind::IllegalOperation);
}

}  // namespace ringside::dif
