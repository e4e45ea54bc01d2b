/* NAME $target without -c and -p is 0, as many scripts have it in a predicate
 * OPTIONS -q
 */
profile:::tick-1ms
/0 && pid == $target/
{
	printf("no process has it\n");
}
BEGIN
{
	printf("%d %s\n", $target, $$target);
	exit(0);
}
/* EXPECT
 * 0 0
 *
 */
