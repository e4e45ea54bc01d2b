// The record that pcap() makes of a packet: a header of facts, then as many bytes as pcapsize says,
// of which the packet has the first ones. The engine writes it, the consumer reads it.
// Link types are numbers of the capture file format (LINKTYPE_ in pcapng's registry,
// https://www.tcpdump.org/linktypes.html); dif/d/library/pcap.d has names for them.
// Fire context: yes.
#pragma once

#include <array>
#include <cstdint>

#include "vmm/base/packet.h"

namespace ringside::dif {

struct PacketHeader {
  std::int64_t walltimestamp = 0;  // ns since the epoch, of the firing
  std::uint32_t captured = 0;      // bytes of it that were recorded
  std::uint32_t length = 0;        // bytes of it in all
  std::int32_t pid = 0;            // of the process that ran
  std::uint32_t unused = 0;
  std::array<char, 16> process{};  // its name; a NUL where it ends
  std::array<char, kDeviceNameBytes> device{};
};
static_assert(sizeof(PacketHeader) == 56);

inline constexpr std::uint64_t kMostLinkType = UINT16_MAX;
inline constexpr std::uint64_t kLinkTypeOfIp = 101;  // LINKTYPE_RAW: it begins at the IP header

/// Where a packet of this link type begins. A packet that is to begin at its link header but has
/// none (on its way out, or of a tunnel) begins at its IP header, and is recorded as kLinkTypeOfIp.
constexpr PacketPart part_of_packet(std::uint64_t link_type) {
  switch (link_type) {
    case 1:    // LINKTYPE_ETHERNET
    case 9:    // LINKTYPE_PPP
    case 105:  // LINKTYPE_IEEE802_11
    case 242:  // LINKTYPE_IPOIB
      return PacketPart::Link;
    case kLinkTypeOfIp: return PacketPart::Network;
    default: return PacketPart::Data;
  }
}

}  // namespace ringside::dif
