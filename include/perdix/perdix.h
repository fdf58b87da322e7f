// perdix: crash-proof indexes. This header includes all of the public interface.
#pragma once

#include <perdix/argument.h>
#include <perdix/arrow_abi.h>
#include <perdix/bus_errors.h>
#include <perdix/cceh.h>
#include <perdix/change.h>
#include <perdix/cursor.h>
#include <perdix/elf.h>
#include <perdix/elf_table.h>
#include <perdix/elimda.h>
#include <perdix/error.h>
#include <perdix/fastfair.h>
#include <perdix/index.h>
#include <perdix/key_range.h>
#include <perdix/nbtree.h>
#include <perdix/ordered_index.h>
#include <perdix/point_index.h>
#include <perdix/pool.h>
#include <perdix/skiplist.h>
#include <perdix/sptree.h>
#include <perdix/tips.h>
#include <perdix/tips_of.h>
#include <perdix/tips_plugin.h>
#include <perdix/types.h>
