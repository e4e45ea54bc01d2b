// The tables of ip, tcp and udp, as process_tables.cc has those of processes. Linux 5.11 to 6.12:
// before that tcp_reset() was not given the packet.
#include "providers/stable/stable_tables.h"

namespace ringside::providers {
namespace {

using enum PlaceKind;

// ip, tcp and udp: of each packet, where the stack has it whole. Headers are where the packet's
// offsets say; what is written "arg0 + 0" is passed under another structure's type.

constexpr std::string_view kPacketType = "struct sk_buff *", kSocketType = "struct sock *",
                           kIpType = "struct iphdr *", kIp6Type = "struct ipv6hdr *",
                           kTcpType = "struct tcphdr *", kUdpType = "struct udphdr *";
constexpr std::string_view kNetwork = "packet->head + packet->network_header",
                           kTransport = "packet->head + packet->transport_header";

constexpr NativeValue kIpSent[] = {{kPacketType, "packet", "arg2"},
                                   {kSocketType, "socket", "arg1"},
                                   {"struct net_device *", "device", "packet->dev"},
                                   {kIpType, "ip", kNetwork},
                                   {kIp6Type, "ip6", "0"}};
constexpr NativeValue kIp6Sent[] = {{kPacketType, "packet", "arg2"},
                                    {kSocketType, "socket", "arg1"},
                                    {"struct net_device *", "device", "packet->dev"},
                                    {kIpType, "ip", "0"},
                                    {kIp6Type, "ip6", kNetwork}};
constexpr NativeValue kIpReceived[] = {{kPacketType, "packet", "arg0"},
                                       {kSocketType, "socket", "packet->sk"},
                                       {"struct net_device *", "device", "packet->dev"},
                                       {kIpType, "ip", kNetwork},
                                       {kIp6Type, "ip6", "0"}};
constexpr NativeValue kIp6Received[] = {{kPacketType, "packet", "arg0"},
                                        {kSocketType, "socket", "packet->sk"},
                                        {"struct net_device *", "device", "packet->dev"},
                                        {kIpType, "ip", "0"},
                                        {kIp6Type, "ip6", kNetwork}};
constexpr StableArgument kIpArguments[] = {{"pktinfo_t *", 0},  {"csinfo_t *", 1},
                                           {"ipinfo_t *", 0},   {"ifinfo_t *", 2},
                                           {"ipv4info_t *", 3}, {"ipv6info_t *", 4}};

// Of what is dropped on its way in, with the kernel's reason, since 5.18; the protocol is ETH_P_IP
// or ETH_P_IPV6 as it lies in the packet.
constexpr NativeValue kIpDropped[] = {{kPacketType, "packet", "arg0"},
                                      {kSocketType, "socket", "packet->sk"},
                                      {"struct net_device *", "device", "packet->dev"},
                                      {kIpType, "ip", kNetwork},
                                      {kIp6Type, "ip6", "0"},
                                      {"int", "reason", "arg2"}};
constexpr NativeValue kIp6Dropped[] = {{kPacketType, "packet", "arg0"},
                                       {kSocketType, "socket", "packet->sk"},
                                       {"struct net_device *", "device", "packet->dev"},
                                       {kIpType, "ip", "0"},
                                       {kIp6Type, "ip6", kNetwork},
                                       {"int", "reason", "arg2"}};

constexpr StableProbe kIp[] = {
    {"send", Entry, "ip_finish_output", kIpSent, kIpArguments},
    {"send", Entry, "ip6_finish_output", kIp6Sent, kIpArguments},
    {"receive", Entry, "ip_local_deliver", kIpReceived, kIpArguments},
    {"receive", Entry, "ip6_input", kIp6Received, kIpArguments},
    {"drop-in", Tracepoint, "kfree_skb", kIpDropped, kIpArguments,
     "packet->protocol == 8 && reason == SKB_DROP_REASON_IP_CSUM"},
    {"drop-in", Tracepoint, "kfree_skb", kIpDropped, kIpArguments,
     "packet->protocol == 8 && reason == SKB_DROP_REASON_IP_INHDR"},
    {"drop-in", Tracepoint, "kfree_skb", kIpDropped, kIpArguments,
     "packet->protocol == 8 && reason == SKB_DROP_REASON_IP_NOPROTO"},
    {"drop-in", Tracepoint, "kfree_skb", kIpDropped, kIpArguments,
     "packet->protocol == 8 && reason == SKB_DROP_REASON_IP_RPFILTER"},
    {"drop-in", Tracepoint, "kfree_skb", kIpDropped, kIpArguments,
     "packet->protocol == 8 && reason == SKB_DROP_REASON_UNICAST_IN_L2_MULTICAST"},
    {"drop-in", Tracepoint, "kfree_skb", kIp6Dropped, kIpArguments,
     "packet->protocol == 56710 && reason == SKB_DROP_REASON_IP_INHDR"},
    {"drop-in", Tracepoint, "kfree_skb", kIp6Dropped, kIpArguments,
     "packet->protocol == 56710 && reason == SKB_DROP_REASON_IP_NOPROTO"},
    {"drop-out", Nowhere,
     "Linux has no reason that tells packets on their way out; nearest: sdt:skb::kfree_skb"},
};

constexpr NativeValue kTcpSent[] = {{kPacketType, "packet", "arg2"},
                                    {kSocketType, "socket", "arg1"},
                                    {kTcpType, "tcp", kTransport},
                                    {kIpType, "ip", kNetwork},
                                    {"struct inet_connection_sock *", "connection", "arg1 + 0"}};
constexpr NativeValue kTcp6Sent[] = {{kPacketType, "packet", "arg2"},
                                     {kSocketType, "socket", "arg1"},
                                     {kTcpType, "tcp", kTransport},
                                     {kIp6Type, "ip6", kNetwork},
                                     {"struct inet_connection_sock *", "connection", "arg1 + 0"}};
constexpr NativeValue kTcpReceived[] = {{kPacketType, "packet", "arg1"},
                                        {kSocketType, "socket", "arg0"},
                                        {kTcpType, "tcp", kTransport}};
constexpr NativeValue kTcpWaits[] = {{kPacketType, "packet", "arg1"},
                                     {kSocketType, "socket", "arg0 + 0"},
                                     {kTcpType, "tcp", kTransport}};
constexpr NativeValue kTcpAccepted[] = {{kPacketType, "packet", "arg2"},
                                        {kSocketType, "socket", "arg0"},
                                        {kTcpType, "tcp", kTransport},
                                        {"int", "event", "arg1"}};
constexpr StableArgument kTcpArguments[] = {{"pktinfo_t *", 0},
                                            {"csinfo_t *", 1},
                                            {"ipinfo_t *", 0},
                                            {"tcpsinfo_t *", 1},
                                            {"tcpinfo_t *", 2}};

constexpr NativeValue kTcpChanges[] = {{kSocketType, "socket", "arg0"},
                                       {"int", "old", "socket->__sk_common.skc_state"}};
constexpr StartPlace kSetsState = {.natives = kTcpChanges};
constexpr NativeValue kTcpChanged[] = {
    {"unsigned long", "none", "0"}, {kSocketType, "socket", "start0"}, {"int", "old", "start1"}};
constexpr StableArgument kTcpChangedArguments[] = {{"unsigned long", 0}, {"csinfo_t *", 1},
                                                   {"unsigned long", 0}, {"tcpsinfo_t *", 1},
                                                   {"unsigned long", 0}, {"tcplsinfo_t *", 2}};

// In SYN_SENT (2) a SYN that was not sent before. A reset without a socket answers what nobody
// listens for; one with a socket answers a segment that was received by that socket already.
constexpr StableProbe kTcp[] = {
    {"send", Entry, "ip_finish_output", kTcpSent, kTcpArguments,
     "socket != 0 && ip->protocol == 6"},
    {"send", Entry, "ip6_finish_output", kTcp6Sent, kTcpArguments,
     "socket != 0 && ip6->nexthdr == 6"},
    {"connect-request", Entry, "ip_finish_output", kTcpSent, kTcpArguments,
     "socket != 0 && ip->protocol == 6 && socket->__sk_common.skc_state == 2 && tcp->syn == 1 && "
     "connection->icsk_retransmits == 0"},
    {"connect-request", Entry, "ip6_finish_output", kTcp6Sent, kTcpArguments,
     "socket != 0 && ip6->nexthdr == 6 && socket->__sk_common.skc_state == 2 && tcp->syn == 1 && "
     "connection->icsk_retransmits == 0"},
    {"receive", Entry, "tcp_rcv_established", kTcpReceived, kTcpArguments},
    {"receive", Entry, "tcp_rcv_state_process", kTcpReceived, kTcpArguments},
    {"receive", Entry, "tcp_timewait_state_process", kTcpWaits, kTcpArguments},
    {"receive", Entry, "tcp_v4_send_reset", kTcpReceived, kTcpArguments, "socket == 0"},
    {"receive", Entry, "tcp_v6_send_reset", kTcpReceived, kTcpArguments, "socket == 0"},
    {"connect-established", Entry, "tcp_finish_connect", kTcpReceived, kTcpArguments,
     "packet != 0"},
    // Both ends have asked at once (RFC 9293, 3.5), or it is one socket. A connection that a
    // listener has made belongs to no program's socket yet.
    {"connect-established", Entry, "tcp_init_transfer", kTcpAccepted, kTcpArguments,
     "event == 5 && socket->sk_socket != 0"},
    {"connect-refused", Entry, "tcp_reset", kTcpReceived, kTcpArguments,
     "socket->__sk_common.skc_state == 2"},
    {"accept-established", Entry, "tcp_init_transfer", kTcpAccepted, kTcpArguments,
     "event == 5 && socket->sk_socket == 0"},  // BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB
    {"accept-refused", Entry, "tcp_v4_send_reset", kTcpReceived, kTcpArguments,
     "socket == 0 && tcp->syn == 1 && tcp->ack == 0"},
    {"accept-refused", Entry, "tcp_v6_send_reset", kTcpReceived, kTcpArguments,
     "socket == 0 && tcp->syn == 1 && tcp->ack == 0"},
    {"state-change", OwnReturn, "inet_sk_set_state", kTcpChanged, kTcpChangedArguments,
     "socket->sk_protocol == 6", &kSetsState},
    {"state-change", OwnReturn, "inet_sk_state_store", kTcpChanged, kTcpChangedArguments,
     "socket->sk_protocol == 6", &kSetsState},
};

constexpr NativeValue kUdpSent[] = {{kPacketType, "packet", "arg2"},
                                    {kSocketType, "socket", "arg1"},
                                    {kUdpType, "udp", kTransport},
                                    {kIpType, "ip", kNetwork}};
constexpr NativeValue kUdp6Sent[] = {{kPacketType, "packet", "arg2"},
                                     {kSocketType, "socket", "arg1"},
                                     {kUdpType, "udp", kTransport},
                                     {kIp6Type, "ip6", kNetwork}};
constexpr NativeValue kUdpReceived[] = {{kPacketType, "packet", "arg1"},
                                        {kSocketType, "socket", "arg0"},
                                        {kUdpType, "udp", kTransport}};
constexpr StableArgument kUdpArguments[] = {{"pktinfo_t *", 0},
                                            {"csinfo_t *", 1},
                                            {"ipinfo_t *", 0},
                                            {"udpsinfo_t *", 1},
                                            {"udpinfo_t *", 2}};

constexpr StableProbe kUdp[] = {
    {"send", Entry, "ip_finish_output", kUdpSent, kUdpArguments,
     "socket != 0 && ip->protocol == 17"},
    {"send", Entry, "ip6_finish_output", kUdp6Sent, kUdpArguments,
     "socket != 0 && ip6->nexthdr == 17"},
    // Datagrams that were joined on the way (GRO, or UDP_SEGMENT over lo) are cut up there.
    {"receive", Entry, "udp_queue_rcv_one_skb|udp_queue_rcv_skb", kUdpReceived, kUdpArguments},
    {"receive", Entry, "udpv6_queue_rcv_one_skb|udpv6_queue_rcv_skb", kUdpReceived, kUdpArguments},
};

constexpr StableTable kNetworkTables[] = {{"ip", kIp}, {"tcp", kTcp}, {"udp", kUdp}};

}  // namespace

std::span<const StableTable> network_tables() {
  return kNetworkTables;
}

}  // namespace ringside::providers
