// In this file, top to bottom: the layout, one buffer, where the packet begins, the whole packet.
#include "vmm/linux/packets.h"

#include <algorithm>

#include "vmm/arch/arch.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {
namespace {

/// __PAGE_OFFSET without CONFIG_DYNAMIC_MEMORY_LAYOUT (Documentation/arch/x86/x86_64/mm.rst).
constexpr GuestVirt kFixedDirectMap{0xffff'8880'0000'0000};
constexpr std::uint16_t kNoHeader = 0xffff;  // of mac_header, until it is known
constexpr std::uint64_t kMostPages = 256;    // MAX_SKB_FRAGS is 17 to 45
constexpr std::uint64_t kMostPieces = 1024;  // pages of all buffers
constexpr unsigned kMostBuffers = 64;        // of a frag_list
constexpr std::uint64_t kDeviceMemory = 1;   // NET_IOV: netmem_ref is no struct page

/// The three names that an element of skb_shared_info.frags has for its parts.
struct PieceNames {
  std::string_view page, at, length;
};
constexpr PieceNames kPieceNames[] = {
    {"netmem", "offset", "len"},         // since 6.9
    {"bv_page", "bv_offset", "bv_len"},  // since 5.4
    {"page", "page_offset", "size"},
};

tl::unexpected<Fault> implausible(GuestVirt at) {
  return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, at.raw()});
}

bool find_pieces(const TypeGraph& types, PacketLayout& layout) {
  const auto shared = types.find(TypeKind::Struct, "skb_shared_info");
  const auto pages = shared ? types.find_member(*shared, "frags") : std::nullopt;
  if (!pages) return false;
  const Type& array = types[types.resolve(pages->type)];
  if (array.kind != TypeKind::Array || array.count == 0 || array.count > kMostPages) return false;
  layout.pages = static_cast<std::uint32_t>(pages->bit_offset / 8);
  layout.most_pages = array.count;
  layout.piece_bytes = static_cast<std::uint32_t>(types.size_of(array.target));
  for (const PieceNames& names : kPieceNames) {
    const auto page = types.find_member(types.resolve(array.target), names.page);
    const auto at = types.find_member(types.resolve(array.target), names.at);
    const auto length = types.find_member(types.resolve(array.target), names.length);
    if (!page || !at || !length) continue;
    if (types.size_of(page->type) != sizeof(std::uint64_t)) return false;
    if (types.size_of(at->type) != 4 || types.size_of(length->type) != 4) return false;
    layout.piece_page = static_cast<std::uint32_t>(page->bit_offset / 8);
    layout.piece_at = static_cast<std::uint32_t>(at->bit_offset / 8);
    layout.piece_length = static_cast<std::uint32_t>(length->bit_offset / 8);
    return true;
  }
  return false;
}

}  // namespace

std::optional<PacketLayout> PacketLayout::from(const TypeGraph& types, const SymbolTable& symbols) {
  PacketLayout layout;
  bool all = find_pieces(types, layout);
  const auto take = [&](std::uint32_t& offset, std::string_view structure, std::string_view member,
                        std::uint32_t bytes) {
    const auto found = number_of(types, structure, {member});
    all = all && found && found->bytes == bytes;
    offset = found ? found->offset : 0;
  };
  const auto take_place = [&](std::uint32_t& offset, std::string_view structure,
                              std::string_view member) {
    const auto found = offset_of(types, structure, {member});
    all = all && found;
    offset = found.value_or(0);
  };
  take(layout.length, "sk_buff", "len", 4);
  take(layout.data_length, "sk_buff", "data_len", 4);
  take(layout.end, "sk_buff", "end", 4);
  take(layout.link_header, "sk_buff", "mac_header", 2);
  take(layout.network_header, "sk_buff", "network_header", 2);
  take(layout.page_count, "skb_shared_info", "nr_frags", 1);
  take_place(layout.head, "sk_buff", "head");
  take_place(layout.data, "sk_buff", "data");
  take_place(layout.device, "sk_buff", "dev");
  take_place(layout.next, "sk_buff", "next");
  take_place(layout.more, "skb_shared_info", "frag_list");
  take_place(layout.device_name, "net_device", "name");
  const auto pages = PageArray::from(types, symbols);
  if (!all || !pages) return std::nullopt;
  layout.page_array = *pages;
  const Symbol* const map = symbols.find("page_offset_base", "vmlinux");
  if (map != nullptr) layout.direct_map = map->address;
  return layout;
}

