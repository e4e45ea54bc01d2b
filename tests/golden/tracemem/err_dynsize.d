/* NAME the third size of tracemem() is a number
 * TAG D_TRACEMEM_DYNSIZE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	tracemem((char *)alloca(8), 8, "two");
}
