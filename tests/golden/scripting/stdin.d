/* NAME -s /dev/stdin reads the program from there
 * RUN $DTRACE -qs /dev/stdin < $SCRIPT
 */
BEGIN
{
	printf("in\n");
	exit(0);
}
/* EXPECT
 * in
 *
 */
