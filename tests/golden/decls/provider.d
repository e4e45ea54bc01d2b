/* NAME a provider may be declared
 * OPTIONS -e -Z
 */
provider mine {
	probe start(int, char *);
	probe stop(int result);
};
BEGIN
{
	exit(0);
}
