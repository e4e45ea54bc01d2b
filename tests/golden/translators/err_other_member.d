/* NAME a translator has what it defines only
 * TAG D_XLATE_NOCONV
 */
struct s { int a; };
translator struct s < int x > { a = x; };
BEGIN { trace(xlate<struct s>(1).c); }
