/* NAME a string cannot be cast to a pointer
 * TAG D_CAST_INVAL
 */
BEGIN
{
	trace((char *)"text");
}
