/* NAME an index of a built-in array is a number
 * TAG D_REGS_IDX
 */
BEGIN
{
	trace(uregs["rax"]);
}
