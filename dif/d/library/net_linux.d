/*
 * Packets and connections of Linux guests, by the kernel's own types. A header is NULL where the
 * packet is of the other version of IP; a socket is NULL where nobody listens, and has no more
 * than its addresses while it is a request (12) or waits to be forgotten (6). Answers for nobody's
 * connection are sent by a raw socket of the kernel, whose port is none.
 */
#pragma D depends_on library net.d
#pragma D depends_on module vmlinux

translator pktinfo_t < struct sk_buff *S > {
	pkt_addr = (uintptr_t)S;
};

/*
 * A socket of Linux knows no process. Whose call it is can be told while a process holds the socket's
 * lock (the kernel's own work waits for it, or is done on its behalf when it lets go), and of UDP, whose
 * programs send in their own time; else the process that waits in the socket, by the first of
 * its queue.
 */
this struct wait_queue_entry *__waiter;
inline struct list_head *__waiters[struct sock *S] = S->sk_wq == NULL ?
    (struct list_head *)NULL : S->sk_wq->wait.head.next;
inline pid_t __waiting_process[struct sock *S] =
    __waiters[S] == NULL || __waiters[S] == &S->sk_wq->wait.head ? 0 :
    (this->__waiter = (struct wait_queue_entry *)((uintptr_t)__waiters[S] -
    offsetof(struct wait_queue_entry, entry)),
    (uintptr_t)this->__waiter->func != (uintptr_t)&`woken_wake_function &&
    (uintptr_t)this->__waiter->func != (uintptr_t)&`autoremove_wake_function ? 0 :
    ((struct task_struct *)this->__waiter->private)->tgid);
/* A socket whose state is about to change has the new one: arg3 of state-change. */
inline int __state[struct sock *S] = probeprov == "tcp" && probename == "state-change" &&
    (uintptr_t)S == arg1 ? (int)arg3 : S->__sk_common.skc_state;
/* Without more than its addresses: a request, or one that waits to be forgotten. */
inline int __is_no_socket[struct sock *S] =
    S == NULL || __state[S] == 12 || __state[S] == 6;
inline int __is_own_call[struct sock *S] = S->sk_protocol == IPPROTO_TCP ?
    S->sk_lock.owned != 0 : S->sk_protocol == IPPROTO_UDP && probename == "send";

translator csinfo_t < struct sock *S > {
	cs_addr = (uintptr_t)S;
	cs_cid = (uint64_t)S;
	cs_pid = __is_no_socket[S] ? 0 : __is_own_call[S] ? pid : __waiting_process[S];
	cs_zoneid = 0;
};

translator ifinfo_t < struct net_device *D > {
	if_name = D == NULL ? "<none>" : stringof(D->name);
	if_local = D == NULL ? 0 : (D->flags & 8) != 0;
	if_ipstack = 0;
	if_addr = (uintptr_t)D;
};

inline int __ip_version[struct sk_buff *S] = *(uint8_t *)(S->head + S->network_header) >> 4;
inline int __is_ipv4[struct sk_buff *S] = __ip_version[S] == 4;
/* As the IP header has it: 0 of a packet that is too large for the field. */
inline int __said_length[struct sk_buff *S] = __is_ipv4[S] ?
    ntohs(((struct iphdr *)(S->head + S->network_header))->tot_len) :
    ntohs(((struct ipv6hdr *)(S->head + S->network_header))->payload_len);
inline int __ip_header[struct sk_buff *S] = __is_ipv4[S] ?
    4 * (*(uint8_t *)(S->head + S->network_header) & 0xf) : 40;

/*
 * Above IP the packet's own length holds: TCP appends what comes while a socket is busy to the packet
 * that waits, and leaves that one's IP header as it was.
 */