/// One packet's copy, which grows.
class LinuxPackets::Copy {
 public:
  Copy(const PacketLayout& at, const GuestReader& kernel, std::span<std::byte> out)
      : at_(at), kernel_(kernel), out_(out) {}

  /// The linear part of a buffer: [begin, end), the header data before it, and what follows it.
  struct Linear {
    GuestVirt head, data, end, room_end;
    std::uint64_t length = 0;  // of the buffer in all, from `data` on
    bool has_more = false;     // beyond the linear part
  };
  Result<Linear, Fault> linear(GuestVirt skb) const;
  Result<GuestVirt, Fault> begin(GuestVirt skb, const Linear& linear, PacketPart part,
                                 CopiedPacket& packet) const;
  /// The linear part from `begin` on, then the pages.
  Result<void, Fault> buffer(const Linear& linear, GuestVirt begin);
  Result<void, Fault> further_buffers(const Linear& first);
  Result<void, Fault> device(GuestVirt skb, CopiedPacket& packet) const;
  std::size_t done() const { return done_; }

 private:
  template <class T>
  Result<T, Fault> field(GuestVirt object, std::uint64_t offset) const {
    return load_field<T>(kernel_, object, offset);
  }
  bool is_over() const { return is_cut_ || done_ == out_.size(); }
  Result<void, Fault> append(GuestVirt at, std::uint64_t length);
  Result<void, Fault> pages(GuestVirt shared);
  Result<std::optional<GuestVirt>, Fault> contents(GuestVirt page);

  const PacketLayout& at_;
  const GuestReader& kernel_;
  const std::span<std::byte> out_;
  struct Bases {
    GuestVirt array, map;
  };
  std::optional<Bases> bases_;  // of struct page and of memory, once they were needed
  std::size_t done_ = 0;
  std::uint64_t pieces_ = 0;
  bool is_cut_ = false;  // the rest is left out
};

Result<LinuxPackets::Copy::Linear, Fault> LinuxPackets::Copy::linear(GuestVirt skb) const {
  const GuestVirt head(TRY(field<std::uint64_t>(skb, at_.head)));
  const GuestVirt data(TRY(field<std::uint64_t>(skb, at_.data)));
  const auto room = TRY(field<std::uint32_t>(skb, at_.end));
  const auto length = TRY(field<std::uint32_t>(skb, at_.length));
  const auto beyond = TRY(field<std::uint32_t>(skb, at_.data_length));
  const auto room_end = head.checked_add(room);
  if (!room_end || data < head || data > *room_end || beyond > length) return implausible(skb);
  const auto end = data.checked_add(length - beyond);
  if (!end || *end > *room_end) return implausible(skb);
  return Linear{head, data, *end, *room_end, length, beyond != 0};
}

/// The link header of a device that has none (a tunnel) is where the network header is.
Result<GuestVirt, Fault> LinuxPackets::Copy::begin(GuestVirt skb, const Linear& linear,
                                                   PacketPart part, CopiedPacket& packet) const {
  if (part == PacketPart::Data) return linear.data;
  const auto link = TRY(field<std::uint16_t>(skb, at_.link_header));
  const auto network = TRY(field<std::uint16_t>(skb, at_.network_header));
  packet.has_link = part == PacketPart::Link && link != kNoHeader && link != network;
  if (!packet.has_link && network == 0) return linear.data;
  const GuestVirt begin = linear.head.wrapping_add(packet.has_link ? link : network);
  if (begin > linear.end) return implausible(skb);
  return begin;
}

Result<void, Fault> LinuxPackets::Copy::append(GuestVirt at, std::uint64_t length) {
  const auto part = out_.subspan(done_, std::min<std::uint64_t>(length, out_.size() - done_));
  if (part.empty()) return {};
  TRY(kernel_.read(at, part));
  done_ += part.size();
  return {};
}

