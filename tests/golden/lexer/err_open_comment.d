/* NAME a comment ends before the file does
 * TAG D_SYNTAX
 */
BEGIN
{
	exit(0);
}
/* EOFs inside
