// The functions of a kernel and its modules that a probe description asks for.
#pragma once

#include <cstddef>
#include <functional>

#include "dif/program/probe_description.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// Visits, by index, those symbols of text that the pattern's module and function match, in the
/// order of their addresses. All aliases of a function are visited.
void for_each_function(const guest_linux::SymbolTable& symbols,
                       const dif::ProbeDescription& pattern,
                       const std::function<void(std::size_t)>& visit);

}  // namespace ringside::providers
