/* NAME there is no translator to an integer
 * TAG D_XLATE_NONE
 */
struct s { int a; };
translator struct s < int x > { a = x; };
BEGIN { trace(xlate<int>(1)); }
