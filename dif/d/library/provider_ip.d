/*
 * The probes of ip: each packet, where the stack has it whole. Linux 5.11 to 6.12: before that
 * tcp_reset() was not given the packet. Headers are where the packet's offsets say. Packets that are
 * dropped on their way in have the kernel's reason since 5.18. The protocol is ETH_P_IP (8) or
 * ETH_P_IPV6 (56710) as it lies in the packet.
 */
#pragma D depends_on module vmlinux
#pragma D depends_on library net.d

provider ip {
	probe send(struct sk_buff *packet, struct sock *socket, struct net_device *device, struct iphdr *ip,
		struct ipv6hdr *ip6)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, ifinfo_t *device, ipv4info_t *ip,
		ipv6info_t *ip6)
	    = fbt::ip_finish_output:entry {
		packet = args[2];
		socket = args[1];
		device = packet->dev;
		ip = packet->head + packet->network_header;
		ip6 = 0;
	    };
	probe send(struct sk_buff *packet, struct sock *socket, struct net_device *device, struct iphdr *ip,
		struct ipv6hdr *ip6)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, ifinfo_t *device, ipv4info_t *ip,
		ipv6info_t *ip6)
	    = fbt::ip6_finish_output:entry {
		packet = args[2];
		socket = args[1];
		device = packet->dev;
		ip = 0;
		ip6 = packet->head + packet->network_header;
	    };
	probe receive(struct sk_buff *packet, struct sock *socket, struct net_device *device, struct iphdr *ip,
		struct ipv6hdr *ip6)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, ifinfo_t *device, ipv4info_t *ip,
		ipv6info_t *ip6)
	    = fbt::ip_local_deliver:entry {
		packet = args[0];
		socket = packet->sk;
		device = packet->dev;
		ip = packet->head + packet->network_header;
		ip6 = 0;
	    };
	probe receive(struct sk_buff *packet, struct sock *socket, struct net_device *device, struct iphdr *ip,
		struct ipv6hdr *ip6)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, ifinfo_t *device, ipv4info_t *ip,
		ipv6info_t *ip6)
	    = fbt::ip6_input:entry {
		packet = args[0];
		socket = packet->sk;
		device = packet->dev;
		ip = 0;
		ip6 = packet->head + packet->network_header;
	    };
	probe drop__in(struct sk_buff *packet, struct sock *socket, struct net_device *device, struct iphdr *ip,
		struct ipv6hdr *ip6, int reason)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, ifinfo_t *device, ipv4info_t *ip,
		ipv6info_t *ip6)
	    = sdt:::kfree_skb /packet->protocol == 8 && reason == SKB_DROP_REASON_IP_CSUM/ {
		packet = args[0];
		socket = packet->sk;
		device = packet->dev;
		ip = packet->head + packet->network_header;
		ip6 = 0;
		reason = args[2];
	    };
	probe drop__in(struct sk_buff *packet, struct sock *socket, struct net_device *device, struct iphdr *ip,
		struct ipv6hdr *ip6, int reason)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, ifinfo_t *device, ipv4info_t *ip,
		ipv6info_t *ip6)
	    = sdt:::kfree_skb /packet->protocol == 8 && reason == SKB_DROP_REASON_IP_INHDR/ {
		packet = args[0];
		socket = packet->sk;
		device = packet->dev;
		ip = packet->head + packet->network_header;
		ip6 = 0;
		reason = args[2];
	    };
	probe drop__in(struct sk_buff *packet, struct sock *socket, struct net_device *device, struct iphdr *ip,
		struct ipv6hdr *ip6, int reason)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, ifinfo_t *device, ipv4info_t *ip,
		ipv6info_t *ip6)
	    = sdt:::kfree_skb /packet->protocol == 8 && reason == SKB_DROP_REASON_IP_NOPROTO/ {
		packet = args[0];
		socket = packet->sk;
		device = packet->dev;
		ip = packet->head + packet->network_header;
		ip6 = 0;
		reason = args[2];
	    };
	probe drop__in(struct sk_buff *packet, struct sock *socket, struct net_device *device, struct iphdr *ip,
		struct ipv6hdr *ip6, int reason)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, ifinfo_t *device, ipv4info_t *ip,
		ipv6info_t *ip6)
	    = sdt:::kfree_skb /packet->protocol == 8 && reason == SKB_DROP_REASON_IP_RPFILTER/ {
		packet = args[0];
		socket = packet->sk;
		device = packet->dev;
		ip = packet->head + packet->network_header;
		ip6 = 0;
		reason = args[2];
	    };
	probe drop__in(struct sk_buff *packet, struct sock *socket, struct net_device *device, struct iphdr *ip,
		struct ipv6hdr *ip6, int reason)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, ifinfo_t *device, ipv4info_t *ip,
		ipv6info_t *ip6)
	    = sdt:::kfree_skb
	    /packet->protocol == 8 &&
	      reason == SKB_DROP_REASON_UNICAST_IN_L2_MULTICAST/ {
		packet = args[0];
		socket = packet->sk;
		device = packet->dev;
		ip = packet->head + packet->network_header;
		ip6 = 0;
		reason = args[2];
	    };
	probe drop__in(struct sk_buff *packet, struct sock *socket, struct net_device *device, struct iphdr *ip,
		struct ipv6hdr *ip6, int reason)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, ifinfo_t *device, ipv4info_t *ip,
		ipv6info_t *ip6)
	    = sdt:::kfree_skb /packet->protocol == 56710 && reason == SKB_DROP_REASON_IP_INHDR/ {
		packet = args[0];
		socket = packet->sk;
		device = packet->dev;
		ip = 0;
		ip6 = packet->head + packet->network_header;
		reason = args[2];
	    };
	probe drop__in(struct sk_buff *packet, struct sock *socket, struct net_device *device, struct iphdr *ip,
		struct ipv6hdr *ip6, int reason)
	    : (pktinfo_t *packet, csinfo_t *socket, ipinfo_t *packet, ifinfo_t *device, ipv4info_t *ip,
		ipv6info_t *ip6)
	    = sdt:::kfree_skb /packet->protocol == 56710 && reason == SKB_DROP_REASON_IP_NOPROTO/ {
		packet = args[0];
		socket = packet->sk;
		device = packet->dev;
		ip = 0;
		ip6 = packet->head + packet->network_header;
		reason = args[2];
	    };
	probe drop__out()
	    absent "Linux has no reason that tells packets on their way out; nearest: sdt:skb::kfree_skb";
};
