// A network packet that was copied out of a guest: what the firing asks for, and what it learns
// besides the bytes. vmm/linux/packets.h copies it, DIF and the consumer use it.
// Fire context: yes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ringside {

/// Where in the guest's buffer the packet begins.
enum class PacketPart : std::uint8_t {
  Data,     // where the guest's own code stands in it
  Link,     // at its link header; at its network header where it has none (yet)
  Network,  // at its network header; where the guest's code stands if that is not known yet
};

inline constexpr std::size_t kDeviceNameBytes = 16;  // IFNAMSIZ

/// All of it is the guest's word, so it may be a lie.
struct CopiedPacket {
  std::size_t captured = 0;  // bytes that were copied
  std::uint32_t length = 0;  // bytes that the packet has from there on; more if it was cut
  bool has_link = false;     // of PacketPart::Link: it begins at a link header
  std::array<char, kDeviceNameBytes> device{};  // its network device's name; a NUL where it ends
};

}  // namespace ringside
