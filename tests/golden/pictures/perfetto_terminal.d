/* NAME -O perfetto is refused where the output goes to a terminal, which its bytes could control
 * RUN script -qec "$DTRACE -q -O perfetto -s $SCRIPT" /dev/null | tr -d '\r'
 */
BEGIN
{
	exit(0);
}
/* EXPECT
 * ringside: this output is no text for a terminal: name a file for it with -o
 */
