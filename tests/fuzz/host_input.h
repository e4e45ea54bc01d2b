// The work of the targets of vmm on their bytes, and their first inputs: the host's ends of what a
// guest, or a QEMU that its guest has taken over, writes to. A CHECK fails when a message is not
// one printable line, or what must stay ours changes. Each says how much it understood.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ringside::fuzz {

/// The host's end of the shim, a guest that writes into the mailboxes by steps, also while a trap
/// is served, and one that writes all the time.
std::size_t serve_mailboxes(std::span<const std::byte> input);
std::vector<std::vector<std::byte>> mailbox_inputs();

/// Our requests to a gdbstub, and all that it ever answers.
std::size_t talk_to_gdbstub(std::span<const std::byte> input);
std::vector<std::vector<std::byte>> gdbstub_inputs();

/// Our commands to QEMU's monitor, and all that it ever says.
std::size_t talk_to_monitor(std::span<const std::byte> input);
std::vector<std::vector<std::byte>> monitor_inputs();

/// The answers of an attached QEMU's monitor about its guest's memory.
std::size_t read_monitor_memory(std::span<const std::byte> input);
std::vector<std::vector<std::byte>> memory_map_inputs();

/// A file that is said to be a saved guest.
std::size_t read_saved_memory(std::span<const std::byte> input);
std::vector<std::vector<std::byte>> saved_inputs();

}  // namespace ringside::fuzz
