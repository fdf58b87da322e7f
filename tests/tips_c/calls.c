/* The calls of <perdix/tips_c.h>, and what they say when they fail. */
#define _POSIX_C_SOURCE 200809L
#include <perdix/tips_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../install/outside/table.h"
#include "skiplist.h"

static int failures = 0;

static void expect(int holds, int line) {
  if (holds) return;
  fprintf(stderr, "calls.c:%d failed; the last error is %d: %s\n", line, perdix_last_code(),
          perdix_last_error());
  ++failures;
}
#define EXPECT(holds) expect(holds, __LINE__)

static perdix_datum text(const char* string) { return perdix_bytes(string, strlen(string)); }

static perdix_pool* open_pool(const char* path, size_t plugin_count) {
  static const perdix_tips_plugin* const kPlugins[] = {&hash_table, &skip_list};
  const perdix_pool_options options = {
      .max_size = UINT64_C(1) << 26, .plugins = kPlugins, .plugin_count = plugin_count};
  return perdix_pool_open_or_create(path, &options);
}

static int count(void* context, perdix_datum key, perdix_datum value) {
  (void)key, (void)value;
  return ++*(int*)context < 2;
}

static void test_options(perdix_pool* pool) {
  const perdix_option right[] = {{"chain", "3"}, {"cached_pairs", "1K"}};
  perdix_tips* const index =
      perdix_tips_open_with(pool, "o", "tips:hash", PERDIX_U64, PERDIX_U64, right, 2);
  EXPECT(index != NULL);
  EXPECT(perdix_tips_put(index, perdix_u64(1), perdix_u64(2)) == 1);
  EXPECT(perdix_tips_close(index) == 1);
  const perdix_option wrong[] = {{"chain", "65"}, {"dram_budget", "0"}, {"chain", NULL}};
  for (int i = 0; i < 3; ++i) {
    EXPECT(perdix_tips_open_with(pool, "p", "tips:hash", PERDIX_U64, PERDIX_U64, wrong + i, 1) ==
           NULL);
    EXPECT(perdix_last_code() == PERDIX_INVALID_ARGUMENT);
    EXPECT(strstr(perdix_last_error(), i == 2 ? "option" : wrong[i].name) != NULL);
  }
  const perdix_option twice[] = {{"chain", "3"}, {"chain", "4"}};
  EXPECT(perdix_tips_open_with(pool, "p", "tips:hash", PERDIX_U64, PERDIX_U64, twice, 2) == NULL);
  EXPECT(perdix_last_code() == PERDIX_INVALID_ARGUMENT);
  EXPECT(strstr(perdix_last_error(), "'chain' is given twice") != NULL);
  EXPECT(perdix_pool_drop(pool, "o") == 1);
}

static void test_table(perdix_pool* pool) {
  perdix_tips* const index =
      perdix_tips_open(pool, "t", "tips:user:table", PERDIX_U64, PERDIX_BYTES);
  EXPECT(index != NULL);
  EXPECT(perdix_tips_open(pool, "t", "tips:user:table", PERDIX_U64, PERDIX_BYTES) == NULL);
  EXPECT(perdix_last_code() == PERDIX_IN_USE);
  EXPECT(perdix_tips_insert(index, perdix_u64(1), text("one")) == 1);
  EXPECT(perdix_tips_insert(index, perdix_u64(1), text("two")) == 0);
  EXPECT(perdix_tips_update(index, perdix_u64(2), text("two")) == 0);
  EXPECT(perdix_tips_put(index, perdix_u64(2), text("")) == 1);
  EXPECT(perdix_tips_put(index, perdix_u64(3), text("three")) == 1);

  char buffer[3];
  perdix_datum found;
  EXPECT(perdix_tips_get(index, perdix_u64(3), &found, buffer, sizeof buffer) == 1);
  EXPECT(found.size == 5 && memcmp(buffer, "thr", 3) == 0);
  EXPECT(perdix_tips_get(index, perdix_u64(2), &found, NULL, 0) == 1 && found.size == 0);
  EXPECT(perdix_tips_get(index, perdix_u64(4), &found, NULL, 0) == 0);
  EXPECT(perdix_tips_get(index, text("1"), &found, NULL, 0) == -PERDIX_WRONG_KIND);

  int shown = 0;
  EXPECT(perdix_tips_scan(index, NULL, count, &shown) == 1 && shown == 2);
  const perdix_datum from = perdix_u64(0);
  EXPECT(perdix_tips_scan(index, &from, count, &shown) == -PERDIX_UNSUPPORTED);
  EXPECT(perdix_tips_erase(index, perdix_u64(1)) == 1);
  EXPECT(perdix_tips_erase(index, perdix_u64(1)) == 0);
  uint64_t size = 0;
  EXPECT(perdix_tips_size(index, &size) == 1 && size == 2);
  EXPECT(perdix_tips_check(index) == 1);
  EXPECT(perdix_pool_close(pool) == -PERDIX_IN_USE);
  EXPECT(perdix_tips_close(index) == 1);
  EXPECT(perdix_pool_check(pool) == 1);
}

