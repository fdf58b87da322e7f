/* The further indexes in a program in C: <perdix/tips_indexes_c.h>. */
#define _POSIX_C_SOURCE 200809L
#include <perdix/tips_c.h>
#include <perdix/tips_indexes_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures = 0;

static void expect(int holds, int line) {
  if (holds) return;
  fprintf(stderr, "further.c:%d failed; the last error is %d: %s\n", line, perdix_last_code(),
          perdix_last_error());
  ++failures;
}
#define EXPECT(holds) expect(holds, __LINE__)

enum { ENGINES = 5, KEYS = 100 };
static const char* const kEngines[ENGINES] = {"tips:bst", "tips:art", "tips:clht", "tips:lfhash",
                                              "tips:lfbst"};

static perdix_pool* open_pool(const char* path) {
  const perdix_pool_options options = {.max_size = UINT64_C(1) << 26};
  perdix_pool* const pool = perdix_pool_open_or_create(path, &options);
  EXPECT(pool != NULL);
  return pool;
}

static perdix_tips* open_index(perdix_pool* pool, const char* engine) {
  return perdix_tips_open(pool, engine, engine, PERDIX_U64, PERDIX_U64);
}

static void test_unknown(const char* path) {
  perdix_pool* const pool = open_pool(path);
  for (int i = 0; i < ENGINES; ++i) {
    EXPECT(open_index(pool, kEngines[i]) == NULL);
    EXPECT(perdix_last_code() == PERDIX_UNSUPPORTED);
    EXPECT(strstr(perdix_last_error(), "perdix_tips_add_indexes()") != NULL);
  }
  EXPECT(perdix_pool_close(pool) == 1);
}

static void fill(const char* path) {
  perdix_pool* const pool = open_pool(path);
  for (int i = 0; i < ENGINES; ++i) {
    perdix_tips* const index = open_index(pool, kEngines[i]);
    EXPECT(index != NULL);
    for (uint64_t key = 0; key < KEYS; ++key)
      EXPECT(perdix_tips_insert(index, perdix_u64(key), perdix_u64(key * 7)) == 1);
    EXPECT(perdix_tips_erase(index, perdix_u64(0)) == 1);
    EXPECT(perdix_tips_close(index) == 1);
  }
  EXPECT(perdix_pool_check(pool) == 1);
  EXPECT(perdix_pool_close(pool) == 1);
}

static void test_again(const char* path) {
  perdix_pool* const pool = open_pool(path);
  for (int i = 0; i < ENGINES; ++i) {
    perdix_tips* const index = open_index(pool, kEngines[i]);
    EXPECT(index != NULL);
    perdix_datum found;
    for (uint64_t key = 0; key < KEYS; ++key) {
      const int there = perdix_tips_get(index, perdix_u64(key), &found, NULL, 0);
      EXPECT(there == (key > 0) && (key == 0 || found.number == key * 7));
    }
    uint64_t size = 0;
    EXPECT(perdix_tips_size(index, &size) == 1 && size == KEYS - 1);
    EXPECT(perdix_tips_check(index) == 1);
    EXPECT(perdix_tips_close(index) == 1);
  }
  EXPECT(perdix_pool_close(pool) == 1);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  char path[4096];
  snprintf(path, sizeof path, "%s/further.%ld.pool", argv[1], (long)getpid());
  test_unknown(path);
  EXPECT(perdix_tips_add_indexes() == 1);
  EXPECT(perdix_tips_add_indexes() == 1); /* changes nothing */
  fill(path);
  test_again(path);
  unlink(path);
  return failures == 0 ? 0 : 1;
}
