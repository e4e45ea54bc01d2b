/* NAME a program without clauses is an error
 * TAG D_EMPTY
 */
int number;
