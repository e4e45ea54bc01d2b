/* NAME ipl, errno and the ids can be read
 * OPTIONS -q
 */
BEGIN
{
	x = pid + tid + uid + gid + ppid + errno;
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */
