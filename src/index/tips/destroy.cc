#include "index/tips/destroy.h"

#include <vector>

#include <perdix/tips.h>

#include "index/common/retry.h"
#include "index/tips/changes.h"
#include "index/tips/framework.h"
#include "index/tips/guest.h"
#include "index/tips/inspection.h"
#include "index/tips/recovery.h"

namespace perdix::detail::index::tips {
namespace {

/// Some keys of an index, which a scan or a walk shows.
struct SomeKeys {
  static constexpr std::size_t kAtOnce = 64;

  std::vector<Word> keys;
  bool ordered;

  static bool add(void* context, Word key, Word) {
    auto& some = *static_cast<SomeKeys*>(context);
    some.keys.push_back(key);
    return !some.ordered || some.keys.size() < kAtOnce;
  }
};

/// Removes all pairs by the plug-in's own erase, which leaves a sound index at each crash. No
/// record up to `last` matters any more.
void erase_everything(const Guest& guest, Changes& changes, Framework& framework,
                      std::uint64_t last) {
  const bool ordered = guest.facts().ordered;
  const unsigned undo_records = TipsOptions{}.undo_records;
  std::uint64_t position = 0;
  for (SomeKeys some{{}, ordered};; some.keys.clear()) {
    if (ordered)
      guest.scan(nullptr, &some, SomeKeys::add);
    else
      position = guest.walk(position, &some, SomeKeys::add);
    for (const Word wanted : some.keys) {
      // A full pool has no more for the logs.
      if (framework.uno.is_due(undo_records) || !framework.uno.has_room()) framework.reclaim(last);
      changes.erase(wanted);
    }
    framework.reclaim(last);
    if (ordered ? some.keys.empty() : position == 0) return;
  }
}

}  // namespace

void destroy(pool::PoolCore& pool, std::uint64_t& root, Kinds kinds) {
  if (pm::load(root) == pm::kNull) return;
  const Plugin& plugin = plugin_behind(pool, header_at(pool, pm::load(root)), kinds.key);
  Header& header = open_header(pool, root, plugin, 0);
  Framework framework(pool, root, header);
  framework.reserve.release_all();
  Guest guest(plugin, object_behind(header), kinds);
  retry_when_full(pool, [&] { framework.roll_back_or_finish(); });
  guest.renew_locks();
  Inspection(pool, guest, framework.uno).run();
  framework.logs.recover([](const LoggedWrite&) {});  // finds the rings
  const std::uint64_t last = framework.logs.last_number();
  Changes changes(pool, guest, framework.uno);
  erase_everything(guest, changes, framework, last);
  changes.clear();
  framework.reclaim(last);
  DroppedBlocks dropped(pool.allocator());
  framework.walk(dropped);
}

}  // namespace perdix::detail::index::tips
