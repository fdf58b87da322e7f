// The members of Map but for those of check.cc, for the files that instantiate it.
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
