/* NAME nine keys need more registers than there are
 * TAG D_NOREG
 */
BEGIN
{
	x[1, 2, 3, 4, 5, 6, 7, 8, 9] = 1;
}