translator ipinfo_t < struct sk_buff *S > {
	ip_ver = __ip_version[S];
	ip_plength = S->data - S->head > S->network_header || __said_length[S] == 0 ?
	    S->len + (S->data - S->head) - S->network_header - __ip_header[S] :
	    __said_length[S] - (__is_ipv4[S] ? __ip_header[S] : 0);
	ip_saddr = __is_ipv4[S] ?
	    inet_ntop(AF_INET, &((struct iphdr *)(S->head + S->network_header))->saddr) :
	    inet_ntop(AF_INET6, &((struct ipv6hdr *)(S->head + S->network_header))->saddr);
	ip_daddr = __is_ipv4[S] ?
	    inet_ntop(AF_INET, &((struct iphdr *)(S->head + S->network_header))->daddr) :
	    inet_ntop(AF_INET6, &((struct ipv6hdr *)(S->head + S->network_header))->daddr);
};

translator ipv4info_t < struct iphdr *I > {
	ipv4_ver = I == NULL ? 0 : *(uint8_t *)I >> 4;
	ipv4_ihl = I == NULL ? 0 : 4 * (*(uint8_t *)I & 0xf);
	ipv4_tos = I == NULL ? 0 : I->tos;
	ipv4_length = I == NULL ? 0 : ntohs(I->tot_len);
	ipv4_ident = I == NULL ? 0 : ntohs(I->id);
	ipv4_flags = I == NULL ? 0 : ntohs(I->frag_off) >> 13;
	ipv4_offset = I == NULL ? 0 : ntohs(I->frag_off) & 0x1fff;
	ipv4_ttl = I == NULL ? 0 : I->ttl;
	ipv4_protocol = I == NULL ? 0 : I->protocol;
	ipv4_protostr = I == NULL ? "<null>" : I->protocol == 1 ? "ICMP" : I->protocol == 2 ? "IGMP" :
	    I->protocol == 4 ? "IP" : I->protocol == 6 ? "TCP" : I->protocol == 17 ? "UDP" :
	    I->protocol == 50 ? "ESP" : I->protocol == 51 ? "AH" : I->protocol == 89 ? "OSPF" :
	    I->protocol == 132 ? "SCTP" : lltostr((int64_t)I->protocol);
	ipv4_checksum = I == NULL ? 0 : ntohs(I->check);
	ipv4_src = I == NULL ? 0 : I->saddr;
	ipv4_dst = I == NULL ? 0 : I->daddr;
	ipv4_saddr = I == NULL ? "<null>" : inet_ntop(AF_INET, &I->saddr);
	ipv4_daddr = I == NULL ? "<null>" : inet_ntop(AF_INET, &I->daddr);
	ipv4_hdr = (ipha_t *)I;
};

translator ipv6info_t < struct ipv6hdr *I > {
	ipv6_ver = I == NULL ? 0 : *(uint8_t *)I >> 4;
	ipv6_tclass = I == NULL ? 0 : (ntohl(*(uint32_t *)I) >> 20) & 0xff;
	ipv6_flow = I == NULL ? 0 : ntohl(*(uint32_t *)I) & 0xfffff;
	ipv6_plen = I == NULL ? 0 : ntohs(I->payload_len);
	ipv6_nexthdr = I == NULL ? 0 : I->nexthdr;
	ipv6_nextstr = I == NULL ? "<null>" : I->nexthdr == 0 ? "HOPOPTS" : I->nexthdr == 6 ? "TCP" :
	    I->nexthdr == 17 ? "UDP" : I->nexthdr == 43 ? "ROUTING" : I->nexthdr == 44 ? "FRAGMENT" :
	    I->nexthdr == 58 ? "ICMPV6" : I->nexthdr == 59 ? "NONE" : lltostr((int64_t)I->nexthdr);
	ipv6_hlim = I == NULL ? 0 : I->hop_limit;
	ipv6_src = I == NULL ? (in6_addr_t *)NULL : (in6_addr_t *)&I->saddr;
	ipv6_dst = I == NULL ? (in6_addr_t *)NULL : (in6_addr_t *)&I->daddr;
	ipv6_saddr = I == NULL ? "<null>" : inet_ntop(AF_INET6, &I->saddr);
	ipv6_daddr = I == NULL ? "<null>" : inet_ntop(AF_INET6, &I->daddr);
	ipv6_hdr = (ip6_t *)I;
};

