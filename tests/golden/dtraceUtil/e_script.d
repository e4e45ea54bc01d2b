/* NAME -e of a script
 * RUN $DTRACE -es $SCRIPT; echo $?
 */
BEGIN
{
	printf("never\n");
}
/* EXPECT
 * 0
 */
