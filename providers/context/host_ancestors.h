// The ancestors of our own process on this host, for progenyof() in probes that the host fires
// (BEGIN, END, tick).
#pragma once

#include <sys/types.h>

#include <vector>

namespace ringside::providers {

/// This process, its parent and so on, as far as /proc tells.
std::vector<pid_t> host_ancestors();

}  // namespace ringside::providers
