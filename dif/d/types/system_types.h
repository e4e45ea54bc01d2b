// Types that D scripts rely on, for guests that have no type of that name: those of the Dynamic
// Tracing Guide and of Solaris' <sys/types.h>, with the sizes that Linux gives them; socket
// addresses and times as <bits/socket.h>, <netinet/in.h> and <bits/types/> of glibc lay them out on
// x86-64.
#pragma once

#include "vmm/base/c_type.h"

namespace ringside::d {

/// Adds those whose names `graph` lacks: boolean_t, in6_addr_t, struct sockaddr_in... Once is
/// enough, and twice does no harm.
void add_system_types(TypeGraph& graph);

}  // namespace ringside::d
