/* NAME states of connections have names
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s %s\n", tcp_state_string[TCP_STATE_LISTEN], tcp_state_string[TCP_STATE_FIN_WAIT_2],
	    tcp_state_string[99]);
	exit(0);
}
/* EXPECT
 * state-listen state-fin-wait-2 <unknown>
 *
 */
