/* NAME an index of a built-in array is one that it has
 * TAG D_REGS_IDX
 */
BEGIN
{
	trace(uregs[100000]);
}
