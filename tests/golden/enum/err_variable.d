/* NAME nor can a variable have an enumerator's
 * TAG D_DECL_IDRED
 */
enum e { xx = 3 };
int xx;
