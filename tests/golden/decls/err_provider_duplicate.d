/* NAME a probe is declared once
 * TAG D_PROV_PRDUP
 */
provider mine {
	probe start(int);
	probe start(int);
};
BEGIN
{
	exit(0);
}
