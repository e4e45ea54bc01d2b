/* NAME a probe has 32 native arguments at most
 * TAG D_PROV_PRARGLEN
 */
provider p {
	probe a(int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
	    int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int);
};
