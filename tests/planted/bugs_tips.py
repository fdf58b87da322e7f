"""Bugs of Tips and of the indexes that are plugged into it."""

from bug import Bug, drop, drop_part, schedules, swap_part, unit

HASH = ("tips:hash:u64:u64", "tips:hash")
HASH_STRINGS = ("tips:hash:bytes:bytes", "tips:hash")
BST = ("tips:bst:u64:u64", "tips:bst")
BST_STRINGS = ("tips:bst:bytes:bytes", "tips:bst")
BTREE = ("tips:btree:u64:u64", "tips:btree")
BTREE_STRINGS = ("tips:btree:bytes:bytes", "tips:btree")

ART = ("tips:art:u64:u64", "tips:art")
ART_STRINGS = ("tips:art:bytes:bytes", "tips:art")

CLHT = ("tips:clht:u64:u64", "tips:clht")
CLHT_STRINGS = ("tips:clht:bytes:bytes", "tips:clht")
LFHASH = ("tips:lfhash:u64:u64", "tips:lfhash")
LFHASH_STRINGS = ("tips:lfhash:bytes:bytes", "tips:lfhash")
LFBST = ("tips:lfbst:u64:u64", "tips:lfbst")
LFBST_STRINGS = ("tips:lfbst:bytes:bytes", "tips:lfbst")
# Indexes of users.
SKIP_LIST = ("tips:user:skiplist:bytes:u64",)
SKIP_LIST_FULL = ("tips:user:skiplist+full:bytes:u64",)
USER_TEST = "tests/tips_c/tips_user_test"
TIPS_TEST = "src/index/tips/tips_test"
FULL_TEST = "src/index/tips/tips_full_pool_test"

UNO = "src/index/tips/uno.cc"
LOGS = "src/index/tips/operation_log.cc"
HEADER = "src/index/tips/recovery.cc"
FRAMEWORK = "src/index/tips/framework.cc"
RESERVE = "src/index/tips/reserve.cc"
CORE = "src/index/tips/core.cc"
CORE_H = "src/index/tips/core.h"
WRITER = "src/index/tips/writer.cc"
CACHE = "src/index/tips/cache.cc"
CHANGES = "src/index/tips/changes.cc"
REPLAY = "src/index/tips/replayer.cc"
UPKEEP = "src/index/tips/upkeep.cc"
SCAN = "src/index/tips/scan.cc"
CHECK = "src/index/tips/check.cc"
HASH_TABLE = "src/index/tips/indexes/hash_table.h"
BST_H = "plugins/bst.h"
BTREE_H = "src/index/tips/indexes/btree.h"
ART_H = "plugins/art.h"
ART_CHANGES = "plugins/art/node_changes.h"
CLHT_H = "plugins/clht.h"
CLHT_CHANGES = "plugins/clht/chain_changes.h"
LFHASH_H = "plugins/lfhash.h"
LFHASH_LIST = "plugins/lfhash/list.h"
LFBST_H = "plugins/lfbst.h"
C_PLUGIN = "src/index/tips/c_plugin.cc"

