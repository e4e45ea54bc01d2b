/* NAME stack(), ustack() and jstack() of any depth are one type of key
 * OPTIONS -q
 */
BEGIN
{
	@a["kernel", stack()] = count();
	@a["user", ustack()] = count();
	@a["java", jstack()] = count();
	@a["kernel", stack(3)] = count();
	@a["user", ustack(7, 100)] = count();
	exit(0);
}
END
{
	printa("%s %@d\n", @a);
}
/* EXPECT
 * java 1
 * kernel 2
 * user 2
 *
 */
