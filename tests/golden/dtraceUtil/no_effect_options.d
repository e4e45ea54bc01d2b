/* NAME options without anything to change here are taken
 * OPTIONS -q -32 -x aggpercpu -x core -x evaltime=main -x knodefs -x late=dynamic -x lazyload -x linkmode=kernel -x linktype=elf -x pgmax=16 -x preallocate=1m -x pspec -x strip -x unodefs -x cpu=all -x tree=1
 */
BEGIN
{
	printf("here\n");
	exit(0);
}
/* EXPECT
 * here
 *
 */