translator tcpinfo_t < struct tcphdr *T > {
	tcp_sport = T == NULL ? 0 : ntohs(T->source);
	tcp_dport = T == NULL ? 0 : ntohs(T->dest);
	tcp_seq = T == NULL ? 0 : ntohl(T->seq);
	tcp_ack = T == NULL ? 0 : ntohl(T->ack_seq);
	tcp_offset = T == NULL ? 0 : *((uint8_t *)T + 12) >> 4 << 2;
	tcp_flags = T == NULL ? 0 : *((uint8_t *)T + 13);
	tcp_window = T == NULL ? 0 : ntohs(T->window);
	tcp_checksum = T == NULL ? 0 : ntohs(T->check);
	tcp_urgent = T == NULL ? 0 : ntohs(T->urg_ptr);
	tcp_hdr = (tcph_t *)T;
};

inline string __local_address[struct sock *S] = S == NULL ? "<null>" :
    S->__sk_common.skc_family == AF_INET ? inet_ntop(AF_INET, &S->__sk_common.skc_rcv_saddr) :
    inet_ntop(AF_INET6, &S->__sk_common.skc_v6_rcv_saddr);
inline string __remote_address[struct sock *S] = S == NULL ? "<null>" :
    S->__sk_common.skc_family == AF_INET ? inet_ntop(AF_INET, &S->__sk_common.skc_daddr) :
    inet_ntop(AF_INET6, &S->__sk_common.skc_v6_daddr);

/*
 * A threshold that there is not yet is 0x7fffffff, whatever the size of segments.
 *
 * The side that opened: a connection that a listener has made keeps the interface of its SYN, in a
 * member that is for datagrams and that a program cannot set of a stream. The initial sequence
 * number: acknowledged bytes are counted from the SYN's number on, or after it where a listener has
 * made the connection.
 */
inline int __is_stream[struct sock *S] = !__is_no_socket[S] && S->sk_protocol == IPPROTO_TCP &&
    S->sk_type == SOCK_STREAM && __state[S] != 10;
inline int __was_accepted[struct sock *S] = S->__sk_common.skc_family == AF_INET ?
    ((struct inet_sock *)S)->mc_index != 0 : ((struct inet_sock *)S)->pinet6->mcast_oif != 0;
