// Instantiates the engine. Its members are in the headers that elimda.h lists.
#include "index/elimda/elimda.h"

#include "index/elimda/check.h"
#include "index/elimda/destroy.h"
#include "index/elimda/for_each.h"
#include "index/elimda/get_many.h"
#include "index/elimda/insert.h"
#include "index/elimda/modify.h"
#include "index/elimda/more_logs.h"
#include "index/elimda/recovery.h"
#include "index/elimda/relocate.h"
#include "index/elimda/resumer.h"
#include "index/elimda/search.h"
#include "index/elimda/smo.h"

namespace perdix::detail::index::elimda {

template class WordIndex<std::uint64_t>;
template class WordIndex<std::string>;

}  // namespace perdix::detail::index::elimda
