/* NAME comments may stand between any two tokens
 * OPTIONS -q
 */
/* one */
BEGIN /* two
 * three */
{
	printf(/* four */"text\n"/* five */);
	exit(0); /* six */
}
/* EXPECT
 * text
 *
 */
