"""Bugs of the orders that scans keep (src/index/common/scan_orders.h), and of what cursors read
ahead (read_beyond.h). Unit tests must notice them: the explorer and the schedule fuzzer scan too
little between the changes of one leaf."""

from bug import (
    LEAF_ORDERS,
    MIDDLE_NODES,
    NB_MEMORY,
    NB_SCAN,
    NB_TREE,
    READ_BEYOND,
    SCAN_ORDERS,
    Bug,
    drop,
    drop_part,
    unit,
)

BELOW = (unit("tests/conformance/perdix_conformance", "*_bytes_*.steps_down_pass_over_no_leaf"),)
READS = (unit("src/index/common/index_common_test", "ReadBeyond*"),)
ORDERS = (unit("src/index/common/index_common_test", "*ScanOrders*"),)
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
