/* A program in C whose index, in C too, Tips makes durable. kill_test.py kills it.
 *
 *   writer write POOL INDEX SEED    writes by four threads until it is killed
 *   writer dump POOL INDEX          prints all pairs, after it has found the pool to be sound
 *
 * INDEX is "table" (integer keys, string values) or "skiplist" (string keys, integer values). Each
 * writing thread has its own keys. It sends a record before each write and another one when the
 * write has returned. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../install/outside/table.h"
#include "skiplist.h"

enum { THREADS = 4, KEYS = 600, LONGEST = 200, TEXT = LONGEST + 32 };

typedef struct record {
  uint32_t thread;
  uint32_t done; /* 0: the write comes next */
  uint64_t key;
  uint64_t value; /* 0: the key is erased */
} record;

typedef struct kind {
  const char* name;
  const char* engine;
  perdix_kind keys, values;
} kind;

static const kind kinds[] = {{"table", "tips:user:table", PERDIX_U64, PERDIX_BYTES},
                             {"skiplist", "tips:user:skiplist", PERDIX_BYTES, PERDIX_U64}};

typedef struct opened {
  const kind* is;
  perdix_pool* pool;
  perdix_tips* index;
} opened;

typedef struct writer {
  const opened* to;
  uint32_t thread;
  uint64_t random;
  uint64_t last; /* value */
} writer;

/* Ends the program. */
static void fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, perdix_last_error());
  _exit(1);
}

static opened open_index(const char* path, const char* name) {
  const perdix_tips_plugin* const plugins[] = {&hash_table, &skip_list};
  const perdix_pool_options options = {.max_size = UINT64_C(1) << 30,
                                       .durability = PERDIX_PROCESS,
                                       .plugins = plugins,
                                       .plugin_count = 2};
  opened o = {&kinds[strcmp(name, kinds[0].name) == 0 ? 0 : 1], NULL, NULL};
  o.pool = perdix_pool_open_or_create(path, &options);
  if (o.pool == NULL) fail("pool");
  o.index = perdix_tips_open(o.pool, name, o.is->engine, o.is->keys, o.is->values);
  if (o.index == NULL) fail("index");
  return o;
}

/* A number as a key or a value; a string of it lies in `text`. */
static perdix_datum datum(perdix_kind wanted, uint64_t number, char* text) {
  if (wanted == PERDIX_U64) return perdix_u64(number);
  const size_t digits = (size_t)snprintf(text, TEXT, "%020llu", (unsigned long long)number);
  const size_t padding = number % LONGEST;
  memset(text + digits, 'v', padding);
  return perdix_bytes(text, digits + padding);
}

/* The number of which a datum was made. Ends the program if it was made of none. */
static uint64_t number_of(perdix_datum d) {
  if (d.kind == PERDIX_U64) return d.number;
  char text[TEXT] = "";
  memcpy(text, d.data, d.size < sizeof text ? d.size : sizeof text - 1); /* it is not terminated */
  const uint64_t number = strtoull(text, NULL, 10);
  const perdix_datum right = datum(PERDIX_BYTES, number, text);
  if (right.size != d.size || memcmp(right.data, d.data, d.size) != 0) {
    fprintf(stderr, "a string is damaged\n");
    _exit(1);
  }
  return number;
}

static void send(record r) {
  if (write(STDOUT_FILENO, &r, sizeof r) != (ssize_t)sizeof r) _exit(0); /* its reader is gone */
}

static uint64_t next(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

static void* write_forever(void* argument) {
  writer* const w = argument;
  const opened* const o = w->to;
  char key_text[TEXT], value_text[TEXT];
  while (o->index != NULL) {
    const uint64_t draw = next(&w->random);
    const int erases = draw % 4 == 0;
    record r = {w->thread, 0, draw / 4 % (KEYS / THREADS) * THREADS + w->thread, 0};
    if (!erases) r.value = w->last += THREADS;
    const perdix_datum key = datum(o->is->keys, r.key, key_text);
    send(r);
    const int done =
        erases ? perdix_tips_erase(o->index, key)
               : perdix_tips_put(o->index, key, datum(o->is->values, r.value, value_text));
    if (done < 0) fail("write");
    r.done = 1;
    send(r);
  }
  return NULL;
}

static void write_all(const opened* o, uint64_t seed) {
  writer writers[THREADS];
  pthread_t threads[THREADS];
  for (uint32_t i = 0; i < THREADS; ++i) {
    writers[i] =
        (writer){o, i, (seed * THREADS + i + 1) * UINT64_C(0x9e3779b97f4a7c15), (seed << 32) + i};
    pthread_create(&threads[i], NULL, write_forever, &writers[i]);
  }
  for (uint32_t i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
}

static int note(void* values, perdix_datum key, perdix_datum value) {
  const uint64_t number = number_of(key);
  uint64_t* const slot = &((uint64_t*)values)[number];
  if (number >= KEYS || *slot != 0) {
    fprintf(stderr, "a key is shown that was not written, or twice\n");
    _exit(1);
  }
  *slot = number_of(value);
  return 1;
}

/* Whether a lookup finds what a scan has shown. */
static int is_found(const opened* o, uint64_t number, uint64_t expected) {
  char key_text[TEXT], text[TEXT];
  perdix_datum value;
  const int found =
      perdix_tips_get(o->index, datum(o->is->keys, number, key_text), &value, text, sizeof text);
  if (found < 0) fail("get");
  return found == 0 ? expected == 0 : number_of(value) == expected;
}

static void dump(const opened* o) {
  uint64_t values[KEYS] = {0}, pairs = 0, size = 0;
  if (perdix_tips_scan(o->index, NULL, note, values) < 0) fail("scan");
  for (uint64_t i = 0; i < KEYS; ++i) {
    if (!is_found(o, i, values[i])) fail("get differs from scan");
    if (values[i] == 0) continue;
    ++pairs;
    printf("%llu %llu\n", (unsigned long long)i, (unsigned long long)values[i]);
  }
  if (perdix_tips_size(o->index, &size) < 0 || size != pairs) fail("size");
  if (perdix_tips_check(o->index) != 1) fail("check of the index");
  perdix_tips_close(o->index);
  if (perdix_pool_check(o->pool) != 1) fail("check of the pool");
  if (perdix_pool_close(o->pool) != 1) fail("close");
}

int main(int count, char** arguments) {
  const int writes = count == 5 && strcmp(arguments[1], "write") == 0;
  if (!writes && (count != 4 || strcmp(arguments[1], "dump") != 0)) return 2;
  const opened o = open_index(arguments[2], arguments[3]);
  writes ? write_all(&o, strtoull(arguments[4], NULL, 10)) : dump(&o);
  return 0;
}
