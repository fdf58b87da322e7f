// All members of Map (elimda.h), except those of check.cc. Included by the files map_*.cc, each of
// which instantiates Map for one combination of kinds.
#pragma once

#include "index/elimda/destroy.h"
#include "index/elimda/elimda.h"
#include "index/elimda/for_each.h"
#include "index/elimda/get_many.h"
#include "index/elimda/insert.h"
#include "index/elimda/modify.h"
#include "index/elimda/recovery.h"
#include "index/elimda/relocate.h"
#include "index/elimda/resumer.h"
#include "index/elimda/search.h"
#include "index/elimda/smo.h"
