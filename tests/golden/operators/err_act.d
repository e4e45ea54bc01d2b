/* NAME actions cannot be strung together by commas
 * TAG D_OP_ACT
 */
BEGIN
{
	printf("a"), printf("b");
}
