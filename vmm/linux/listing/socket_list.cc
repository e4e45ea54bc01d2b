// In this file, top to bottom: one socket, the tables of sockets.
#include "vmm/linux/listing/socket_list.h"

#include <algorithm>
#include <cstring>

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostSockets = 1 << 20, kMostNamespaces = 1 << 14;
constexpr std::uint64_t kMostBuckets = 1 << 24;  // the kernel's own limit is lower
constexpr std::size_t kUnixBuckets = 512;        // UNIX_HASH_SIZE, and twice that before 5.18
constexpr std::size_t kMostUnixName = 110;       // struct sockaddr_un
constexpr std::uint64_t kInet = 2, kInet6 = 10, kUnix = 1;  // AF_...
constexpr std::uint64_t kTcp = 6, kUdp = 17;                // IPPROTO_...
constexpr std::uint64_t kEstablished = 1, kTimeWait = 6, kClose = 7, kListen = 10,
                        kNewSynReceived = 12;  // include/net/tcp_states.h

constexpr std::array<std::string_view, 14> kTcpStates{
    "",      "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT",
    "CLOSE", "CLOSE_WAIT",  "LAST_ACK", "LISTEN",   "CLOSING",   "SYN_RECV",  "BOUND"};

std::string_view unix_type(std::uint64_t type) {
  switch (type) {
    case 1: return "stream";
    case 2: return "dgram";
    case 5: return "seqpacket";
    default: return "?";
  }
}

}  // namespace

SocketReader::SocketReader(const KernelView& view, Wanted& wanted)
    : view_(view), common_(wanted, "sock_common") {
  family_ = common_.need(wanted, "skc_family");
  state_ = common_.need(wanted, "skc_state");
  port_ = common_.need(wanted, "skc_num");
  peer_port_ = common_.need(wanted, "skc_dport");
  address_ = common_.need(wanted, "skc_rcv_saddr");
  peer_address_ = common_.need(wanted, "skc_daddr");
  net_ = common_.want("skc_net.net");  // CONFIG_NET_NS
  address6_ = common_.want({"skc_v6_rcv_saddr"}, 16);
  peer_address6_ = common_.want({"skc_v6_daddr"}, 16);
  Shape sock(wanted, "sock"), net(wanted, "net"), inode(wanted, "inode"),
      holder(wanted, "socket_alloc");
  protocol_ = sock.need(wanted, "sk_protocol");
  type_ = sock.need(wanted, "sk_type");
  socket_ = sock.need(wanted, "sk_socket");
  uid_ = sock.need(wanted, "sk_uid.val");
  receive_used_ = sock.need(wanted, {"sk_backlog.rmem_alloc.counter", "sk_rmem_alloc.counter"});
  send_used_ = sock.need(wanted, {"sk_wmem_alloc.refs.counter", "sk_wmem_alloc.counter"});
  backlog_ = sock.want("sk_ack_backlog");
  received_ = view.field("tcp_sock", "rcv_nxt");
  copied_ = view.field("tcp_sock", "copied_seq");
  written_ = view.field("tcp_sock", "write_seq");
  acknowledged_ = view.field("tcp_sock", "snd_una");
  deficit_ = view.field("udp_sock", "forward_deficit");
  unix_address_ = view.field("unix_sock", "addr");
  unix_peer_ = view.field("unix_sock", "peer");
  name_length_ = view.field("unix_address", "len");
  name_ = view.field("unix_address", "name");
  net_inum_ = net.want("ns.inum");
  inode_in_socket_ = holder.need(wanted, "vfs_inode");
  inode_number_ = inode.need(wanted, "i_ino");
  first_net_ = wanted.symbol("init_net");
}

std::uint64_t SocketReader::inode_of(GuestVirt sock) const {
  const auto socket = view_.pointer(sock, socket_);
  if (!socket) return 0;
  return view_.value(socket->wrapping_add(inode_in_socket_.offset), inode_number_).value_or(0);
}

