/* NAME an action is no value of ?:
 * TAG D_OP_ACT
 */
BEGIN { pid ? trace(1) : trace(2); }
