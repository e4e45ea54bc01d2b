/* NAME the protocols of pcap() are link types of capture files
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d %d %d\n", PCAP_ETHER, PCAP_IP, PCAP_WIFI, PCAP_PPP, PCAP_IPNET,
	    PCAP_IPOIB);
	exit(0);
}
/* EXPECT
 * 1 101 105 9 226 242
 *
 */
