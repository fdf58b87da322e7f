/*
 * What the operations of the model returned, and whether a map could have done so: durable
 * linearizability, decided on the way.
 *
 * For each key there is the set of all possible worlds: what value the key has, and of each thread
 * whose operation on the key has begun whether that has taken effect, and with which result.
 * An operation may take effect at any moment between its begin and its end. Its end keeps the
 * worlds in which it did so with the result that it returned. A crash ends operations without a
 * result: they have taken effect, or never will. When no world is left, no order explains the
 * history.
 *
 * For the verifier that Spin makes of nbtree.pml, which defines kThreads, kKeys, and kValues: a
 * key's value is less than that, 0 is none.
 */
#pragma once

#include <string.h>

enum { kGet = 1, kInsert, kUpdate, kErase }; /* kinds of operations; 0: none is under way */
enum { kStatuses = kValues + 1 };            /* 0: no effect yet; else 1 + the result */
enum { kWorlds = kValues * kStatuses * kStatuses * (kThreads > 2 ? kStatuses : 1) };
enum { kSetBytes = (kWorlds + 7) / 8 };

typedef struct {
  unsigned char worlds[kKeys][kSetBytes];
  unsigned char kind[kThreads], key[kThreads], value[kThreads]; /* of what is under way */
} History;

/* A world is a number: the value, and each thread's status, by weight. */
static const int kWeights[] = {kValues, kValues* kStatuses, kValues* kStatuses* kStatuses};

static int status(int world, int thread) { return world / kWeights[thread] % kStatuses; }

static int has(const unsigned char* set, int world) { return set[world / 8] >> world % 8 & 1; }

/* The least world of the set from this one on, or kWorlds. */
static int from(const unsigned char* set, int world) {
  while (world < kWorlds && !has(set, world)) world += set[world / 8] == 0 ? 8 - world % 8 : 1;
  return world < kWorlds ? world : kWorlds;
}

static void add(unsigned char* set, int world) {
  set[world / 8] = (unsigned char)(set[world / 8] | 1 << world % 8);
}

/* The world after a thread's operation has taken effect in this one. */
static int effect(const History* h, int world, int thread) {
  const int before = world % kValues;
  int after = before, result = before != 0;
  switch (h->kind[thread]) {
    case kGet: result = before; break;
    case kInsert:
      if (before == 0) after = h->value[thread];
      result = before == 0;
      break;
    case kUpdate:
      if (before != 0) after = h->value[thread];
      break;
    case kErase: after = 0; break;
  }
  return world - before + after + (1 + result) * kWeights[thread];
}

static void history_start(History* h, int key, int value) { add(h->worlds[key - 1], value); }

/* Begins an operation: adds the worlds in which more of what is under way has taken effect. */
static void history_invoke(History* h, int thread, int kind, int key, int value) {
  unsigned char* set = h->worlds[key - 1];
  int grown = 1;
  h->kind[thread] = (unsigned char)kind;
  h->key[thread] = (unsigned char)key;
  h->value[thread] = (unsigned char)value;
  while (grown) {
    grown = 0;
    for (int world = from(set, 0); world < kWorlds; world = from(set, world + 1)) {
      for (int t = 0; t < kThreads; t++) {
        if (h->kind[t] == 0 || h->key[t] != key || status(world, t) != 0) continue;
        const int next = effect(h, world, t);
        if (!has(set, next)) grown = 1;
        add(set, next);
      }
    }
  }
}

/* Ends an operation. Returns 0 if no order explains the result. */
static int history_respond(History* h, int thread, int result) {
  unsigned char left[kSetBytes] = {0};
  unsigned char* set = h->worlds[h->key[thread] - 1];
  int any = 0;
  for (int world = from(set, 0); world < kWorlds; world = from(set, world + 1)) {
    if (status(world, thread) != 1 + result) continue;
    add(left, world - (1 + result) * kWeights[thread]);
    any = 1;
  }
  memcpy(set, left, sizeof left);
  h->kind[thread] = h->key[thread] = h->value[thread] = 0;
  return any;
}

/* Ends all operations without a result. */
static void history_crash(History* h) {
  for (int key = 0; key < kKeys; key++) {
    unsigned char left[kSetBytes] = {0};
    const unsigned char* set = h->worlds[key];
    for (int world = from(set, 0); world < kWorlds; world = from(set, world + 1))
      add(left, world % kValues);
    memcpy(h->worlds[key], left, sizeof left);
  }
  memset(h->kind, 0, sizeof h->kind);
  memset(h->key, 0, sizeof h->key);
  memset(h->value, 0, sizeof h->value);
}
