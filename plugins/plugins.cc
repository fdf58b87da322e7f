// The plug-ins of <perdix/tips_indexes.h>.
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include <perdix/tips_indexes.h>

#include "plugins/all.h"
#include "plugins/art.h"
#include "plugins/bst.h"
#include "plugins/clht.h"
#include "plugins/lfbst.h"
#include "plugins/lfhash.h"

namespace perdix::tips {
namespace {

/// An index, by the name that pools know since it was a part of the library.
template <class Tag, template <class, class> class Index>
struct Both {
  static constexpr std::string_view kName = Tag::kEngine.substr(sizeof "tips:" - 1);
  static constexpr PluginOf<Index<Durable, IntegerKeys>> kIntegers{kName, Kind::u64};
  static constexpr PluginOf<Index<Durable, StringKeys>> kStrings{kName, Kind::bytes};
};

using BothBst = Both<Bst, plugins::Bst>;
using BothArt = Both<Art, plugins::Art>;
using BothClht = Both<Clht, plugins::Clht>;
using BothLfHash = Both<LfHash, plugins::LfHash>;
using BothLfBst = Both<LfBst, plugins::LfBst>;

template <class... Some>
constexpr std::array<const Plugin*, 2 * sizeof...(Some)> kList = {&Some::kIntegers...,
                                                                  &Some::kStrings...};

std::vector<const Plugin*> copy(std::span<const Plugin* const> list) {
  return {list.begin(), list.end()};
}

}  // namespace

std::vector<const Plugin*> Bst::plugins() { return copy(kList<BothBst>); }
std::vector<const Plugin*> Art::plugins() { return copy(kList<BothArt>); }
std::vector<const Plugin*> Clht::plugins() { return copy(kList<BothClht>); }
std::vector<const Plugin*> LfHash::plugins() { return copy(kList<BothLfHash>); }
std::vector<const Plugin*> LfBst::plugins() { return copy(kList<BothLfBst>); }

std::span<const Plugin* const> plugins::all() noexcept {
  return kList<BothBst, BothArt, BothClht, BothLfHash, BothLfBst>;
}

std::vector<const Plugin*> further_plugins() { return copy(plugins::all()); }

}  // namespace perdix::tips
