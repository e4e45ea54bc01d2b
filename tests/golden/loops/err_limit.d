/* NAME a loop without a bound is an error
 * TAG D_LOOP_LIMIT
 */
BEGIN
{
	while (1)
		n++;
}
