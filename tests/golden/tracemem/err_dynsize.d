/* NAME the third size of tracemem() is a number
 * TAG D_TRACEMEM_DYNSIZE
 * SKIP tracemem() with a dynamic size is not supported yet
 */
BEGIN
{
	tracemem((char *)alloca(8), 8, "two");
}
