/* NAME a fault in ERROR does not fire ERROR again
 * OPTIONS -q
 */
ERROR
{
	printf("once\n");
}
ERROR
{
	x = *(char *)1;
}
BEGIN
{
	x = *(char *)0;
}
BEGIN
{
	exit(0);
}
/* EXPECT
 * once
 *
 */