void SocketReader::read_inet(const StructCopy& common, SocketRow& row) const {
  const auto address = [&](const Field& four, const std::optional<Field>& six) {
    SocketAddress address;
    address.is_ipv6 = common.number(family_) == kInet6;
    if (address.is_ipv6) {
      const auto bytes = six ? common.bytes(*six, 16) : std::span<const std::byte>();
      std::memcpy(address.bytes.data(), bytes.data(), bytes.size());
    } else {
      const auto word = static_cast<std::uint32_t>(common.number(four));
      std::memcpy(address.bytes.data(), &word, sizeof word);
    }
    return address;
  };
  row.local = address(address_, address6_);
  row.remote = address(peer_address_, peer_address6_);
  row.local.port = static_cast<std::uint16_t>(common.number(port_));
  const auto swapped = static_cast<std::uint16_t>(common.number(peer_port_));
  row.remote.port = static_cast<std::uint16_t>(swapped << 8 | swapped >> 8);
}

void SocketReader::read_tcp_queues(GuestVirt sock, SocketRow& row) const {
  const auto word = [&](const std::optional<Field>& field) {
    return static_cast<std::uint32_t>(view_.value(sock, field).value_or(0));
  };
  if (row.state == kTcpStates[kListen]) {
    row.receive_queue = word(backlog_);
    return;
  }
  const auto waiting = static_cast<std::int32_t>(word(received_) - word(copied_));
  row.receive_queue = static_cast<std::uint64_t>(std::max(waiting, 0));
  row.send_queue = word(written_) - word(acknowledged_);
}

void SocketReader::read_queues(GuestVirt sock, SocketRow& row) const {
  const auto used = [&](const std::optional<Field>& field) {
    return static_cast<std::int64_t>(view_.value(sock, field).value_or(0));
  };
  const std::int64_t received = used(receive_used_) - used(deficit_);
  row.receive_queue = static_cast<std::uint64_t>(std::max<std::int64_t>(received, 0));
  // The socket itself counts as one.
  row.send_queue = static_cast<std::uint64_t>(std::max<std::int64_t>(used(send_used_) - 1, 0));
}

void SocketReader::read_unix(GuestVirt sock, SocketRow& row) const {
  row.protocol = "unix";
  row.type = unix_type(view_.value(sock, type_).value_or(0));
  const auto state = view_.value(sock, state_);
  row.state = state == kListen ? "LISTEN" : state == kEstablished ? "CONNECTED" : "";
  if (const auto peer = view_.pointer(sock, unix_peer_)) row.peer_inode = inode_of(*peer);
  const auto address = view_.pointer(sock, unix_address_);
  if (!address || !name_) return;
  // Its length has two bytes of the family in it, and the NUL of a path.
  const std::uint64_t length = view_.value(address, name_length_).value_or(0);
  std::string name(std::min<std::uint64_t>(length > 2 ? length - 2 : 0, kMostUnixName - 2), '\0');
  const GuestVirt at = address->wrapping_add(name_->offset).wrapping_add(2);
  if (!view_.reader().read(at, std::as_writable_bytes(std::span(name)))) return;
  if (!name.empty() && name.front() == '\0')
    name.front() = '@';
  else
    name.resize(std::min(name.find('\0'), name.size()));
  row.path = std::move(name);
}

std::optional<SocketRow> SocketReader::read(GuestVirt sock) const {
  const auto common = common_.copy(sock);
  if (!common) return std::nullopt;
  SocketRow row;
  row.socket = sock;
  const std::uint64_t family = common->number(family_), state = common->number(state_);
  const auto net = common->pointer(net_);
  row.name_space = net ? view_.value(net, net_inum_).value_or(0) : 0;
  row.is_first_name_space = !net || *net == first_net_;
  // These two are no struct sock beyond its first part.
  const bool is_small = state == kTimeWait || state == kNewSynReceived;
  if (family == kUnix) {
    read_unix(sock, row);
    read_queues(sock, row);
  } else if (family == kInet || family == kInet6) {
    const std::uint64_t protocol = is_small ? kTcp : view_.value(sock, protocol_).value_or(0);
    if ((protocol != kTcp && protocol != kUdp) || state >= kTcpStates.size()) return std::nullopt;
    const bool is_udp = protocol == kUdp;
    row.protocol = is_udp ? (family == kInet6 ? "udp6" : "udp") : family == kInet6 ? "tcp6" : "tcp";
    row.state = is_udp && state == kClose ? "" : kTcpStates[state];
    read_inet(*common, row);
    if (is_udp)
      read_queues(sock, row);
    else if (!is_small)
      read_tcp_queues(sock, row);
  } else {
    return std::nullopt;
  }
  if (is_small) return row;
  row.inode = inode_of(sock);
  row.uid = static_cast<std::uint32_t>(view_.value(sock, uid_).value_or(0));
  return row;
}

