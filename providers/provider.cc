#include "providers/provider.h"

#include <fmt/core.h>

namespace ringside::providers {

tl::unexpected<Error> Provider::no_such_probe() const {
  return fail(ErrorCode::NotFound, fmt::format("the provider {} has no such probe", name_));
}

}  // namespace ringside::providers
