/* NAME the size of tracemem() is a constant
 * TAG D_TRACEMEM_SIZE
 */
BEGIN
{
	tracemem((char *)alloca(8), pid);
}