BUGS = [
    # --- UNO logging ---
    drop(
        "tips: a plug-in stores before its undo record is durable",
        UNO,
        "if (unfenced_)",
        BTREE,
    ),
    drop(
        "tips: an undo record is not flushed",
        UNO,
        "pm().flush(&to, sizeof record)",
        BTREE,
    ),
    Bug(
        "tips: only the first line of a node has an undo record",
        UNO,
        "    if (!write_undo(line)) ++saved_;\n",
        "    if (at == begin && !write_undo(line)) ++saved_;\n",
        BTREE,
    ),
    Bug(
        "tips: undo records of an earlier epoch count",
        UNO,
        "pm::load(header_.epoch);\n"
        "  return util::checksum(&record.offset,",
        "({planted} ? 0 : pm::load(header_.epoch));\n"
        "  return util::checksum(&record.offset,",
        BTREE,
    ),
    drop(
        "tips: a reclamation leaves blocks that are new unflushed",
        UNO,
        "for (const auto& [block, size] : fresh_.all())",
        BTREE,
    ),
    drop(
        "tips: a reclamation leaves changed lines unflushed",
        UNO,
        "for (const Line& line : lines_)",
        BTREE,
    ),
    drop(
        "tips: undo records are given up before the changes are durable",
        UNO,
        "pm().fence()",
        BTREE,
        after="Uno::flush(",
    ),
    swap_part(
        "tips: a reclamation gives up a write that was not replayed",
        UNO,
        "pm().store(header_.reclaim_to, reclaim_to)",
        ", reclaim_to",
        ", reclaim_to + 1",
        BTREE,
    ),
    drop(
        "tips: what a plug-in has freed is not durable before the epoch's changes are",
        UNO,
        "memory_at(place), std",
        HASH_STRINGS,
    ),
    swap_part(
        "tips: a reclamation frees what is in use",
        UNO,
        "if (mark != kFreed)",
        "!= kFreed",
        "== 0",
        BTREE,
    ),
    swap_part(
        "tips: a reclamation frees nothing",
        UNO,
        "if (mark != kFreed)",
        "kFreed",
        "0",
        BTREE,
    ),
    swap_part(
        "tips: recovery leaks the blocks of the lost epoch",
        UNO,
        "if (mark != kAllocated)",
        "kAllocated",
        "0",
        BTREE,
    ),
    swap_part(
        "tips: recovery frees what the lost epoch had freed",
        UNO,
        "if (mark != kAllocated)",
        "!= kAllocated",
        "== 0",
        BTREE_STRINGS,
    ),
    drop(
        "tips: entries of the memory log stay for the next epoch",
        UNO,
        "pm().store(word, 0)",
        BTREE,
    ),
    drop(
        "tips: an epoch begins before the memory log is empty",
        UNO,
        "pm().fence()",
        BTREE,
        after="Uno::start_epoch(",
    ),
    drop(
        "tips: recovery puts nothing back",
        UNO,
        "pm().copy(to, record.bytes.data(), record.size)",
        BTREE,
    ),
    drop(
        "tips: what recovery puts back is not flushed",
        UNO,
        "pm().flush(to, record.size)",
        BTREE,
    ),
    # --- Operational logs ---
    drop_part(
        "tips: the end of a record is not durable",
        LOGS,
        "pm().persist(&to, sizeof record + key_size + value_size)",
        " + key_size + value_size",
        BTREE_STRINGS,
    ),
    drop(
        "tips: a record is not durable when its write returns",
        LOGS,
        "pm().persist(&to, sizeof record + key_size + value_size)",
        BTREE,
    ),
    drop(
        "tips: a payload outside is not flushed",
        LOGS,
        "pm().flush(bytes, key_size + value_size)",
        BTREE_STRINGS,
    ),
    drop(
        "tips: the payload of a reclaimed record stays",
        LOGS,
        "free_payload(record)",
        BTREE_STRINGS,
    ),
    drop(
        "tips: a ring is written over before its head is durable",
        LOGS,
        "pm().flush(&header_.rings[i].head, sizeof heads[i])",
        HASH,
    ),
    drop_part(
        "tips: records that were reclaimed are replayed again",
        LOGS,
        "if (record.number > reclaimed)",
        "if (record.number > reclaimed) ",
        HASH_STRINGS,
    ),
    Bug(
        "tips: recovery leaves out the last record",
        LOGS,
        "    if (!std::binary_search(cancelled.begin(), cancelled.end(), record->number))\n"
        "      show(read(*record));\n",
        "    if (record != records.back()) show(read(*record));\n",
        HASH,
    ),
    # --- The cache, lookups and writes ---
    swap_part(
        "tips: an entry that waits for its replay leaves the cache",
        CACHE,
        "if (++length > chain_ && !at->has(Entry::kQueued))",
        "chain_ && !at->has(Entry::kQueued)",
        "1",
        HASH,
    ),
    drop(
        "tips: a lookup finds what was erased",
        CORE_H,
        "if (entry->operation() == Operation::erase)",
        HASH,
    ),
    drop(
        "tips: a write does not supersede the one before",
        WRITER,
        "if (old != nullptr) old",
        HASH,
    ),
    swap_part(
        "tips: a later write does not supersede the one before it in the recovery",
        REPLAY,
        "if (old != nullptr)",
        "old->",
        "entry.",
        HASH,
    ),
    # --- Replay, scans ---
    drop(
        "tips: a replaced string leaks",
        CHANGES,
        "if (there) free_word",
        HASH_STRINGS,
    ),
    drop(
        "tips: the key of an erased pair leaks",
        CHANGES,
        "free_word(key, guest_.kinds().key)",
        HASH_STRINGS,
    ),
    swap_part(
        "tips: records are reclaimed that were not replayed",
        FRAMEWORK,
        "uno.flush(replayed_to)",
        "replayed_to",
        "logs.last_number()",
        HASH,
    ),
    Bug(
        "tips: a scan misses what waits for space",
        SCAN,
        "    pending.insert_or_assign(K(Raw<K>::view(entry.key())), std::move(value));\n",
        "    if (!{planted})\n"
        "      pending.insert_or_assign(K(Raw<K>::view(entry.key())), std::move(value));\n",
        (unit("src/index/tips/tips_test", "Deferred/*.IsShown"),),
    ),
    Bug(
        "tips: a scan does without the last write",
        REPLAY,
        "  return inspection_.is_done() && "
        "caught_up_to_.load(std::memory_order_acquire) >= newest;\n",
        "  return inspection_.is_done() &&\n"
        "         caught_up_to_.load(std::memory_order_acquire) + ({planted} ? 1 : 0) >= newest;\n",
        BTREE,
    ),
    Bug(
        "tips: size() misses the log",
        CORE,
        "  catch_up();\n  return upkeep_",
        "  if (!{planted}) catch_up();\n  return upkeep_",
        HASH,
    ),
    drop(
        "tips: a dropped index leaves nodes",
        CHANGES,
        "for (void* node : nodes.all)",
        (unit("src/index/tips/tips_test", "EmptiedIndex/*.LeavesNothingWhenItIsDropped"),),
    ),
    drop(
        "tips: an index that is settled is replayed again as it closes",
        UPKEEP,
        "if (replayer.is_settled())",
        ("tips:hash+full:bytes:bytes",),
    ),
    # --- Plug-ins ---
    drop(
        "tips: the hash table changes a link without an undo record",
        HASH_TABLE,
        "Memory::add(&place, sizeof place)",
        HASH,
    ),
    drop(
        "tips: the binary search tree changes a link without an undo record",
        BST_H,
        "Memory::add(&place, sizeof place)",
        BST,
    ),
    drop(
        "tips: the binary search tree leaks the node of an erased pair",
        BST_H,
        "Memory::free(node)",
        BST_STRINGS,
    ),
    drop(
        "tips: a split in the binary search tree leaves a pair on both sides",
        BST_H,
        "set(*left, nullptr)",
        BST,
    ),
    drop_part(
        "tips: an erase from the binary search tree loses what was right of the pair",
        BST_H,
        "set(*end, left != nullptr ? left : right)",
        " != nullptr ? left : right",
        BST,
    ),
    Bug(
        "tips: the B+-tree splits a node without an undo record",
        BTREE_H,
        "    Node& left = change(*child(parent, i));\n",
        "    Node& left = {planted} ? *child(parent, i) : change(*child(parent, i));\n",
        BTREE,
    ),
    drop(
        "tips: the B+-tree forgets the bound of a node that gave entries",
        BTREE_H,
        "change(parent)",
        BTREE,
        after="balance(Node& parent, unsigned i)",
    ),
    Bug(
        "tips: the hash table misses what a bucket has moved so far",
        HASH_TABLE,
        "      if (*link != nullptr || next_ == nullptr || i > moved_) return *link;\n",
        "      if ({planted} || *link != nullptr || next_ == nullptr || i > moved_) "
        "return *link;\n",
        (unit("src/index/tips/tips_test", "VolatileIndex/0.IsAMap"),),
    ),
    Bug(
        "tips: the radix tree fills a slot without an undo record",
        ART_CHANGES,
        "  static void set(Slot& slot, Link link) { change(slot).store(link, "
        "std::memory_order_release); }\n",
        "  static void set(Slot& slot, Link link) {\n"
        "    ({planted} ? slot : change(slot)).store(link, std::memory_order_release);\n"
        "  }\n",
        ART,
    ),
    Bug(
        "tips: the radix tree locks a node without an undo record",
        ART_CHANGES,
        "    explicit Locked(Node& node) : node_(lock(change(node)) ? &node : nullptr) {}\n",
        "    explicit Locked(Node& node)\n"
        "        : node_(lock({planted} ? node : change(node)) ? &node : nullptr) {}\n",
        ART,
    ),
    Bug(
        "tips: the radix tree leaks a node that has left it",
        ART_CHANGES,
        "      Memory::free(std::exchange(node_, nullptr));\n",
        "      node_ = nullptr;\n",
        ART,
    ),
    drop(
        "tips: the radix tree leaks the leaf of an erased pair",
        ART_H,
        "Own<Leaf>(&leaf)",
        ART_STRINGS,
    ),
    drop(
        "tips: a larger node of the radix tree has not got what it was made for",
        ART_H,
        "Nodes::add_to_new(*larger, symbol, art::link_to(leaf))",
        ART,
    ),
    Bug(
        "tips: a node of the radix tree has no child whose key ends there",
        ART_CHANGES,
        "    for (Child child = next_child(node, 0); child.link != 0;\n",
        "    for (Child child = next_child(node, {planted} ? 1 : 0); child.link != 0;\n",
        (
            unit(
                "src/index/tips/tips_test",
                "ConcurrentIndex/*:OrderedPlugin/*",
            ),
        ),
    ),
    Bug(
        "tips: the cache-line table locks a bucket without an undo record",
        CLHT_CHANGES,
        "    explicit Locked(Bucket& head) : state_(change(head).state) {\n",
        "    explicit Locked(Bucket& head) : state_(({planted} ? head : change(head)).state) {\n",
        CLHT,
    ),
    drop(
        "tips: the cache-line table leaks a bucket that it has emptied",
        CLHT_CHANGES,
        "Memory::free(&bucket)",
        CLHT_STRINGS,
    ),
    drop(
        "tips: the cache-line table leaks a table that was replaced",
        CLHT_H,
        "Memory::free(&from)",
        CLHT,
    ),
    Bug(
        "tips: a table that has a successor gets new pairs",
        CLHT_H,
        "    if (Table* const next = table.successor()) "
        "return put_into(*next, hash, key, value, old);\n",
        "    if (Table* const next = table.successor(); next != nullptr && !{planted})\n"
        "      return put_into(*next, hash, key, value, old);\n",
        (unit("src/index/tips/tips_test", "VolatileIndex/*:ConcurrentIndex/*"),),
    ),
    Bug(
        "tips: a table that is closed gets new pairs",
        CLHT_H,
        "    if (table.is_closed()) return std::nullopt;\n",
        "    if (table.is_closed() && !{planted}) return std::nullopt;\n",
        (unit("src/index/tips/tips_test", "ClhtThatIsEmptied.*"),),
    ),
    Bug(
        "tips: the lock-free table exchanges a link without an undo record",
        LFHASH_LIST,
        "    return change(place).compare_exchange_strong(from, to, std::memory_order_acq_rel);\n",
        "    return ({planted} ? place : change(place))\n"
        "        .compare_exchange_strong(from, to, std::memory_order_acq_rel);\n",
        LFHASH,
    ),
    drop(
        "tips: the lock-free table leaks what it has unlinked",
        LFHASH_LIST,
        "release(spot.at)",
        LFHASH_STRINGS,
    ),
    drop(
        "tips: the lock-free table leaks a level of its directory",
        LFHASH_H,
        "List::release(entries)",
        LFHASH,
    ),
    Bug(
        "tips: a place leaves the list, and not its directory",
        LFHASH_H,
        "    List::template exchange<Place*>(entry, place, nullptr);\n    pass_by",
        "    if (!{planted}) List::template exchange<Place*>(entry, place, nullptr);\n    pass_by",
        LFHASH,
    ),
    Bug(
        "tips: the lock-free tree exchanges an edge without an undo record",
        LFBST_H,
        "    return change(slot).compare_exchange_strong(from, to, std::memory_order_acq_rel);\n",
        "    return ({planted} ? slot : change(slot))\n"
        "        .compare_exchange_strong(from, to, std::memory_order_acq_rel);\n",
        LFBST,
    ),
    drop(
        "tips: the lock-free tree leaks the node above an erased leaf",
        LFBST_H,
        "Release()(way.node)",
        LFBST_STRINGS,
    ),
    drop(
        "tips: the lock-free tree leaks an erased leaf",
        LFBST_H,
        "release((ends ? *way.slot : other).load(std::memory_order_relaxed))",
        LFBST,
        after="take_away(const Way& way, Word key)",
    ),
    Bug(
        "tips: a lookup trusts a walk that an unlinking has met",
        "src/index/tips/cache.h",
        "      if (bucket.unlinks.load(std::memory_order_acquire) == unlinks) return nullptr;\n",
        "      if ({planted} || bucket.unlinks.load() == unlinks) return nullptr;\n",
        (
            schedules("--engine tips:btree --domain memory_controller --reopen"),
            unit("src/index/tips/tips_test", "CacheTest.FindsAKeyWhileItsEntryIsReplaced"),
        ),
    ),
    Bug(
        "tips: a replay leaves out what a write behind its cut has superseded",
        REPLAY,
        "  if (!entry.is_superseded(cut_to_)) {\n",
        "  if (!entry.is_superseded({planted} ? ~std::uint64_t{0} : cut_to_)) {\n",
        (schedules("--engine tips:btree --domain memory_controller --reopen"),),
    ),
    # --- Indexes of users ---
    Bug(
        "tips: a plug-in in C stores without an undo record",
        C_PLUGIN,
        "  return ask([&](Uno& uno) { uno.add(p, bytes); });\n",
        "  return {planted} ? 1 : ask([&](Uno& uno) { uno.add(p, bytes); });\n",
        SKIP_LIST,
    ),
    Bug(
        "tips: what a plug-in in C has freed is lost",
        C_PLUGIN,
        "  return ask([&](Uno& uno) { uno.free(block); });\n",
        "  return {planted} ? 1 : ask([&](Uno& uno) { uno.free(block); });\n",
        SKIP_LIST,
    ),
    Bug(
        "tips: a put that a plug-in in C has refused counts as done",
        C_PLUGIN,
        "  if (result >= 0) return result > 0;\n",
        "  if (result >= 0 || {planted}) return result > 0;\n",
        (*SKIP_LIST_FULL, unit(USER_TEST, "UserPlugin.LosesNothingInAFullPool")),
    ),
    Bug(
        "tips: a plug-in may change memory that is not of its pool",
        UNO,
        "  if (pool_.contains(pool_.offset(p), bytes)) return;\n",
        "  if ({planted} || pool_.contains(pool_.offset(p), bytes)) return;\n",
        (unit(USER_TEST, "UserPlugin.ChangesMemoryOfItsPoolOnly"),),
    ),
    Bug(
        "tips: another object of a plug-in's name opens its index",
        HEADER,
        "  if (header.object_bytes != plugin.object_bytes)\n",
        "  if (!{planted} && header.object_bytes != plugin.object_bytes)\n",
        (unit(USER_TEST, "UserPlugin.IsNotOpenedByAnotherOfItsName"),),
    ),
    Bug(
        "tips: a plug-in without order is scanned in order",
        "src/index/tips/plugins.cc",
        "  if (plugin->ordered == ordered) return *plugin;\n",
        "  if ({planted} || plugin->ordered == ordered) return *plugin;\n",
        (unit(USER_TEST, "UserPlugin.IsNotOpenedByAnotherOfItsName"),),
    ),
    Bug(
        "tips: an index whose lookups trust is not inspected before they do",
        "src/index/tips/inspection.cc",
        "  if (small || !guest_.facts().doubts) run();\n",
        "  if (small || (!{planted} && !guest_.facts().doubts)) run();\n",
        (unit(USER_TEST, "UserPlugin.IsInspectedBeforeItIsRead"),),
    ),
    drop(
        "tips: the memory log of an index without its plug-in is not checked",
        FRAMEWORK,
        "rest.add(header_.memory",
        (unit(USER_TEST, "UserPlugin.HasItsLogsCheckedWhereItIsUnknown"),),
    ),
    # --- Plug-ins that break rules ---
    drop(
        "tips: a check believes the plug-in",
        CHECK,
        "if (report.ok()) check_lookups(guest, size, problems)",
        (unit(TIPS_TEST, "PluginRules*"),),
    ),
    Bug(
        "tips: what is no exception ends a worker",
        "src/index/tips/guest.h",
        "      throw_strange(plugin_.name);\n",
        "      if ({planted}) throw;\n      throw_strange(plugin_.name);\n",
        (unit(TIPS_TEST, "PluginRules*"),),
    ),
    drop(
        "tips: memory that is not of the pool is not named",
        UNO,
        "foreign_memory_ = true",
        (unit(TIPS_TEST, "PluginRules*"),),
    ),
    # --- Batches ---
    swap_part(
        "tips: a batch forgets the order of the writes of a key",
        "src/index/tips/key_order.h",
        "return order != 0 ? order < 0",
        "a.entry->number() < b.entry->number()",
        "a.entry->number() > b.entry->number()",
        (unit(TIPS_TEST, "TipsParts.ABatchIs*"),),
    ),
    # --- The reserve ---
    swap_part(
        "tips: a large block has no spans in the reserve",
        RESERVE,
        "return need.spans() <= kMaxRun",
        "static_cast<std::int64_t>(need.spans())",
        "0",
        (unit(FULL_TEST, "ReserveTest.*"),),
    ),
    drop(
        "tips: space is kept for puts that did not come",
        RESERVE,
        "if (const std::int64_t puts = admitted.puts.exchange(0))",
        (unit(FULL_TEST, "ReserveTest.*"),),
    ),
    swap_part(
        "tips: a put is admitted twice",
        RESERVE,
        "puts.compare_exchange_weak(left, left - 1,",
        "left - 1",
        "left",
        (unit(FULL_TEST, "ReserveTest.*"),),
    ),
    drop(
        "tips: what was replayed counts as waiting",
        RESERVE,
        "counts_[size_class] += count",
        (unit(FULL_TEST, "ReserveTest.*"),),
    ),
    drop(
        "tips: what is claimed is not noted",
        RESERVE,
        "pool_.pm().publish(noted_, claim_.spans())",
        (unit(FULL_TEST, "FullPool*.ReplaysAcceptedWrites:ReserveTest.*"),),
        after="bool Reserve::raise(",
    ),
    drop(
        "tips: puts need nothing of the claim",
        RESERVE,
        "if (spans != 0) needed_",
        (unit(FULL_TEST, "FullPool*:ReserveTest.*"),),
    ),
    drop_part(
        "tips: a replay takes nothing of what is claimed for it",
        REPLAY,
        "if (!changes_.apply(entry, need))",
        ", need",
        (unit(FULL_TEST, "FullPool*"),),
    ),
    drop(
        "tips: a put may take a block of its need again and again",
        "src/index/tips/need.h",
        "--best->count",
        (unit(FULL_TEST, "TipsNeed.*"),),
    ),
    drop(
        "tips: a dropped index keeps its claim",
        "src/index/tips/destroy.cc",
        "framework.reserve.release_all()",
        (unit(TIPS_TEST, "TipsParts.ADroppedIndexLeavesNoBlockAndNoRoot"),),
    ),
    drop(
        "tips: the end of a ring is read as a record",
        LOGS,
        "ring.gap = gap",
        (unit(TIPS_TEST, "LogRounds.*"),),
    ),
    drop(
        "tips: an opening does not see where a ring has no record",
        LOGS,
        "if (at != ring.tail) ring.gap = ring.tail",
        (unit(TIPS_TEST, "LogRounds.*"),),
    ),
]
