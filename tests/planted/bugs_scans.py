"""Bugs of the orders that scans keep (src/index/common/scan_orders.h), and of what cursors read
ahead (read_beyond.h). Unit tests must notice them: the explorer and the schedule fuzzer scan too
little between the changes of one leaf."""

from bug import (
    FAIR_SCAN,
    LEAF_ORDERS,
    MIDDLE_NODES,
    NB_MEMORY,
    NB_SCAN,
    NB_TREE,
    READ_BEYOND,
    SCAN_ORDERS,
    SPTREE,
    STRUCTURE,
    Bug,
    drop,
    drop_part,
    swap_part,
    unit,
)

BELOW = (unit("tests/conformance/perdix_conformance", "*_bytes_*.steps_down_pass_over_no_leaf"),)
READS = (unit("src/index/common/index_common_test", "ReadBeyond*"),)
BATCHES = (unit("src/index/common/index_common_test", "BatchTest*"),)
ORDERS = (unit("src/index/common/index_common_test", "*ScanOrders*:PlacesTest*"),)
SP_SCANS = (unit("src/index/sptree/sptree_test", "SpTreeScan*"),)
NB_SCANS = (unit("src/index/nbtree/nbtree_test", "NbTreeScan*"),)

BUGS = [
    Bug(
        "scans: an order counts after its leaf has changed",
        SCAN_ORDERS,
        "    return before == stamp && changes_.load(std::memory_order_relaxed) == changes;\n",
        "    return changes_.load(std::memory_order_relaxed) == changes && before < kChanging;\n",
        SP_SCANS + NB_SCANS,
    ),
    drop_part(
        "scans: an order is used while another thread changes it",
        SCAN_ORDERS,
        "return before == stamp",
        " && changes_.load(std::memory_order_relaxed) == changes",
        ORDERS,
    ),
    drop(
        "scans: the number of changes of an order does not grow",
        SCAN_ORDERS,
        "changes_.store(",
        ORDERS,
    ),
    drop_part(
        "scans: an order with fresh places is never kept again",
        SCAN_ORDERS,
        "if (before == stamp && fresh_",
        " && fresh_.load(std::memory_order_relaxed) == 0",
        ORDERS,
    ),
    Bug(
        "scans: any number of places may be fresh",
        SCAN_ORDERS,
        "    const bool fits = size < room() && fresh < Places::kMaxFresh;\n",
        "    const bool fits = size < room() && ({planted} || fresh < Places::kMaxFresh);\n",
        ORDERS,
    ),
    drop(
        "scans: a fresh place that is removed counts on",
        SCAN_ORDERS,
        "--fresh_;",
        ORDERS + SP_SCANS,
        after="bool remove(PlaceInLeaf place)",
    ),
    drop(
        "scans: an erase that merges neighbours leaves the order of one of them",
        STRUCTURE,
        "parts_.leaf_orders.outdate(node)",
        SP_SCANS,
    ),
    drop(
        "scans: an erase leaves a gap in the order",
        SCAN_ORDERS,
        "      close_gap(at, size);",
        ORDERS,
    ),
    swap_part(
        "scans: an erase carries the order over with the pair that is gone",
        SPTREE,
        "parts_.leaf_orders.removed(node, slot)",
        "removed(node, slot)",
        "unchanged(node)",
        SP_SCANS,
    ),
    Bug(
        "scans: an order is carried over when the write buffer is merged",
        SPTREE,
        "  const bool alone = buffer == nullptr || !buffer->full();\n",
        "  const bool alone = {planted} || buffer == nullptr || !buffer->full();\n",
        SP_SCANS,
    ),
    drop(
        "scans: the pair that fills a gap in the write buffer keeps its former place",
        LEAF_ORDERS,
        "places.rename(",
        SP_SCANS,
    ),
    drop(
        "scans: new pairs are shown behind all others (SpTree)",
        LEAF_ORDERS,
        "    settle(node, order.places)",
        SP_SCANS,
    ),
    Bug(
        "scans: new pairs are shown behind all others (NbTree)",
        NB_SCAN,
        "    order.to_keep = settle(leaf, place.at->low(), order.places);\n",
        "    order.to_keep = {planted} || settle(leaf, place.at->low(), order.places);\n",
        NB_SCANS,
    ),
    drop(
        "scans: an erase does not carry the order over (NbTree)",
        NB_MEMORY,
        "orders_.remove(",
        NB_SCANS,
    ),
    swap_part(
        "scans: an order is carried over from any set of slots (NbTree)",
        NB_MEMORY,
        "orders_.add(number_of(leaf), now - bit",
        "now - bit",
        "now",
        NB_SCANS,
    ),
    Bug(
        "scans: a leaf that has changed is read twice into one batch",
        "src/index/common/batch.h",
        "  void truncate(unsigned count) { size_ = count; }\n",
        "  void truncate(unsigned count) { size_ = {planted} ? size_ : count; }\n",
        BATCHES,
    ),
    drop_part(
        "scans: the end of an earlier leaf must be behind what the batch has",
        FAIR_SCAN,
        "if (batch.added() > before) batch.require_below(",
        "if (batch.added() > before) ",
        (unit("src/index/fastfair/fastfair_install_test", "FastFairInstall*"),),
    ),
    drop(
        "scans: a scan goes on behind the leaf where strings have ended a batch (FAST&FAIR)",
        FAIR_SCAN,
        "if (batch.size() < count)",
        (unit("src/index/fastfair/fastfair_test", "FastFairTree*"),),
    ),
    drop(
        "scans: a node that was merged away leaves its order to the next one (no invalidation)",
        MIDDLE_NODES,
        "nodes->orders_",
        SP_SCANS,
    ),
    drop(
        "scans: a leaf that was replaced leaves its order to the next one (no invalidation)",
        NB_MEMORY,
        "orders_.forget",
        NB_SCANS,
    ),
    Bug(
        "scans: a slot that was filled again after an erase keeps its place in the order",
        LEAF_ORDERS,
        "  const auto middle = std::is_sorted(begin, begin + former) ? begin + former : begin;\n",
        "  const auto middle = begin + ({planted} || std::is_sorted(begin, begin + former) "
        "? former : 0);\n",
        SP_SCANS,
    ),
    Bug(
        "scans: pairs of the write buffer come behind those of the leaf",
        LEAF_ORDERS,
        "    const bool take_fresh = old == middle || (fresh != end && *fresh < *old);\n",
        "    const bool take_fresh = old == middle || (!{planted} && fresh != end && "
        "*fresh < *old);\n",
        SP_SCANS,
    ),
    Bug(
        "scans: the order has a pair that left the write buffer",
        LEAF_ORDERS,
        "      if ((buffered & bit) == 0) continue;\n"
        "      buffered -= bit;\n",
        "      buffered &= ~bit;\n",
        SP_SCANS,
    ),
    Bug(
        "scans: entries that came after the order was made are not in it",
        NB_SCAN,
        "  order.kept = memory_.orders().read(memory_.number_of(leaf), order.visible, "
        "order.places);\n",
        "  order.kept = memory_.orders().read(memory_.number_of(leaf), order.visible, "
        "order.places) || "
        "({planted} && order.places.size() > 0);\n",
        NB_SCANS,
    ),
    drop_part(
        "scans: a cursor keeps all large pairs that a read finds",
        READ_BEYOND,
        "return bytes_ < kMaxBytes",
        " < kMaxBytes",
        READS,
    ),
    Bug(
        "scans: a cursor that meets the end shows what it had read before",
        READ_BEYOND,
        "  if (const auto from = successor(key)) engine.read(*from, limit, ahead);\n"
        "  return ahead.count();\n",
        "  if (const auto from = successor(key)) engine.read(*from, limit, ahead);\n"
        "  return {planted} ? std::min(limit, pairs.size()) : ahead.count();\n",
        READS,
    ),
    drop(
        "scans: a step down in SpTree passes over leaves below a bound",
        "src/index/sptree/scan.h",
        "if (!NodeBounds::is_open(high) && NodeBounds::after(high) < Key(bound))",
        BELOW,
    ),
    drop(
        "scans: a step down in NbTree passes over leaves below a bound",
        NB_TREE,
        "if (place.leaf->next() != nullptr && place.leaf->end() < Key(bound))",
        BELOW,
    ),
]
