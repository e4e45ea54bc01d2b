/* NAME a type does not take the name of a variable
 * TAG D_DECL_IDRED
 */
int number_t;
typedef int number_t;