inline struct tcp_sock *__tcp[struct sock *S] = (struct tcp_sock *)S;
/* A tick is mult >> shift nanoseconds; tick_nsec is not there on all kernels. */
inline struct clocksource *__jiffies_clock = (struct clocksource *)&`clocksource_jiffies;
inline uint32_t __sequence_of[struct sk_buff *P] = ((struct tcp_skb_cb *)&P->cb[0])->seq;

translator tcpsinfo_t < struct sock *S > {
	tcps_addr = (uintptr_t)S;
	tcps_local = S == NULL ? 0 : S->__sk_common.skc_family == AF_INET ?
	    S->__sk_common.skc_daddr == S->__sk_common.skc_rcv_saddr ||
	    (S->__sk_common.skc_daddr & 0xff) == 127 :
	    *(uint64_t *)&S->__sk_common.skc_v6_daddr == *(uint64_t *)&S->__sk_common.skc_v6_rcv_saddr &&
	    *((uint64_t *)&S->__sk_common.skc_v6_daddr + 1) ==
	    *((uint64_t *)&S->__sk_common.skc_v6_rcv_saddr + 1);
	tcps_active = __is_stream[S] && !__was_accepted[S];
	/* The number is given back before a socket is closed. */
	tcps_lport = S == NULL || (__state[S] == 7 && S->sk_type == SOCK_RAW) ? 0 :
	    S->__sk_common.skc_num != 0 || __is_no_socket[S] ? S->__sk_common.skc_num :
	    ntohs(((struct inet_sock *)S)->inet_sport);
	tcps_rport = S == NULL ? 0 : ntohs(S->__sk_common.skc_dport);
	tcps_laddr = __local_address[S];
	tcps_raddr = __remote_address[S];
	tcps_state = S == NULL ? TCP_STATE_CLOSED :
	    __state[S] == 12 ? TCP_STATE_SYN_RECEIVED : __state[S];
	tcps_iss = !__is_stream[S] ? 0 : __tcp[S]->snd_una - (uint32_t)__tcp[S]->bytes_acked -
	    (__was_accepted[S] ? 1 : 0);
	tcps_suna = __is_no_socket[S] ? 0 : __tcp[S]->snd_una;
	tcps_snxt = __is_no_socket[S] ? 0 : __tcp[S]->snd_nxt;
	tcps_rack = __is_no_socket[S] ? 0 : __tcp[S]->rcv_wup;
	tcps_rnxt = __is_no_socket[S] ? 0 : __tcp[S]->rcv_nxt;
	tcps_swnd = __is_no_socket[S] ? 0 : __tcp[S]->snd_wnd;
	tcps_snd_ws = __is_no_socket[S] ? 0 : __tcp[S]->rx_opt.snd_wscale;
	tcps_rwnd = __is_no_socket[S] ? 0 : __tcp[S]->rcv_wnd;
	tcps_rcv_ws = __is_no_socket[S] ? 0 : __tcp[S]->rx_opt.rcv_wscale;
	tcps_cwnd = __is_no_socket[S] ? 0 : __tcp[S]->snd_cwnd * __tcp[S]->mss_cache;
	tcps_cwnd_ssthresh = __is_no_socket[S] ? 0 :
	    __tcp[S]->snd_ssthresh == 0x7fffffff ? 0x7fffffff :
	    __tcp[S]->snd_ssthresh * __tcp[S]->mss_cache;
	tcps_sack_fack = !__is_stream[S] ? 0 : __tcp[S]->sacked_out == 0 ? __tcp[S]->snd_una :
	    __tcp[S]->highest_sack == NULL ? __tcp[S]->snd_nxt : __sequence_of[__tcp[S]->highest_sack];
	tcps_sack_snxt = !__is_stream[S] ? 0 : __tcp[S]->retransmit_skb_hint == NULL ?
	    __tcp[S]->snd_una : __sequence_of[__tcp[S]->retransmit_skb_hint];
	tcps_rto = !__is_stream[S] ? 0 :
	    ((struct inet_connection_sock *)S)->icsk_rto * __jiffies_clock->mult /
	    ((uint64_t)1000000 << __jiffies_clock->shift);
	tcps_mss = __is_no_socket[S] ? 0 : __tcp[S]->mss_cache;
	tcps_retransmit = __is_no_socket[S] ? 0 :
	    ((struct inet_connection_sock *)S)->icsk_retransmits != 0;
};

translator tcplsinfo_t < int S > {
	tcps_state = S == 12 ? TCP_STATE_SYN_RECEIVED : S;
};

translator udpinfo_t < struct udphdr *U > {
	udp_sport = ntohs(U->source);
	udp_dport = ntohs(U->dest);
	udp_length = ntohs(U->len);
	udp_checksum = ntohs(U->check);
	udp_hdr = (udpha_t *)U;
};

translator udpsinfo_t < struct sock *S > {
	udps_addr = (uintptr_t)S;
	udps_lport = S == NULL ? 0 : S->__sk_common.skc_num;
	udps_rport = S == NULL ? 0 : ntohs(S->__sk_common.skc_dport);
	udps_laddr = __local_address[S];
	udps_raddr = __remote_address[S];
};
