// Pools and the indexes of Tips for programs in C, and what an index in C needs in order to be
// plugged into Tips. C11; docs/tips.md has an example, <perdix/tips.h> is the same for C++.
//
// No call throws, and none ends the process. Calls that return an int return 1 for yes, 0 for no,
// and below 0 the negative of a perdix_code. Calls that return a pointer return NULL for an error.
// After an error perdix_last_code() and perdix_last_error() say what has happened to the calling
// thread. What plug-ins call (perdix_tips_alloc() and the like) leaves these as they are.
//
// Thread-safe, but for the end of a pool or an index. What each call promises after a crash, and
// what it costs, say <perdix/point_index.h> and <perdix/tips.h>.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The kind of an error: perdix::Errc, counted from 1.
typedef enum perdix_code {
  PERDIX_NOT_FOUND = 1,
  PERDIX_ALREADY_EXISTS,
  PERDIX_NOT_A_POOL,
  PERDIX_TRUNCATED,
  PERDIX_NEWER_FORMAT,
  PERDIX_OLDER_FORMAT,
  PERDIX_CORRUPT,
  PERDIX_WRONG_ENGINE,
  PERDIX_WRONG_KIND,
  PERDIX_IN_USE,
  PERDIX_NEEDS_CHECK,
  PERDIX_OUT_OF_SPACE,
  PERDIX_TOO_LARGE,
  PERDIX_INVALID_ARGUMENT,
  PERDIX_IO_ERROR,
  PERDIX_UNSUPPORTED,
  PERDIX_NO_THREADS,
  PERDIX_FORKED,
  PERDIX_NO_MEMORY
} perdix_code;

/// The code of the last call of this thread that failed; 0: none has.
int perdix_last_code(void);

/// The message of the thread's last error: a sentence, valid until its next error. Messages
/// above 1,000 bytes are cut.
const char* perdix_last_error(void);

// --- Keys and values -----------------------------------------------------------------------------

/// The type of a key or a value. An index has one kind of each for all its life.
typedef enum perdix_kind {
  PERDIX_U64 = 1,   ///< an integer
  PERDIX_BYTES = 2  ///< a string of bytes
} perdix_kind;

/// A key or a value. perdix_u64() and perdix_bytes() make one.
typedef struct perdix_datum {
  /// Which of the following members count.
  perdix_kind kind;
  uint64_t number;   ///< of PERDIX_U64
  const void* data;  ///< of PERDIX_BYTES; may be NULL if there are none
  /// Bytes of `data`.
  size_t size;
} perdix_datum;

static inline perdix_datum perdix_u64(uint64_t number) {
  const perdix_datum datum = {PERDIX_U64, number, NULL, 0};
  return datum;
}

static inline perdix_datum perdix_bytes(const void* data, size_t size) {
  const perdix_datum datum = {PERDIX_BYTES, 0, data, size};
  return datum;
}

// --- Plug-ins ------------------------------------------------------------------------------------
//
// A plug-in maps words to words. The word of an integer is the integer, the word of a string is the
// address of a perdix_string; Tips allocates these. Lookups call a plug-in from any thread. Replay
// calls it from several threads concurrently, though never for the same key. Its lock, if it needs
// one, lies in its object.

/// The bytes of a string key or value: a size, and the bytes behind it.
typedef struct perdix_string {
  /// Bytes of the string.
  uint64_t size;
} perdix_string;

/// How two words of keys compare: below, at or above 0. The order of strings is that of memcmp().
int perdix_tips_compare(perdix_kind keys, uint64_t a, uint64_t b);

/// The hash of a key.
uint64_t perdix_tips_hash(perdix_kind keys, uint64_t key);

/// Allocates memory of the pool for the put or erase that this thread replays; aligned to 16 bytes.
/// NULL if there is none: the operation returns PERDIX_FAILED and leaves the index unchanged, or
/// does without the memory.
void* perdix_tips_alloc(size_t bytes);

/// Gives back what perdix_tips_alloc() has returned, also to an earlier operation. Each call of the
/// plug-in that is running may still read it.
int perdix_tips_free(void* block);

