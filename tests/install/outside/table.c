#define _POSIX_C_SOURCE 200809L /* pthread_rwlock_t */
#include "table.h"

#include <pthread.h>
#include <string.h>

enum { BUCKETS = 256 };

typedef struct node {
  struct node* next;
  uint64_t key, value;
} node;

/* It lies in the pool, and so do the nodes. */
typedef struct table {
  pthread_rwlock_t lock; /* guards the rest */
  uint64_t size;
  node* buckets[BUCKETS];
} table;

static void create(void* index) {
  memset(index, 0, sizeof(table));
  pthread_rwlock_init(&((table*)index)->lock, NULL);
}

static void renew_locks(void* index) { pthread_rwlock_init(&((table*)index)->lock, NULL); }

/* A lookup locks, too, though the table is const to it. */
static void lock_shared(const void* index) {
  pthread_rwlock_rdlock(&((table*)(uintptr_t)index)->lock);
}

static void lock(void* index) { pthread_rwlock_wrlock(&((table*)index)->lock); }

static void unlock(const void* index) { pthread_rwlock_unlock(&((table*)(uintptr_t)index)->lock); }

/* Each change of what was there before. */
static void set_link(node** place, node* value) {
  perdix_tips_ulog_add(place, sizeof *place);
  *place = value;
}

static void set_word(uint64_t* place, uint64_t value) {
  perdix_tips_ulog_add(place, sizeof *place);
  *place = value;
}

/* The link to the node of a key; to NULL if it has none. */
static node** find_link(const table* t, uint64_t key) {
  node** link = (node**)(uintptr_t)&t->buckets[perdix_tips_hash(PERDIX_U64, key) % BUCKETS];
  while (*link != NULL && (*link)->key != key) link = &(*link)->next;
  return link;
}

static int put_locked(table* t, uint64_t key, uint64_t value, uint64_t* old) {
  node** const link = find_link(t, key);
  if (*link != NULL) {
    *old = (*link)->value;
    set_word(&(*link)->value, value);
    return 1;
  }
  node* const added = perdix_tips_alloc(sizeof *added);
  if (added == NULL) return PERDIX_FAILED;
  *added = (node){NULL, key, value};
  set_link(link, added);
  set_word(&t->size, t->size + 1);
  return 0;
}

static int put(void* index, uint64_t key, uint64_t value, uint64_t* old) {
  lock(index);
  const int result = put_locked(index, key, value, old);
  unlock(index);
  return result;
}

static int erase(void* index, uint64_t key, uint64_t* old_key, uint64_t* old_value) {
  table* const t = index;
  lock(t);
  node** const link = find_link(t, key);
  node* const removed = *link;
  if (removed != NULL) {
    *old_key = removed->key;
    *old_value = removed->value;
    set_link(link, removed->next);
    set_word(&t->size, t->size - 1);
    perdix_tips_free(removed);
  }
  unlock(t);
  return removed != NULL;
}

static int find(const void* index, uint64_t key, uint64_t* value) {
  lock_shared(index);
  const node* const found = *find_link(index, key);
  if (found != NULL) *value = found->value;
  unlock(index);
  return found != NULL;
}

static uint64_t size(const void* index) {
  lock_shared(index);
  const uint64_t pairs = ((const table*)index)->size;
  unlock(index);
  return pairs;
}

/* One bucket: a key stays in its own. */
static uint64_t walk(const void* index, uint64_t position, void* context, perdix_tips_show show) {
  lock_shared(index);
  const node* n = ((const table*)index)->buckets[position];
  while (n != NULL && show(context, n->key, n->value)) n = n->next;
  unlock(index);
  return (position + 1) % BUCKETS;
}

static int inspect(const void* index, perdix_tips_inspector* inspector) {
  const table* const t = index;
  uint64_t pairs = 0;
  for (size_t i = 0; i < BUCKETS; ++i) {
    for (const node* n = t->buckets[i]; n != NULL; n = n->next, ++pairs) {
      if (!perdix_tips_node(inspector, n, sizeof *n)) return 0;
      if (!perdix_tips_pair(inspector, n->key, n->value)) return 0;
      if (perdix_tips_hash(PERDIX_U64, n->key) % BUCKETS != i) return 0;
    }
  }
  return pairs == t->size;
}

const perdix_tips_plugin hash_table = {.name = "table",
                                       .keys = PERDIX_U64,
                                       .object_bytes = sizeof(table),
                                       .put_takes = {{sizeof(node), 1}},
                                       .create = create,
                                       .renew_locks = renew_locks,
                                       .put = put,
                                       .erase = erase,
                                       .find = find,
                                       .size = size,
                                       .walk = walk,
                                       .inspect = inspect};
