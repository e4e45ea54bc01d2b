/* NAME a pointer to void is not added to
 * TAG D_OP_VFPTR
 */
BEGIN { this->p = (void *)arg0; this->p += 1; }