/// Says that the operation is going to change [p, p + bytes): to be called before the change,
/// unless this operation has allocated the memory.
///
/// An operation has room for 320 lines of 64 bytes, and for 32 calls of perdix_tips_alloc() and
/// perdix_tips_free(). Within these limits this call and perdix_tips_free() return 1. Beyond them
/// they return less in a pool that is full: the operation must then return PERDIX_FAILED without
/// further calls, and the index serves no more calls until it is opened again, which takes the
/// operation back.
int perdix_tips_ulog_add(const void* p, size_t bytes);

/// The result of a plug-in's put() or erase() that could not be done.
#define PERDIX_FAILED (-1)

/// Shows a pair; 0: no more are wanted.
typedef int (*perdix_tips_show)(void* context, uint64_t key, uint64_t value);

/// Is shown the nodes and pairs of an index.
typedef struct perdix_tips_inspector perdix_tips_inspector;

/// To be called for each node before it is read. 0: inspect() must return 0, since there is no such
/// node, or it was shown before.
int perdix_tips_node(perdix_tips_inspector* inspector, const void* node, size_t bytes);

/// To be called for each pair. 0: inspect() must return 0.
int perdix_tips_pair(perdix_tips_inspector* inspector, uint64_t key, uint64_t value);

/// Returns whether the first bytes of a node may be read, which tell its size.
int perdix_tips_readable(perdix_tips_inspector* inspector, const void* node, size_t bytes);

/// Blocks of one size.
typedef struct perdix_tips_nodes {
  /// Bytes of each block.
  size_t bytes;
  /// How many; 0: none.
  unsigned count;
} perdix_tips_nodes;

/// An index that can be plugged in. `index` is the object that create() has made.
typedef struct perdix_tips_plugin {
  const char* name;     ///< the engine is "tips:user:" and this: 1 to 19 visible ASCII characters
  perdix_kind keys;     ///< that it is for
  size_t object_bytes;  ///< of the object, which is aligned to 64 bytes; an index keeps to it

  /// Blocks that a put may allocate, of up to five sizes. Tips keeps so much space for each put
  /// that waits. What may take more now and then does without where it can; else its put fails.
  perdix_tips_nodes put_takes[5];

  /// Makes the object, in memory that no other thread reads. Allocates nothing.
  void (*create)(void* index);

  /// Makes the locks of the object anew, which no thread uses. NULL: it has none.
  void (*renew_locks)(void* index);

  /// 1 if the key was there: `old` is its value, and the key's own word stays. 0 if not: both words
  /// are the index's now. PERDIX_FAILED: nothing has changed.
  int (*put)(void* index, uint64_t key, uint64_t value, uint64_t* old);

  /// 1 if the key was there: its words are the caller's again. 0 if not. PERDIX_FAILED: nothing has
  /// changed. An erase should allocate nothing, so that it succeeds in a full pool.
  int (*erase)(void* index, uint64_t key, uint64_t* old_key, uint64_t* old_value);

  /// 1 if the key is there.
  int (*find)(const void* index, uint64_t key, uint64_t* value);

  /// The number of keys.
  uint64_t (*size)(const void* index);

  /// Keys in order: shows the pairs from a key on, ascending; `from` NULL: from the first.
  /// NULL: the keys are in no order.
  void (*scan)(const void* index, const uint64_t* from, void* context, perdix_tips_show show);

  /// Keys in order: the last pair whose key is not above `bound`, or is below it. 0: there is none.
  int (*find_last)(const void* index, uint64_t bound, int strictly, uint64_t* key, uint64_t* value);

  /// Keys in no order: shows the pairs of some places that begin at `position`, 0 at first. Returns
  /// where the next places begin; 0: there are none. A key's place never changes, as that by its
  /// hash.
  uint64_t (*walk)(const void* index, uint64_t position, void* context, perdix_tips_show show);

  /// Shows all nodes, each before it is read, and all pairs. 1 if all of them answered 1 and the
  /// index does not contradict itself.
  int (*inspect)(const void* index, perdix_tips_inspector* inspector);
} perdix_tips_plugin;

// --- Pools ---------------------------------------------------------------------------------------

/// An open pool.
typedef struct perdix_pool perdix_pool;

/// The failures that a pool must survive: perdix::Durability.
typedef enum perdix_durability {
  PERDIX_AUTOMATIC = 0,
  PERDIX_PROCESS = 1,
  PERDIX_POWER = 2
} perdix_durability;

