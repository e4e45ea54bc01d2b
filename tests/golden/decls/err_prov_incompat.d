/* NAME two declarations of a provider agree
 * TAG D_PROV_INCOMPAT
 */
provider p { probe a(); };
provider p { probe a(); };
