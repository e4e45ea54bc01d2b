/* NAME what a probe translates to needs a translator
 * TAG D_PROV_PRXLATOR
 */
struct from {
	int a;
};
struct to {
	int b;
};
provider mine {
	probe start(struct from *f) : (struct to *f);
};
BEGIN
{
	exit(0);
}
