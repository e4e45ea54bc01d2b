/* NAME an index of a built-in array is a number
 * TAG D_REGS_IDX
 * SKIP the command says D_PROTO_ARG instead
 */
BEGIN
{
	trace(uregs["rax"]);
}
