/* NAME what is no pointer cannot be followed
 * TAG D_DEREF_NONPTR
 * SKIP the command says D_UNKNOWN instead
 */
int number;
BEGIN
{
	trace(*number);
}
