// The plug-ins of <perdix/tips_indexes.h>, and their way into C.
#include <exception>

#include <perdix/tips_c.h>
#include <perdix/tips_indexes.h>
#include <perdix/tips_indexes_c.h>

#include "plugins/art.h"
#include "plugins/bst.h"
#include "plugins/clht.h"
#include "plugins/lfbst.h"
#include "plugins/lfhash.h"

namespace perdix::tips {
namespace {

/// Those of an index, by the name that pools know since it was a part of the library.
template <class Tag, template <class, class> class Index>
std::vector<const Plugin*> both() {
  constexpr std::string_view kName = Tag::kEngine.substr(sizeof "tips:" - 1);
  static constexpr PluginOf<Index<Durable, IntegerKeys>> kIntegers(kName, Kind::u64);
  static constexpr PluginOf<Index<Durable, StringKeys>> kStrings(kName, Kind::bytes);
  return {&kIntegers, &kStrings};
}

}  // namespace

std::vector<const Plugin*> Bst::plugins() { return both<Bst, plugins::Bst>(); }
std::vector<const Plugin*> Art::plugins() { return both<Art, plugins::Art>(); }
std::vector<const Plugin*> Clht::plugins() { return both<Clht, plugins::Clht>(); }
std::vector<const Plugin*> LfHash::plugins() { return both<LfHash, plugins::LfHash>(); }
std::vector<const Plugin*> LfBst::plugins() { return both<LfBst, plugins::LfBst>(); }

std::vector<const Plugin*> further_plugins() {
  std::vector<const Plugin*> all;
  for (const auto& some :
       {Bst::plugins(), Art::plugins(), Clht::plugins(), LfHash::plugins(), LfBst::plugins()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace perdix::tips

int perdix_tips_add_indexes(void) try {
  return perdix::tips::add_for_c(perdix::tips::further_plugins());
} catch (const std::exception&) {  // the list found no memory
  return -PERDIX_NO_MEMORY;
}
