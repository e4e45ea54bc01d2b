// How a guest traps, and the channel by which a trap reaches the host (vmm/shim/mailboxes.h has
// both). Spin costs a host CPU that looks at the mailboxes all the time, and answers in the time
// that a cache line takes to travel. Exit costs an exit of the guest for each trap, and no CPU
// beside the vCPU's own.
#pragma once

#include <cstdint>

#include "vmm/base/result.h"

namespace ringside::providers {

enum class Channel : std::uint8_t {
  Auto,  // exit where the machine can and the host has no CPU to spare, else spin
  Spin,
  Exit,
};

/// The most threads that poll for traps on the channel spin: as many as there are mailboxes.
inline constexpr unsigned kMostPollThreads = 64;

/// The choice depends on these.
struct ChannelChoice {
  bool has_exits = false;    // vCPUs run on threads of this process
  unsigned vcpus = 1;        // of the machine
  unsigned online_cpus = 1;  // that this process may run on
};

/// Never Auto. Unsupported where the wanted one cannot be had.
Result<Channel> choose_channel(Channel wanted, const ChannelChoice& choice);

/// CPUs of the host that this process may run on; at least 1.
unsigned online_cpus();

/// Whether a trap waits until its probes have fired, or is recorded, so that they fire later.
enum class Recording : std::uint8_t {
  No,    // all traps wait
  Auto,  // those wait whose programs need the guest to stand still
  Yes,   // one that would have to wait is an error
};

/// Whether a trap that finds the ring of its CPU full waits for room.
enum class RecordFull : std::uint8_t { Wait, Drop };

/// The form in which probes are written into the text: int3s or jumps.
enum class TrapForm : std::uint8_t { Breakpoints, JumpsWhereTheyMay };

}  // namespace ringside::providers
