/*
 * Associations and packets as the sctp provider shows them, by the names of Oracle's. States are those of
 * Linux (enum sctp_state, Linux 3.13 to 6.12).
 */
#pragma D depends_on library net.d

inline int SCTP_STATE_CLOSED = 0;
inline int SCTP_STATE_COOKIE_WAIT = 1;
inline int SCTP_STATE_COOKIE_ECHOED = 2;
inline int SCTP_STATE_ESTABLISHED = 3;
inline int SCTP_STATE_SHUTDOWN_PENDING = 4;
inline int SCTP_STATE_SHUTDOWN_SENT = 5;
inline int SCTP_STATE_SHUTDOWN_RECEIVED = 6;
inline int SCTP_STATE_SHUTDOWN_ACK_SENT = 7;

inline string sctp_state_string[int32_t state] =
    state == SCTP_STATE_CLOSED ? "state-closed" :
    state == SCTP_STATE_COOKIE_WAIT ? "state-cookie-wait" :
    state == SCTP_STATE_COOKIE_ECHOED ? "state-cookie-echoed" :
    state == SCTP_STATE_ESTABLISHED ? "state-established" :
    state == SCTP_STATE_SHUTDOWN_PENDING ? "state-shutdown-pending" :
    state == SCTP_STATE_SHUTDOWN_SENT ? "state-shutdown-sent" :
    state == SCTP_STATE_SHUTDOWN_RECEIVED ? "state-shutdown-received" :
    state == SCTP_STATE_SHUTDOWN_ACK_SENT ? "state-shutdown-ack-sent" : "<unknown>";

/* Headers as they lie in a packet, in network byte order. */
typedef struct sctp_hdr {
	uint16_t sh_sport;
	uint16_t sh_dport;
	uint32_t sh_verf;
	uint32_t sh_chksum;
} sctp_hdr_t;

typedef struct sctp_chunk_hdr {
	uint8_t sch_id;
	uint8_t sch_flags;
	uint16_t sch_len;
} sctp_chunk_hdr_t;

typedef struct sctpinfo {
	uint16_t sctp_sport;
	uint16_t sctp_dport;
	uint32_t sctp_verify;
	uint32_t sctp_checksum;
	sctp_chunk_hdr_t *sctp_chunk_hdr;
	sctp_hdr_t *sctp_hdr;
} sctpinfo_t;

typedef struct sctpsinfo {
	uintptr_t sctps_addr;
	int sctps_num_raddrs;
	uintptr_t sctps_raddrs;
	int sctps_num_laddrs;
	uintptr_t sctps_laddrs;
	uint16_t sctps_lport;
	uint16_t sctps_rport;
	string sctps_laddr;
	string sctps_raddr;
	int32_t sctps_state;
} sctpsinfo_t;

typedef struct sctplsinfo {
	int32_t sctps_state;
} sctplsinfo_t;
