/* NAME D's scope has the program's own types
 * TAG D_UNKNOWN
 */
BEGIN
{
	trace((struct D`nowhere *)0);
}
