// The engines of this release: a line each.
#include <array>

#include "index/cceh/cceh.h"
#include "index/elf/elf.h"
#include "index/elf_table/elf_table.h"
#include "index/elimda/elimda.h"
#include "index/engine.h"
#include "index/fastfair/fastfair.h"
#include "index/nbtree/nbtree.h"
#include "index/pairs_engine.h"
#include "index/points_engine.h"
#include "index/skiplist/skiplist.h"
#include "index/sptree/sptree.h"
#include "index/tips/tips.h"
#include "index/tips_of/tips_of.h"

namespace perdix::detail::index {
namespace {

constexpr std::array kEngines = {
    pairs_engine<sptree::Tree>(sptree::kEngineName,
                               {.ordered = true, .buffers = true, .resumes = true}),
    pairs_engine<fastfair::Tree>(fastfair::kEngineName, {.ordered = true}),
    pairs_engine<nbtree::Tree>(nbtree::kEngineName, {.ordered = true, .resumes = true}),
    pairs_engine<elimda::Map>(elimda::kEngineName, {.resumes = true, .inserts_ahead = true}),
    pairs_engine<cceh::Map>(cceh::kEngineName, {}),
    pairs_engine<skiplist::List>(skiplist::kEngineName, {.ordered = true}),
    points_engine<elf::Table>(elf::kEngineName),
    points_engine<elf_table::Table>(elf_table::kEngineName),
    pairs_engine<tips::Map>(tips::kHashEngine, {}),
    pairs_engine<tips::OrderedMap>(tips::kBstEngine, {.ordered = true}),
    pairs_engine<tips::OrderedMap>(tips::kBTreeEngine, {.ordered = true}),
    pairs_engine<tips::OrderedMap>(tips::kArtEngine, {.ordered = true}),
    pairs_engine<tips::Map>(tips::kClhtEngine, {}),
    pairs_engine<tips::Map>(tips::kLfHashEngine, {}),
    pairs_engine<tips::OrderedMap>(tips::kLfBstEngine, {.ordered = true}),
    points_engine<tips_of::Table>(tips_of::kEngineName, DataModel::container),
};

// Of the plug-ins that a pool was opened with; their names differ.
constexpr EngineType kPlugged = pairs_engine<tips::Map>(tips::kEnginePrefix, {});
constexpr EngineType kPluggedOrdered =
    pairs_engine<tips::OrderedMap>(tips::kEnginePrefix, {.ordered = true});

}  // namespace

std::span<const EngineType> built_in_engines() { return kEngines; }

const EngineType& plugged_engine(bool ordered) { return ordered ? kPluggedOrdered : kPlugged; }

}  // namespace perdix::detail::index
