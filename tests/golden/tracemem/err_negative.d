/* NAME the size of tracemem() is not negative
 * TAG D_TRACEMEM_SIZE
 */
BEGIN
{
	tracemem((char *)alloca(8), -1);
}
