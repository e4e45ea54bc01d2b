/* NAME what is no pointer cannot be followed
 * TAG D_DEREF_NONPTR
 */
int number;
BEGIN
{
	trace(*number);
}
