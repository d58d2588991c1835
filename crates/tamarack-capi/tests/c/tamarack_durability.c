/* What writes survive, counted in syncs of the log; recovery after a death of the process. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tamarack/c.h>

#include "check.h"

static double syncs(leveldb_t* db) {
  double value = -1;
  CHECK(tamarack_stats_number(db, "syncs", &value));
  return value;
}

static void syncs_are_made_when_asked_for(void) {
  leveldb_t* db = open_new("durability");
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  char* error = NULL;
  double before = syncs(db);
  leveldb_put(db, write, "a", 1, "1", 1, &error);
  CHECK_OK(error);
  CHECK(syncs(db) == before);
  tamarack_writeoptions_set_durability(write, tamarack_survives_machine);
  leveldb_put(db, write, "b", 1, "2", 1, &error);
  CHECK_OK(error);
  CHECK(syncs(db) > before);
  before = syncs(db);
  tamarack_writeoptions_set_durability(write, tamarack_survives_process);
  leveldb_put(db, write, "c", 1, "3", 1, &error);
  CHECK_OK(error);
  CHECK(syncs(db) == before);
  tamarack_sync(db, &error);
  CHECK_OK(error);
  CHECK(syncs(db) > before);
  leveldb_writeoptions_destroy(write);
  tamarack_close(db, &error);
  CHECK_OK(error);
  tamarack_close(NULL, &error);
  CHECK_OK(error);
}

static void a_killed_process_loses_nothing(void) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    leveldb_t* db = open_new("durability-kill");
    put(db, "a", "1");
    put(db, "b", "2");
    kill(getpid(), SIGKILL);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
  CHECK_EQUAL(WTERMSIG(status), SIGKILL);
  leveldb_options_t* options = leveldb_options_create();
  leveldb_t* db = open_with(options, "durability-kill");
  CHECK_GET(db, "a", "1");
  CHECK_GET(db, "b", "2");
  char* report = tamarack_recovery(db);
  CHECK(strstr(report, "\"operations\":2") != NULL);
  leveldb_free(report);
  leveldb_close(db);
  leveldb_options_destroy(options);
}

void durability_suite(void) {
  syncs_are_made_when_asked_for();
  a_killed_process_loses_nothing();
}
