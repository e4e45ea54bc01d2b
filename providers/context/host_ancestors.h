// The processes of this host that ours descends from, for progenyof() in what the host fires.
#pragma once

#include <sys/types.h>

#include <vector>

namespace ringside::providers {

/// This process, its parent and so on, as far as /proc tells.
std::vector<pid_t> host_ancestors();

}  // namespace ringside::providers
