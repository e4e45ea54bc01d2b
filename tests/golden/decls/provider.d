/* NAME a provider may be declared
 * OPTIONS -e -Z
 * SKIP provider is not supported yet
 */
provider mine {
	probe start(int, char *);
	probe stop(int result);
};
BEGIN
{
	exit(0);
}
