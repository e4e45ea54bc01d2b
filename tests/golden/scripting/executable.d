/* NAME a script that names the command runs by itself
 * RUN { echo "#!$DTRACE -qs"; cat $SCRIPT; } > run.d; chmod +x run.d; ./run.d 5
 */
BEGIN
{
	printf("%d\n", $1);
	exit(0);
}
/* EXPECT
 * 5
 *
 */
