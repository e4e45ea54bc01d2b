/* NAME the digits of an octal constant are octal
 * TAG D_INT_DIGIT
 */
BEGIN
{
	trace(0199);
}
