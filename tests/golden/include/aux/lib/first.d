#pragma D depends_on library second.d
inline int first = second + 1;
