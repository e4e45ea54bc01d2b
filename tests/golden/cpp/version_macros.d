/* NAME the preprocessor knows the version of D
 * OPTIONS -qC
 */
BEGIN
{
#if defined(__SUNW_D) && defined(__SUNW_D_VERSION)
	printf("%d %d\n", __SUNW_D, __SUNW_D_VERSION > 0x01000000);
#endif
	exit(0);
}
/* EXPECT
 * 1 1
 *
 */
