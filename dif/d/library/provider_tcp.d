/*
 * The probes of tcp: each packet, where the stack has it whole. Linux 5.11 to 6.12: before that
 * tcp_reset() was not given the packet. Headers are where the packet's offsets say. In SYN_SENT
 * (2) a SYN that was not sent before asks for a connection. A reset without a socket answers what nobody
 * listens for; one with a socket answers a segment that this socket has received already. When both
 * ends have asked at once (RFC 9293, 3.5), or it is one socket, tcp_init_transfer() runs for a
 * program's socket; a connection that a listener has made belongs to no program's socket yet. Event 5 is
 * BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB. A state changes by functions that do nothing else, so their
 * entry with the state that they are given shows what is there at their return (__state in
 * net_linux.d).
 */
#pragma D depends_on module vmlinux
#pragma D depends_on library net.d

provider tcp {
	probe send(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp, struct iphdr *ip,
		struct inet_connection_sock *connection)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::ip_finish_output:entry /socket != 0 && ip->protocol == 6/ {
		packet = args[2];
		socket = args[1];
		tcp = packet->head + packet->transport_header;
		ip = packet->head + packet->network_header;
		connection = arg1;
	    };
	probe send(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp, struct ipv6hdr *ip6,
		struct inet_connection_sock *connection)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::ip6_finish_output:entry /socket != 0 && ip6->nexthdr == 6/ {
		packet = args[2];
		socket = args[1];
		tcp = packet->head + packet->transport_header;
		ip6 = packet->head + packet->network_header;
		connection = arg1;
	    };
	probe connect__request(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp, struct iphdr *ip,
		struct inet_connection_sock *connection)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::ip_finish_output:entry
	    /socket != 0 &&
	      ip->protocol == 6 &&
	      socket->__sk_common.skc_state == 2 &&
	      tcp->syn == 1 &&
	      connection->icsk_retransmits == 0/ {
		packet = args[2];
		socket = args[1];
		tcp = packet->head + packet->transport_header;
		ip = packet->head + packet->network_header;
		connection = arg1;
	    };
	probe connect__request(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp, struct ipv6hdr *ip6,
		struct inet_connection_sock *connection)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::ip6_finish_output:entry
	    /socket != 0 &&
	      ip6->nexthdr == 6 &&
	      socket->__sk_common.skc_state == 2 &&
	      tcp->syn == 1 &&
	      connection->icsk_retransmits == 0/ {
		packet = args[2];
		socket = args[1];
		tcp = packet->head + packet->transport_header;
		ip6 = packet->head + packet->network_header;
		connection = arg1;
	    };
	probe receive(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::tcp_rcv_established:entry {
		packet = args[1];
		socket = args[0];
		tcp = packet->head + packet->transport_header;
	    };
	probe receive(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::tcp_rcv_state_process:entry {
		packet = args[1];
		socket = args[0];
		tcp = packet->head + packet->transport_header;
	    };
	probe receive(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::tcp_timewait_state_process:entry {
		packet = args[1];
		socket = arg0;
		tcp = packet->head + packet->transport_header;
	    };
	probe receive(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::tcp_v4_send_reset:entry /socket == 0/ {
		packet = args[1];
		socket = args[0];
		tcp = packet->head + packet->transport_header;
	    };
	probe receive(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::tcp_v6_send_reset:entry /socket == 0/ {
		packet = args[1];
		socket = args[0];
		tcp = packet->head + packet->transport_header;
	    };
	probe connect__established(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::tcp_finish_connect:entry /packet != 0/ {
		packet = args[1];
		socket = args[0];
		tcp = packet->head + packet->transport_header;
	    };
	probe connect__established(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp, int event)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::tcp_init_transfer:entry /event == 5 && socket->sk_socket != 0/ {
		packet = args[2];
		socket = args[0];
		tcp = packet->head + packet->transport_header;
		event = arg1;
	    };
	probe connect__refused(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::tcp_reset:entry /socket->__sk_common.skc_state == 2/ {
		packet = args[1];
		socket = args[0];
		tcp = packet->head + packet->transport_header;
	    };
	probe accept__established(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp, int event)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::tcp_init_transfer:entry /event == 5 && socket->sk_socket == 0/ {
		packet = args[2];
		socket = args[0];
		tcp = packet->head + packet->transport_header;
		event = arg1;
	    };
	probe accept__refused(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::tcp_v4_send_reset:entry /socket == 0 && tcp->syn == 1 && tcp->ack == 0/ {
		packet = args[1];
		socket = args[0];
		tcp = packet->head + packet->transport_header;
	    };
	probe accept__refused(struct sk_buff *packet, struct sock *socket, struct tcphdr *tcp)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, tcpsinfo_t *socket, tcpinfo_t *tcp)
	    = fbt::tcp_v6_send_reset:entry /socket == 0 && tcp->syn == 1 && tcp->ack == 0/ {
		packet = args[1];
		socket = args[0];
		tcp = packet->head + packet->transport_header;
	    };
	probe state__change(unsigned long none, struct sock *socket, int old, int state)
	    : (unsigned long none, csinfo_t *socket, unsigned long none, tcpsinfo_t *socket, unsigned long none,
		tcplsinfo_t *old, int state)
	    = fbt::inet_sk_set_state:entry /socket->sk_protocol == 6/ {
		none = 0;
		socket = args[0];
		old = socket->__sk_common.skc_state;
		state = arg1;
	    };
	probe state__change(unsigned long none, struct sock *socket, int old, int state)
	    : (unsigned long none, csinfo_t *socket, unsigned long none, tcpsinfo_t *socket, unsigned long none,
		tcplsinfo_t *old, int state)
	    = fbt::inet_sk_state_store:entry /socket->sk_protocol == 6/ {
		none = 0;
		socket = args[0];
		old = socket->__sk_common.skc_state;
		state = arg1;
	    };
};
