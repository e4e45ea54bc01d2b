/* NAME tracemem() takes at most three arguments
 * TAG D_TRACEMEM_ARGS
 */
BEGIN
{
	tracemem((char *)alloca(8), 8, 8, 8);
}
