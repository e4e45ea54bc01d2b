/* NAME the name of a provider does not end in a digit
 * TAG D_PROV_BADNAME
 */
provider mine1 {
	probe start(int);
};
BEGIN
{
	exit(0);
}
