/* NAME characters of a string that is no variable cannot be written
 * TAG D_OP_WRITE
 */
BEGIN
{
	"abc"[0] = 'x';
}
