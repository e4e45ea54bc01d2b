// Network packets in a Linux guest: the bytes of a struct sk_buff, in one piece. The kernel has
// them in the linear part (head, data, len, data_len), in pages (skb_shared_info's frags), and in
// further buffers (its frag_list); include/linux/skbuff.h says so. No offset is built in: members
// are found by name, in each form that they have had since 4.9. Used by firings. Does not: look
// into the packet, or lock anything. The guest's word is not trusted: lengths are bounded by the
// buffer that they are of, and counts by constants. Fire context: yes, but for the constructors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/packet.h"
#include "vmm/linux/page_array.h"
#include "vmm/linux/symbol_table.h"

namespace ringside::guest_linux {

/// Where the kernel keeps what packets are made of, by its types and symbols.
struct PacketLayout {
  /// Empty where something is missing, or where this is a kernel with 32-bit pointers.
  static std::optional<PacketLayout> from(const TypeGraph& types, const SymbolTable& symbols);

  // Of struct sk_buff; head and data are pointers, end an offset from head, as are the headers.
  std::uint32_t length = 0, data_length = 0, head = 0, data = 0, end = 0;
  std::uint32_t link_header = 0, network_header = 0, device = 0, next = 0;
  std::uint32_t device_name = 0;                      // of struct net_device
  std::uint32_t pages = 0, page_count = 0, more = 0;  // of struct skb_shared_info
  std::uint32_t most_pages = 0;                       // elements of its array
  std::uint32_t piece_bytes = 0;                      // of one element:
  std::uint32_t piece_page = 0, piece_at = 0, piece_length = 0;
  PageArray page_array;
  std::optional<GuestVirt> direct_map;  // the variable page_offset_base; empty: it is fixed
};

class LinuxPackets {
 public:
  /// Without types every copy() is a fault.
  LinuxPackets() = default;
  LinuxPackets(const TypeGraph& types, const SymbolTable& symbols)
      : at_(PacketLayout::from(types, symbols)) {}

  /// Copies the packet of the struct sk_buff at `skb`, as much of it as fits into `out`; the rest
  /// of `out` is left as it was. Less than both where the kernel has the rest in memory of a
  /// device, and beyond 64 buffers of a frag_list, or 1024 pages in all. Fault: memory on the way
  /// that is not mapped, a length or header that does not fit its buffer, more pages than the array
  /// has, a page that is none; types without one of the members.
  Result<CopiedPacket, Fault> copy(const GuestReader& kernel, GuestVirt skb, PacketPart part,
                                   std::span<std::byte> out) const;

 private:
  class Copy;

  std::optional<PacketLayout> at_;
};

}  // namespace ringside::guest_linux
