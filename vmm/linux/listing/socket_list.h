// The TCP, UDP and unix sockets of a guest, of all its network namespaces.
// Source: the hash tables of the kernel: tcp_hashinfo (ehash; lhash2, or listening_hash up
// to 5.18), or those that a namespace has for itself since 6.1 (ipv4.tcp_death_row.hashinfo);
// udp_table, the same (ipv4.udp_table, 6.2); unix_socket_table, or a table in each namespace
// since 5.18 (unx.table.buckets, struct unix_sock). include/net/inet_hashtables.h, udp.h,
// af_unix.h, sock.h. States and queues as /proc/net/tcp, udp and unix have them
// (net/ipv4/tcp_ipv4.c, udp.c, net/unix/af_unix.c). Used by `netstat`, and for the names of sockets
// by `lsof`. Hostile input: bounded; raw bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/linux/listing/listing.h"

namespace ringside::guest_linux {

/// An address of IPv4 (4 bytes) or IPv6 (16 bytes) in network order, with its port.
struct SocketAddress {
  bool is_ipv6 = false;
  std::array<std::uint8_t, 16> bytes{};
  std::uint16_t port = 0;
};

struct SocketRow {
  GuestVirt socket;           // struct sock
  std::string_view protocol;  // "tcp", "tcp6", "udp", "udp6", "unix"
  std::string_view type;      // of unix sockets: "stream", "dgram", "seqpacket"
  SocketAddress local, remote;
  std::string path;        // of unix sockets; "@..." for one without a file; empty: it has no name
  std::string_view state;  // "LISTEN", "ESTABLISHED"...; "" for udp without a peer
  std::uint64_t receive_queue = 0, send_queue = 0;  // bytes; LISTEN: connections not accepted yet
  std::optional<std::uint32_t> uid;                 // empty: it belongs to no process any more
  std::uint64_t inode = 0;                          // 0: the same
  std::uint64_t peer_inode = 0;                     // of unix sockets that are connected
  std::uint64_t name_space = 0;                     // the inode of its network namespace
  bool is_first_name_space = true;
};

/// One socket by the address of its struct sock.
class SocketReader {
 public:
  /// Both must outlive it.
  SocketReader(const KernelView& view, Wanted& wanted);

  /// Empty for a socket of another kind, and for one that cannot be read.
  std::optional<SocketRow> read(GuestVirt sock) const;

 private:
  friend class SocketTables;
  void read_inet(const StructCopy& common, SocketRow& row) const;
  void read_queues(GuestVirt sock, SocketRow& row) const;
  void read_tcp_queues(GuestVirt sock, SocketRow& row) const;
  void read_unix(GuestVirt sock, SocketRow& row) const;
  std::uint64_t inode_of(GuestVirt sock) const;

  const KernelView& view_;
  Shape common_;
  Field family_, state_, port_, peer_port_, address_, peer_address_;
  std::optional<Field> net_, address6_, peer_address6_;
  Field protocol_, type_, socket_, uid_, receive_used_, send_used_;
  std::optional<Field> backlog_, received_, copied_, written_, acknowledged_, deficit_;
  std::optional<Field> unix_address_, unix_peer_, name_length_, name_;
  std::optional<Field> net_inum_;
  Field inode_in_socket_, inode_number_;
  GuestVirt first_net_;
};

/// In no order of meaning: TCP, UDP, unix.
Result<Listing<SocketRow>> list_sockets(const ListedGuest& guest);

}  // namespace ringside::guest_linux
