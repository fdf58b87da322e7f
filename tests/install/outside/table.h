// A hash table of integer keys in C: an index that Tips makes durable.
#pragma once

#include <perdix/tips_c.h>

extern const perdix_tips_plugin hash_table;
