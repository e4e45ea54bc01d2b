/* NAME a constant index lies in a member's array
 * TAG D_ARR_BOUNDS
 */
struct s { int n; int a[4]; int after; };
this struct s z;
BEGIN { this->z.a[4] = 1; }