/* The keys that a scan shows, one behind the other. */
static int append(void* context, perdix_datum key, perdix_datum value) {
  (void)value;
  strncat(context, key.data, key.size);
  return 1;
}

static void test_skip_list(perdix_pool* pool) {
  perdix_tips* const index =
      perdix_tips_open(pool, "s", "tips:user:skiplist", PERDIX_BYTES, PERDIX_U64);
  EXPECT(index != NULL);
  EXPECT(perdix_tips_put(index, text("b"), perdix_u64(2)) == 1);
  EXPECT(perdix_tips_put(index, text("a"), perdix_u64(1)) == 1);
  EXPECT(perdix_tips_put(index, text("c"), perdix_u64(3)) == 1);
  char keys[8] = "";
  EXPECT(perdix_tips_scan(index, NULL, append, keys) == 1 && strcmp(keys, "abc") == 0);
  const perdix_datum from = text("b");
  EXPECT(perdix_tips_scan(index, &from, append, keys) == 1 && strcmp(keys, "abcbc") == 0);
  perdix_datum found;
  EXPECT(perdix_tips_get(index, text("c"), &found, NULL, 0) == 1 && found.number == 3);
  EXPECT(perdix_tips_close(index) == 1);
  EXPECT(perdix_tips_open(pool, "s", "tips:user:skiplist", PERDIX_U64, PERDIX_U64) == NULL);
  EXPECT(perdix_last_code() == PERDIX_UNSUPPORTED); /* there is none for integer keys */
}

static void test_errors(const char* path) {
  EXPECT(perdix_pool_open("/nowhere/at/all.pool", NULL) == NULL);
  EXPECT(perdix_last_code() == PERDIX_NOT_FOUND && strstr(perdix_last_error(), "nowhere") != NULL);
  EXPECT(perdix_pool_open(NULL, NULL) == NULL && perdix_last_code() == PERDIX_INVALID_ARGUMENT);
  EXPECT(perdix_pool_create(path, NULL) == NULL && perdix_last_code() == PERDIX_ALREADY_EXISTS);
  const perdix_tips_plugin nothing = {.name = "nothing", .keys = PERDIX_U64};
  const perdix_tips_plugin* const plugins[] = {&nothing};
  const perdix_pool_options options = {.plugins = plugins, .plugin_count = 1};
  EXPECT(perdix_pool_open(path, &options) == NULL);
  EXPECT(perdix_last_code() == PERDIX_INVALID_ARGUMENT);
  EXPECT(perdix_tips_alloc(8) == NULL); /* this thread replays nothing */
  EXPECT(perdix_tips_ulog_add(plugins, 8) == PERDIX_FAILED);
  EXPECT(perdix_tips_free(NULL) == PERDIX_FAILED);
}

/* A program without the plug-ins changes nothing. */
static void test_without_plugins(const char* path) {
  perdix_pool* const pool = open_pool(path, 0);
  EXPECT(pool != NULL);
  EXPECT(perdix_tips_open(pool, "t", "tips:user:table", PERDIX_U64, PERDIX_BYTES) == NULL);
  EXPECT(perdix_last_code() == PERDIX_UNSUPPORTED);
  EXPECT(perdix_pool_drop(pool, "t") == -PERDIX_UNSUPPORTED);
  EXPECT(perdix_pool_check(pool) == 0 && strstr(perdix_last_error(), "plug-in") != NULL);
  EXPECT(perdix_pool_close(pool) == 1);
}

/* The argument is where a folder for the pool can be made. */
int main(int count, char** arguments) {
  char folder[4096], path[4200];
  if (count != 2) return 2;
  snprintf(folder, sizeof folder, "%s/perdix-calls-XXXXXX", arguments[1]);
  if (mkdtemp(folder) == NULL) {
    perror(folder);
    return 1;
  }
  snprintf(path, sizeof path, "%s/a.pool", folder);
  perdix_pool* pool = open_pool(path, 2);
  EXPECT(pool != NULL);
  test_options(pool);
  test_table(pool);
  test_skip_list(pool);
  EXPECT(perdix_pool_close(pool) == 1);
  test_errors(path);
  test_without_plugins(path);
  pool = open_pool(path, 2);
  EXPECT(perdix_pool_drop(pool, "t") == 1);
  EXPECT(perdix_pool_drop(pool, "t") == -PERDIX_NOT_FOUND);
  EXPECT(perdix_pool_check(pool) == 1);
  EXPECT(perdix_pool_close(pool) == 1);
  unlink(path);
  rmdir(folder);
  return failures == 0 ? 0 : 1;
}
