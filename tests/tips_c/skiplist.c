#define _POSIX_C_SOURCE 200809L /* pthread_rwlock_t */
#include "skiplist.h"

#include <pthread.h>
#include <string.h>

enum { LEVELS = 8 };

typedef struct node {
  uint64_t key, value;
  struct node* next[LEVELS]; /* NULL above its height */
} node;

/* It lies in the pool, and so do the nodes. */
typedef struct list {
  pthread_rwlock_t lock; /* guards the rest */
  uint64_t size;
  node* first[LEVELS];
} list;

/* For each level the link to the first node that is not below a key. */
typedef struct way {
  node** links[LEVELS];
} way;

static void create(void* index) {
  memset(index, 0, sizeof(list));
  pthread_rwlock_init(&((list*)index)->lock, NULL);
}

static void renew_locks(void* index) { pthread_rwlock_init(&((list*)index)->lock, NULL); }

static void lock_shared(const void* index) {
  pthread_rwlock_rdlock(&((list*)(uintptr_t)index)->lock);
}

static void lock(void* index) { pthread_rwlock_wrlock(&((list*)index)->lock); }

static void unlock(const void* index) { pthread_rwlock_unlock(&((list*)(uintptr_t)index)->lock); }

/* Each change of what was there before. The test plants a bug here. */
static void note_change(const void* place, size_t bytes) {
#ifdef PLANTED_NO_UNDO
  (void)place, (void)bytes;
#else
  perdix_tips_ulog_add(place, bytes);
#endif
}

static void set_link(node** place, node* value) {
  note_change(place, sizeof *place);
  *place = value;
}

static void set_word(uint64_t* place, uint64_t value) {
  note_change(place, sizeof *place);
  *place = value;
}

static int compare(uint64_t a, uint64_t b) { return perdix_tips_compare(PERDIX_BYTES, a, b); }

/* A quarter of the nodes of each level are on the next one. */
static unsigned height_of(uint64_t key) {
  uint64_t hash = perdix_tips_hash(PERDIX_BYTES, key);
  unsigned height = 1;
  for (; height < LEVELS && hash % 4 == 0; hash /= 4) ++height;
  return height;
}

/* Returns the first node that is not below the key. */
static node* find_way(const list* l, uint64_t key, way* found) {
  node** links = (node**)(uintptr_t)l->first;
  for (int level = LEVELS - 1; level >= 0; --level) {
    while (links[level] != NULL && compare(links[level]->key, key) < 0) links = links[level]->next;
    found->links[level] = &links[level];
  }
  return *found->links[0];
}

static node* find_node(const list* l, uint64_t key) {
  way found;
  node* const n = find_way(l, key, &found);
  return n != NULL && compare(n->key, key) == 0 ? n : NULL;
}

static int put_locked(list* l, uint64_t key, uint64_t value, uint64_t* old) {
  way found;
  node* const there = find_way(l, key, &found);
  if (there != NULL && compare(there->key, key) == 0) {
    *old = there->value;
    set_word(&there->value, value);
    return 1;
  }
  node* const added = perdix_tips_alloc(sizeof *added);
  if (added == NULL) return PERDIX_FAILED;
  memset(added, 0, sizeof *added);
  added->key = key;
  added->value = value;
  for (unsigned level = 0; level < height_of(key); ++level) {
    added->next[level] = *found.links[level];
    set_link(found.links[level], added);
  }
  set_word(&l->size, l->size + 1);
  return 0;
}

static int put(void* index, uint64_t key, uint64_t value, uint64_t* old) {
  lock(index);
  const int result = put_locked(index, key, value, old);
  unlock(index);
  return result;
}

static int erase(void* index, uint64_t key, uint64_t* old_key, uint64_t* old_value) {
  list* const l = index;
  lock(l);
  way found;
  node* const removed = find_way(l, key, &found);
  const int there = removed != NULL && compare(removed->key, key) == 0;
  if (there) {
    *old_key = removed->key;
    *old_value = removed->value;
    for (unsigned level = 0; level < height_of(key); ++level)
      set_link(found.links[level], removed->next[level]);
    set_word(&l->size, l->size - 1);
    perdix_tips_free(removed);
  }
  unlock(l);
  return there;
}

static int find(const void* index, uint64_t key, uint64_t* value) {
  lock_shared(index);
  const node* const n = find_node(index, key);
  if (n != NULL) *value = n->value;
  unlock(index);
  return n != NULL;
}

static uint64_t size(const void* index) {
  lock_shared(index);
  const uint64_t pairs = ((const list*)index)->size;
  unlock(index);
  return pairs;
}

static void scan(const void* index, const uint64_t* from, void* context, perdix_tips_show show) {
  way found;
  lock_shared(index);
  const node* n = from != NULL ? find_way(index, *from, &found) : ((const list*)index)->first[0];
  while (n != NULL && show(context, n->key, n->value)) n = n->next[0];
  unlock(index);
}

static int find_last(const void* index, uint64_t bound, int strictly, uint64_t* key,
                     uint64_t* value) {
  lock_shared(index);
  const node* last = NULL;
  node* const* links = ((const list*)index)->first;
  for (int level = LEVELS - 1; level >= 0; --level) {
    while (links[level] != NULL && compare(links[level]->key, bound) < !strictly) {
      last = links[level];
      links = last->next;
    }
  }
  if (last != NULL) {
    *key = last->key;
    *value = last->value;
  }
  unlock(index);
  return last != NULL;
}

static int inspect(const void* index, perdix_tips_inspector* inspector) {
  const list* const l = index;
  node* expected[LEVELS]; /* the next node of each level */
  memcpy(expected, l->first, sizeof expected);
  uint64_t pairs = 0;
  const node* previous = NULL;
  for (const node* n = expected[0]; n != NULL; previous = n, n = expected[0], ++pairs) {
    if (!perdix_tips_node(inspector, n, sizeof *n)) return 0;
    if (!perdix_tips_pair(inspector, n->key, n->value)) return 0;
    if (previous != NULL && compare(previous->key, n->key) >= 0) return 0;
    for (unsigned level = 0; level < height_of(n->key); ++level) {
      if (expected[level] != n) return 0;
      expected[level] = n->next[level];
    }
  }
  for (unsigned level = 0; level < LEVELS; ++level)
    if (expected[level] != NULL) return 0;
  return pairs == l->size;
}

const perdix_tips_plugin skip_list = {.name = "skiplist",
                                      .keys = PERDIX_BYTES,
                                      .object_bytes = sizeof(list),
                                      .put_takes = {{sizeof(node), 1}},
                                      .create = create,
                                      .renew_locks = renew_locks,
                                      .put = put,
                                      .erase = erase,
                                      .find = find,
                                      .size = size,
                                      .scan = scan,
                                      .find_last = find_last,
                                      .inspect = inspect};
