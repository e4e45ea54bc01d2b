/* NAME a program without clauses is an error
 * TAG D_EMPTY
 * SKIP the command accepts it
 */
int number;
