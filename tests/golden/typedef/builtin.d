/* NAME the integer types of a fixed size
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d ", sizeof (int8_t), sizeof (int16_t), sizeof (int32_t), sizeof (int64_t));
	printf("%d %d %d %d ", sizeof (uint8_t), sizeof (uint16_t), sizeof (uint32_t),
	    sizeof (uint64_t));
	printf("%d %d %d %d\n", sizeof (size_t), sizeof (pid_t), sizeof (uintptr_t), sizeof (uint_t));
	exit(0);
}
/* EXPECT
 * 1 2 4 8 1 2 4 8 8 4 8 4
 *
 */