Result<void, Fault> LinuxPackets::Copy::buffer(const Linear& linear, GuestVirt begin) {
  TRY(append(begin, linear.end.offset_from(begin)));
  if (linear.has_more && !is_over()) TRY(pages(linear.room_end));
  return {};
}

Result<void, Fault> LinuxPackets::Copy::pages(GuestVirt shared) {
  const auto count = TRY(field<std::uint8_t>(shared, at_.page_count));
  if (count > at_.most_pages) return implausible(shared);
  for (unsigned i = 0; i < count && !is_over(); ++i) {
    const GuestVirt piece = shared.wrapping_add(at_.pages + std::uint64_t{i} * at_.piece_bytes);
    const auto page = TRY(field<std::uint64_t>(piece, at_.piece_page));
    const auto from = TRY(field<std::uint32_t>(piece, at_.piece_at));
    const auto length = TRY(field<std::uint32_t>(piece, at_.piece_length));
    const auto memory = TRY(contents(GuestVirt(page)));
    is_cut_ = !memory || ++pieces_ > kMostPieces;
    if (!is_cut_) TRY(append(memory->wrapping_add(from), length));
  }
  return {};
}

/// Where the kernel has the memory of a struct page; empty: a device has it.
Result<std::optional<GuestVirt>, Fault> LinuxPackets::Copy::contents(GuestVirt page) {
  if ((page.raw() & kDeviceMemory) != 0) return std::nullopt;
  if (!bases_) {
    const GuestVirt array = TRY(at_.page_array.begin(kernel_));
    GuestVirt map = kFixedDirectMap;
    if (at_.direct_map) map = GuestVirt(TRY(load<std::uint64_t>(kernel_, *at_.direct_map)));
    bases_ = Bases{array, map};
  }
  const auto number = at_.page_array.number_of(page, bases_->array);
  if (!number) return implausible(page);
  const auto at = bases_->map.checked_add(*number * arch::kPageSize);
  if (!at) return implausible(page);
  return at;
}

/// The buffers of frag_list, one after the other. Theirs are not looked for: the kernel makes none.
Result<void, Fault> LinuxPackets::Copy::further_buffers(const Linear& first) {
  if (!first.has_more || is_over()) return {};
  GuestVirt next(TRY(field<std::uint64_t>(first.room_end, at_.more)));
  for (unsigned n = 0; n < kMostBuffers && next.raw() != 0 && !is_over(); ++n) {
    const Linear part = TRY(linear(next));
    TRY(buffer(part, part.data));
    next = GuestVirt(TRY(field<std::uint64_t>(next, at_.next)));
  }
  return {};
}

/// The member's room has another use while a socket has the packet, so it may lead nowhere.
Result<void, Fault> LinuxPackets::Copy::device(GuestVirt skb, CopiedPacket& packet) const {
  const auto device = TRY(field<std::uint64_t>(skb, at_.device));
  const auto name = field<decltype(packet.device)>(GuestVirt(device), at_.device_name);
  if (device != 0 && name) packet.device = *name;
  return {};
}

Result<CopiedPacket, Fault> LinuxPackets::copy(const GuestReader& kernel, GuestVirt skb,
                                               PacketPart part, std::span<std::byte> out) const {
  if (!at_) return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
  Copy copy(*at_, kernel, out);
  CopiedPacket packet;
  const Copy::Linear first = TRY(copy.linear(skb));
  const GuestVirt begin = TRY(copy.begin(skb, first, part, packet));
  // Headers before `data` count, too, if it begins there.
  const std::uint64_t in_linear = first.end.offset_from(begin);
  const std::uint64_t beyond = first.length - first.end.offset_from(first.data);
  packet.length =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(in_linear + beyond, UINT32_MAX));
  TRY(copy.buffer(first, begin));
  TRY(copy.further_buffers(first));
  packet.captured = std::min<std::size_t>(copy.done(), packet.length);
  TRY(copy.device(skb, packet));
  return packet;
}

}  // namespace ringside::guest_linux
