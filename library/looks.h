// The machine of a handle as it is looked at. Used by this folder alone.
#pragma once

#include <memory>

#include "library/handles.h"

namespace ringside::library {

/// Finds the machine and its kernel the first time. MachineGone once it has ended.
Result<std::shared_ptr<Look>> look_of(ringside_vm& vm);
Result<void> check_there(const Look& look);

}  // namespace ringside::library
