/* NAME a dictionary that cannot be written is an error
 * OPTIONS -x ctypes=nowhere/out  EXIT 1
 */
BEGIN
{
	exit(0);
}
/* EXPECT
 */
/* STDERR
 * failed to write 'nowhere/out': No such file or directory
 */
