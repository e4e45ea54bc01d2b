/* NAME a keyword is no name
 * TAG D_SYNTAX
 */
BEGIN { int = 1; }
