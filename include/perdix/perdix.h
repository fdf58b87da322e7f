// perdix: crash-proof indexes. This header includes what most programs use. The indexes of papers
// that are there to be compared are in <perdix/papers/...>.
#pragma once

#include <perdix/argument.h>
#include <perdix/arrow_abi.h>
#include <perdix/bus_errors.h>
#include <perdix/cceh.h>
#include <perdix/change.h>
#include <perdix/cursor.h>
#include <perdix/elf.h>
#include <perdix/elf_table.h>
#include <perdix/error.h>
#include <perdix/index.h>
#include <perdix/key_range.h>
#include <perdix/map.h>
#include <perdix/ordered_index.h>
#include <perdix/point_index.h>
#include <perdix/pool.h>
#include <perdix/sptree.h>
#include <perdix/tips.h>
#include <perdix/tips_of.h>
#include <perdix/tips_plugin.h>
#include <perdix/types.h>