/// As perdix::PoolOptions. All zero: the defaults.
typedef struct perdix_pool_options {
  /// Bytes to allocate at creation.
  uint64_t initial_size;
  /// Bytes that the pool may grow to.
  uint64_t max_size;
  /// Where to map the pool.
  uint64_t address;
  /// The failures that the pool must survive.
  perdix_durability durability;
  const perdix_tips_plugin* const* plugins;  ///< the tables must outlive the pool and its indexes
  /// The number of `plugins`.
  size_t plugin_count;
} perdix_pool_options;

/// As perdix::Pool::create(); `options` may be NULL.
perdix_pool* perdix_pool_create(const char* path, const perdix_pool_options* options);
/// As perdix::Pool::open(); `options` may be NULL.
perdix_pool* perdix_pool_open(const char* path, const perdix_pool_options* options);
/// As perdix::Pool::open_or_create(); `options` may be NULL.
perdix_pool* perdix_pool_open_or_create(const char* path, const perdix_pool_options* options);

/// 1 if the pool is sound and was checked as a whole. 0 if not: perdix_last_error() is the first
/// problem. No index may be open.
int perdix_pool_check(const perdix_pool* pool);

/// Removes an index.
int perdix_pool_drop(perdix_pool* pool, const char* name);

/// Closes the pool. 1, or an error: then the pool is released all the same, but for PERDIX_IN_USE,
/// while an index is open.
int perdix_pool_close(perdix_pool* pool);

// --- Indexes -------------------------------------------------------------------------------------

/// An open index.
typedef struct perdix_tips perdix_tips;

/// Opens the index of that name, or creates it. `engine` is "tips:hash" or "tips:btree", one of
/// <perdix/tips_indexes_c.h>, or "tips:user:" and the name of a plug-in that the pool was opened
/// with.
perdix_tips* perdix_tips_open(perdix_pool* pool, const char* name, const char* engine,
                              perdix_kind keys, perdix_kind values);

/// An option of an index, as perdix::IndexOptions::named has it: "log_bytes" and "1M".
typedef struct perdix_option {
  /// A name of perdix::TipsOptions.
  const char* name;
  /// The value that the option is set to.
  const char* value;
} perdix_option;

/// Like perdix_tips_open(), with options. PERDIX_INVALID_ARGUMENT for one that there is not,
/// and for one that is given twice.
perdix_tips* perdix_tips_open_with(perdix_pool* pool, const char* name, const char* engine,
                                   perdix_kind keys, perdix_kind values,
                                   const perdix_option* options, size_t option_count);

/// Sets the value of a key. 1.
int perdix_tips_put(perdix_tips* index, perdix_datum key, perdix_datum value);

/// Adds a key; 0, and nothing changes, if it is there.
int perdix_tips_insert(perdix_tips* index, perdix_datum key, perdix_datum value);

/// Replaces the value of a key; 0, and nothing changes, if it is not there.
int perdix_tips_update(perdix_tips* index, perdix_datum key, perdix_datum value);

/// Removes a key; 0 if it is not there.
int perdix_tips_erase(perdix_tips* index, perdix_datum key);

/// The value of a key; 0 if it is not there. A string is copied into `buffer`, as far as its
/// `capacity` goes, and `value` says its whole size. `buffer` may be NULL if the capacity is 0.
int perdix_tips_get(const perdix_tips* index, perdix_datum key, perdix_datum* value, void* buffer,
                    size_t capacity);

/// Is shown pairs, which are valid until it returns; 0 ends the scan.
typedef int (*perdix_visit)(void* context, perdix_datum key, perdix_datum value);

/// Shows the pairs from a key on, ascending; all pairs, in no order if the keys have none, if
/// `from` is NULL. Holds nothing of the library while it visits. 1.
int perdix_tips_scan(const perdix_tips* index, const perdix_datum* from, perdix_visit visit,
                     void* context);

/// The number of keys: exact when no thread writes. 1.
int perdix_tips_size(const perdix_tips* index, uint64_t* size);

/// 1 if the index is sound. 0 if not: perdix_last_error() is the first problem.
int perdix_tips_check(const perdix_tips* index);

/// Closes the index; NULL is none. 1.
int perdix_tips_close(perdix_tips* index);

#ifdef __cplusplus
}  // extern "C"
#endif
