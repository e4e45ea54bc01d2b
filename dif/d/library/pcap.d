/*
 * Protocols for pcap(), by the first header of a packet. The numbers are link types of
 * capture files (https://www.tcpdump.org/linktypes.html).
 */
inline int PCAP_ETHER = 1;
inline int PCAP_PPP = 9;
inline int PCAP_IP = 101;
inline int PCAP_WIFI = 105;
inline int PCAP_IPNET = 226;
inline int PCAP_IPOIB = 242;
