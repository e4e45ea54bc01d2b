/* NAME a probe is declared once
 * TAG D_PROV_PRDUP
 * SKIP provider is not supported yet
 */
provider mine {
	probe start(int);
	probe start(int);
};
BEGIN
{
	exit(0);
}
