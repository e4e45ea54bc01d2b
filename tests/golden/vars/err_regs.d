/* NAME an index of a built-in array is a number
 * TAG D_REGS_IDX
 * SKIP uregs[ ] is not supported yet
 */
BEGIN
{
	trace(uregs["rax"]);
}
