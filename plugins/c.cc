// The way of the plug-ins into C (<perdix/tips_indexes_c.h>).
#include <perdix/tips_indexes_c.h>

#include "plugins/all.h"

int perdix_tips_add_indexes(void) { return perdix::tips::add_for_c(perdix::tips::plugins::all()); }
