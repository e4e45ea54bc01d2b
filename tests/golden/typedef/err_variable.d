/* NAME a variable does not take the name of a type
 * TAG D_DECL_IDRED
 */
typedef int number_t;
int number_t;
