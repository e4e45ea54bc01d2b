/*
 * The probes of sctp, where the guest has loaded the module when ringside starts. A packet is received when
 * an association takes it, or an endpoint if it belongs to no association. A packet is sent when IP has all of
 * it. A packet that is sent inside UDP (RFC 6951) fires udp:::send instead.
 *
 * sctp_do_sm() makes all changes of state. An association that it has freed still reads as closed (0), since the
 * memory lasts for RCU's grace period. When the chunk (event 1) is a SACK (3), it calls itself for the change,
 * unless this SACK ends the association. When a peer's cookie makes an association, sctp_do_sm() is given none:
 * the new one is then the last of its endpoint's.
 */
#pragma D depends_on module sctp
#pragma D depends_on library sctp_linux.d

provider sctp {
	probe send(struct sk_buff *packet, struct sctp_association *association, struct sctphdr *sctp, struct iphdr *ip)
	    : (pktinfo_t *packet, csinfo_t *association, ipinfo_t *packet, sctpsinfo_t *association, sctpinfo_t *sctp)
	    = fbt:sctp:sctp_v4_xmit:entry { self->association[arg0] = args[1]->asoc; }
	    -> fbt::ip_finish_output:entry /ip->protocol == 132/ {
		packet = args[2];
		association = self->association[arg2];
		sctp = packet->head + packet->transport_header;
		ip = packet->head + packet->network_header;
	    };
	probe send(struct sk_buff *packet, struct sctp_association *association, struct sctphdr *sctp,
		struct ipv6hdr *ip6)
	    : (pktinfo_t *packet, csinfo_t *association, ipinfo_t *packet, sctpsinfo_t *association, sctpinfo_t *sctp)
	    = fbt:sctp:sctp_v6_xmit:entry { self->association[arg0] = args[1]->asoc; }
	    -> fbt::ip6_finish_output:entry /ip6->nexthdr == 132/ {
		packet = args[2];
		association = self->association[arg2];
		sctp = packet->head + packet->transport_header;
		ip6 = packet->head + packet->network_header;
	    };
	probe receive(struct sk_buff *packet, struct sctp_association *association, struct sctphdr *sctp)
	    : (pktinfo_t *packet, csinfo_t *association, ipinfo_t *packet, sctpsinfo_t *association, sctpinfo_t *sctp)
	    = fbt:sctp:sctp_inq_push:entry {
		packet = args[1]->skb;
		association = args[1]->asoc;
		sctp = args[1]->sctp_hdr;
	    };
	probe state__change(unsigned long none, struct sctp_association *association, int old)
	    : (unsigned long none, csinfo_t *association, unsigned long none, sctpsinfo_t *association,
		unsigned long none, sctplsinfo_t *old)
	    = fbt:sctp:sctp_do_sm:entry {
		self->association = args[5];
		self->old = arg3;
		self->sack = (int)arg1 == 1 && (int)arg2 == 3;
	    }
	    -> fbt:sctp:sctp_do_sm:return
	    /association != 0 && association->state != old && (self->sack == 0 || association->state == 0)/ {
		none = 0;
		association = self->association;
		old = self->old;
	    };
	probe state__change(unsigned long none, struct sctp_association *association, int old)
	    : (unsigned long none, csinfo_t *association, unsigned long none, sctpsinfo_t *association,
		unsigned long none, sctplsinfo_t *old)
	    = fbt:sctp:sctp_do_sm:entry {
		self->given = arg5;
		self->endpoint = args[4];
		self->last = (uint64_t)args[4]->asocs.prev;
	    }
	    -> fbt:sctp:sctp_do_sm:return
	    /self->given == 0 && this->last != self->last && association->state != old/ {
		this->endpoint = (struct sctp_endpoint *)self->endpoint;
		this->last = (uint64_t)this->endpoint->asocs.prev;
		none = 0;
		association = this->last - offsetof(struct sctp_association, asocs);
		old = 0;
	    };
};
