/*
 * Associations of Linux guests that have loaded the module sctp, by its own types. The addresses are those of
 * the primary path; sctps_raddrs and sctps_laddrs are the heads of the lists of all (struct sctp_transport,
 * struct sctp_sockaddr_entry). Local addresses are counted up to eight. A packet that belongs to
 * no association has NULL.
 */
#pragma D depends_on library net.d
#pragma D depends_on library net_linux.d
#pragma D depends_on library sctp.d
#pragma D depends_on module sctp

translator csinfo_t < struct sctp_association *A > {
	cs_addr = (uintptr_t)A;
	cs_cid = (uint64_t)A;
	cs_pid = A == NULL ? 0 : A->base.sk->sk_lock.owned != 0 ? pid : __waiting_process[A->base.sk];
	cs_zoneid = 0;
};

/* No inline may call itself, so each member of the list has its own. */
inline struct list_head *__laddrs[struct sctp_association *A] = &A->base.bind_addr.address_list;
inline int __from8[struct list_head *L, struct list_head *E] = E == L ? 0 : 1;
inline int __from7[struct list_head *L, struct list_head *E] = E == L ? 0 : 1 + __from8[L, E->next];
inline int __from6[struct list_head *L, struct list_head *E] = E == L ? 0 : 1 + __from7[L, E->next];
inline int __from5[struct list_head *L, struct list_head *E] = E == L ? 0 : 1 + __from6[L, E->next];
inline int __from4[struct list_head *L, struct list_head *E] = E == L ? 0 : 1 + __from5[L, E->next];
inline int __from3[struct list_head *L, struct list_head *E] = E == L ? 0 : 1 + __from4[L, E->next];
inline int __from2[struct list_head *L, struct list_head *E] = E == L ? 0 : 1 + __from3[L, E->next];
inline int __from1[struct list_head *L, struct list_head *E] = E == L ? 0 : 1 + __from2[L, E->next];

inline string __sctp_address[union sctp_addr *U] = U->sa.sa_family == AF_INET ?
    inet_ntop(AF_INET, &U->v4.sin_addr.s_addr) : inet_ntop(AF_INET6, &U->v6.sin6_addr);

translator sctpsinfo_t < struct sctp_association *A > {
	sctps_addr = (uintptr_t)A;
	sctps_num_raddrs = A == NULL ? 0 : A->peer.transport_count;
	sctps_raddrs = A == NULL ? 0 : (uintptr_t)&A->peer.transport_addr_list;
	sctps_num_laddrs = A == NULL ? 0 : __from1[__laddrs[A], __laddrs[A]->next];
	sctps_laddrs = A == NULL ? 0 : (uintptr_t)__laddrs[A];
	sctps_lport = A == NULL ? 0 : A->base.bind_addr.port;
	sctps_rport = A == NULL ? 0 : A->peer.port;
	sctps_laddr = A == NULL || A->peer.primary_path == NULL ? "<null>" :
	    __sctp_address[&A->peer.primary_path->saddr];
	sctps_raddr = A == NULL || A->peer.primary_path == NULL ? "<null>" :
	    __sctp_address[&A->peer.primary_path->ipaddr];
	sctps_state = A == NULL ? SCTP_STATE_CLOSED : (int32_t)A->state;
};

translator sctplsinfo_t < int S > {
	sctps_state = S;
};

translator sctpinfo_t < struct sctphdr *H > {
	sctp_sport = ntohs(H->source);
	sctp_dport = ntohs(H->dest);
	sctp_verify = ntohl(H->vtag);
	sctp_checksum = ntohl(H->checksum);
	sctp_chunk_hdr = (sctp_chunk_hdr_t *)(H + 1);
	sctp_hdr = (sctp_hdr_t *)H;
};
