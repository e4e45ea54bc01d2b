/* NAME the third size of tracemem() is a number
 * TAG D_TRACEMEM_DYNSIZE
 */
BEGIN
{
	tracemem((char *)alloca(8), 8, "two");
}