/// The kernel's tables of sockets. Each is an array of buckets that begin with a chain.
class SocketTables {
 public:
  SocketTables(const KernelView& view, Wanted& wanted);
  Listing<SocketRow> list();

 private:
  using Address = std::optional<GuestVirt>;
  struct Buckets {
    Address first;
    std::uint64_t count = 0, size = 0;  // size: bytes of a bucket
    std::uint32_t chain = 0;            // where in it the chain begins
    std::uint32_t link = 0;             // where in a struct sock the links are
  };

  void walk(const Buckets& buckets, std::string_view protocol);
  void walk_tcp(GuestVirt hash_info);
  void walk_udp(GuestVirt table);
  void walk_unix(Address buckets);
  std::vector<GuestVirt> name_spaces();
  void note(std::string_view table, ListEnd end);

  const KernelView& view_;
  SocketReader reader_;
  GuestVirt nets_, tcp_, udp_;
  Field net_link_, node_, nulls_node_, ehash_, ehash_mask_;
  std::optional<Field> own_tcp_, own_udp_, own_unix_, listening_, listening2_, listening2_mask_,
      listen_chain_, listen_nulls_, udp_hash_, udp_mask_, udp_head_;
  std::uint64_t ehash_bytes_, listen_bytes_, udp_bytes_;
  std::uint32_t listening_count_;
  Walk walk_;
  Listing<SocketRow> found_;
};

SocketTables::SocketTables(const KernelView& view, Wanted& wanted)
    : view_(view), reader_(view, wanted), walk_(view, kMostSockets) {
  nets_ = wanted.symbol("net_namespace_list");
  tcp_ = wanted.symbol("tcp_hashinfo");
  udp_ = wanted.symbol("udp_table");
  Shape net(wanted, "net"), common(wanted, "sock_common"), info(wanted, "inet_hashinfo"),
      udp(wanted, "udp_table");
  net_link_ = net.need(wanted, "list");
  own_tcp_ = view.field("net", {"ipv4.tcp_death_row.hashinfo"});
  own_udp_ = view.field("net", "ipv4.udp_table");
  own_unix_ = view.field("net", "unx.table.buckets");
  node_ = common.need(wanted, "skc_node");
  nulls_node_ = common.need(wanted, "skc_nulls_node");
  ehash_ = info.need(wanted, "ehash");
  ehash_mask_ = info.need(wanted, "ehash_mask");
  listening_ = info.want("listening_hash");
  listening_count_ = view.length_of("inet_hashinfo", "listening_hash").value_or(0);
  listening2_ = info.want("lhash2");
  listening2_mask_ = info.want("lhash2_mask");
  listen_chain_ = view.field("inet_listen_hashbucket", {"nulls_head", "head"});
  listen_bytes_ = wanted.size_of("inet_listen_hashbucket");
  ehash_bytes_ = wanted.size_of("inet_ehash_bucket");
  udp_hash_ = udp.need(wanted, "hash");
  udp_mask_ = udp.need(wanted, "mask");
  udp_head_ = view.field("udp_hslot", {"head", "nulls_head"});
  udp_bytes_ = wanted.size_of("udp_hslot");
}

void SocketTables::note(std::string_view table, ListEnd end) {
  const std::string list = "the table of " + std::string(table) + " sockets";
  const auto note = cut_note(list, end);
  if (note && std::ranges::find(found_.notes, *note) == found_.notes.end()) {
    found_.notes.push_back(*note);
  }
}

