/* NAME a provider may be declared
 * OPTIONS -e -Z
 * SKIP does not compile: inlines nest too deeply
 */
provider mine {
	probe start(int, char *);
	probe stop(int result);
};
BEGIN
{
	exit(0);
}
