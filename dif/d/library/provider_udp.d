/*
 * The probes of udp: each packet, where the stack has it whole. Linux 5.11 to 6.12: before that
 * tcp_reset() was not given the packet. Headers are where the packet's offsets say. Datagrams
 * that were joined on the way (GRO, or UDP_SEGMENT over lo) are cut up before they are received.
 */
#pragma D depends_on module vmlinux
#pragma D depends_on library net.d

provider udp {
	probe send(struct sk_buff *packet, struct sock *socket, struct udphdr *udp, struct iphdr *ip)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, udpsinfo_t *socket, udpinfo_t *udp)
	    = fbt::ip_finish_output:entry /socket != 0 && ip->protocol == 17/ {
		packet = args[2];
		socket = args[1];
		udp = packet->head + packet->transport_header;
		ip = packet->head + packet->network_header;
	    };
	probe send(struct sk_buff *packet, struct sock *socket, struct udphdr *udp, struct ipv6hdr *ip6)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, udpsinfo_t *socket, udpinfo_t *udp)
	    = fbt::ip6_finish_output:entry /socket != 0 && ip6->nexthdr == 17/ {
		packet = args[2];
		socket = args[1];
		udp = packet->head + packet->transport_header;
		ip6 = packet->head + packet->network_header;
	    };
	probe receive(struct sk_buff *packet, struct sock *socket, struct udphdr *udp)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, udpsinfo_t *socket, udpinfo_t *udp)
	    = fbt::udp_queue_rcv_one_skb:entry | fbt::udp_queue_rcv_skb:entry {
		packet = args[1];
		socket = args[0];
		udp = packet->head + packet->transport_header;
	    };
	probe receive(struct sk_buff *packet, struct sock *socket, struct udphdr *udp)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, udpsinfo_t *socket, udpinfo_t *udp)
	    = fbt::udpv6_queue_rcv_one_skb:entry | fbt::udpv6_queue_rcv_skb:entry {
		packet = args[1];
		socket = args[0];
		udp = packet->head + packet->transport_header;
	    };
};
