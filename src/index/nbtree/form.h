// What a tree does otherwise than NbTree, to measure what a part of the design brings (Zhang et al.
// 2024, VI-D and VI-E). A form is a type that the tree asks at compile time: NbTree is LockFree,
// whose operations have none of this. Only structure modifications, creation and leaves that come
// back ask at run time whether metadata is in PM. The other forms are for the benchmark and the
// tests (variants.h).
#pragma once

namespace perdix::detail::index::nbtree {

/// NbTree itself.
struct LockFree {
  static constexpr bool kCountsConflicts = false;
  static constexpr bool kLocksWrites = false;   ///< a write locks its leaf
  static constexpr bool kLocksReads = false;    ///< a lookup of one key locks its leaf
  static constexpr bool kMetadataInPm = false;  ///< see metadata_copies.h
};

/// The same, and it counts conflicts (conflicts.h).
struct Counted : LockFree {
  static constexpr bool kCountsConflicts = true;
};

/// NBTree-W: one write at a time in a leaf.
struct WriteLocks : Counted {
  static constexpr bool kLocksWrites = true;
};

/// NBTree-WR: one write or lookup at a time in a leaf.
struct AllLocks : WriteLocks {
  static constexpr bool kLocksReads = true;
};

/// Without the decoupled leaf: lookups read a leaf's metadata from PM.
struct MetadataInPm : LockFree {
  static constexpr bool kMetadataInPm = true;
};

}  // namespace perdix::detail::index::nbtree
