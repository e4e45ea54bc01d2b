/* NAME in a script a description needs a predicate or actions
 * TAG D_SYNTAX
 */
BEGIN
