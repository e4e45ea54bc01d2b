/* NAME a header that is not there is an error
 * OPTIONS -C  EXIT 1
 */
#include "nowhere.h"
BEGIN { exit(0); }
/* STDERR
 * nowhere.h
 */
