/* NAME what a clause recorded before its fault is dropped
 * OPTIONS -q
 */
BEGIN
{
	printf("before ");
	x = *(char *)0;
	printf("behind\n");
}
BEGIN
{
	printf("next\n");
	exit(0);
}
/* EXPECT
 * next
 *
 */