void SocketTables::walk(const Buckets& buckets, std::string_view protocol) {
  constexpr std::uint64_t kPiece = 64 << 10;
  if (!buckets.first || buckets.size == 0 || buckets.count > kMostBuckets) {
    return note(protocol, ListEnd::Unreadable);
  }
  const std::uint64_t at_once = std::max<std::uint64_t>(kPiece / buckets.size, 1);
  for (std::uint64_t done = 0; done < buckets.count; done += at_once) {
    std::vector<std::byte> piece(std::min(at_once, buckets.count - done) * buckets.size);
    if (!view_.reader().read(buckets.first->wrapping_add(done * buckets.size), piece)) {
      return note(protocol, ListEnd::Unreadable);
    }
    for (std::size_t at = buckets.chain; at + 8 <= piece.size(); at += buckets.size) {
      std::uint64_t first = 0;
      std::memcpy(&first, piece.data() + at, sizeof first);
      const ListEnd end = walk_.chain(first, [&](GuestVirt node) {
        auto row = reader_.read(node.wrapping_sub(buckets.link));
        if (row) found_.rows.push_back(std::move(*row));
        return true;
      });
      if (end != ListEnd::Whole) note(protocol, end);
    }
  }
}

void SocketTables::walk_tcp(GuestVirt info) {
  const std::uint64_t mask = view_.value(info, ehash_mask_).value_or(0);
  walk({view_.pointer(info, ehash_), mask + 1, ehash_bytes_, 0, nulls_node_.offset}, "TCP");
  if (!listen_chain_) return note("TCP", ListEnd::Unreadable);
  if (listening_) {
    return walk({info.wrapping_add(listening_->offset), listening_count_, listen_bytes_,
                 listen_chain_->offset, nulls_node_.offset},
                "TCP");
  }
  const std::uint64_t mask2 = view_.value(info, listening2_mask_).value_or(0);
  walk({view_.pointer(info, listening2_), mask2 + 1, listen_bytes_, listen_chain_->offset,
        nulls_node_.offset},
       "TCP");
}

void SocketTables::walk_udp(GuestVirt table) {
  const std::uint64_t mask = view_.value(table, udp_mask_).value_or(0);
  if (!udp_head_) return note("UDP", ListEnd::Unreadable);
  walk({view_.pointer(table, udp_hash_), mask + 1, udp_bytes_, udp_head_->offset, node_.offset},
       "UDP");
}

void SocketTables::walk_unix(Address buckets) {
  walk({buckets, kUnixBuckets, 8, 0, node_.offset}, "unix");
}

std::vector<GuestVirt> SocketTables::name_spaces() {
  std::vector<GuestVirt> nets;
  Walk walk(view_, kMostNamespaces);
  const ListEnd end = walk.circular(nets_, [&](GuestVirt node) {
    nets.push_back(node.wrapping_sub(net_link_.offset));
    return true;
  });
  if (const auto note = cut_note("the list of network namespaces", end)) {
    found_.notes.push_back(*note);
  }
  return nets;
}

Listing<SocketRow> SocketTables::list() {
  walk_tcp(tcp_);
  walk_udp(udp_);
  for (const GuestVirt net : name_spaces()) {
    const auto tcp = view_.pointer(net, own_tcp_), udp = view_.pointer(net, own_udp_);
    if (tcp && *tcp != tcp_) walk_tcp(*tcp);
    if (udp && *udp != udp_) walk_udp(*udp);
    if (own_unix_) walk_unix(view_.pointer(net, own_unix_));
  }
  if (!own_unix_) walk_unix(view_.symbol("unix_socket_table"));
  return std::move(found_);
}

Result<Listing<SocketRow>> list_sockets(const ListedGuest& guest) {
  return read_until_whole<SocketRow>(guest, [&]() -> Result<Listing<SocketRow>> {
    Wanted wanted(guest.view);
    SocketTables tables(guest.view, wanted);
    TRY(wanted.check("sockets"));
    return tables.list();
  });
}

}  // namespace ringside::guest_linux
